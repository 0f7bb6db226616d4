"""A cover improved part by part: in each stretch of rows the integer program chooses anew, while all else stays.

For very large problems, in which rounds of ruin and recreate come to an end too early. Stretches overlap by half, so
that a column at the edge of one is in the middle of another.
"""

from collections.abc import Iterator

import numpy as np

from spillprof.planning.bounding.reduction import Reduced
from spillprof.planning.budget import Budget
from spillprof.planning.gaps import Ranges
from spillprof.planning.optimal.cover import Cover
from spillprof.planning.optimal.milp import Precision, solve

MANY_COLUMNS = 20_000
"""From here on stretches gain more than rounds of local search in the same time."""

_VISITS = (60_000, 120_000)  # (column, row) pairs in a stretch: in short ones first, which is quick
_NEAR = Precision(relative_gap=0.002, most_nodes=50)


def improve_in_windows(cover: Cover, budget: Budget, visits: tuple[int, ...] = _VISITS) -> bool:
    """Improve a complete cover in place; False if the budget ended it."""
    reduced = cover.reduced
    n = len(reduced.gaps)
    firsts, ends = np.full(n, len(reduced.steps)), np.zeros(n, dtype=np.int64)
    np.minimum.at(firsts, reduced.covered.gap, reduced.covered.start)
    np.maximum.at(ends, reduced.covered.gap, reduced.covered.end)
    for rows in _stretches(len(reduced.steps), reduced.visits, visits):
        if budget.is_spent:
            return False
        inside = np.flatnonzero((firsts >= rows.start) & (ends <= rows.stop))
        _choose_anew(cover, rows, inside.tolist(), budget)
    return True


def _stretches(n_rows: int, all_visits: int, visits: tuple[int, ...]) -> Iterator[range]:
    for most in visits:
        width = max(2, n_rows * most // max(1, all_visits))
        for offset in (0, width // 2):
            for start in range(-offset, n_rows, width):
                yield range(max(0, start), min(n_rows, start + width))


def _choose_anew(cover: Cover, rows: range, columns: list[int], budget: Budget) -> None:
    """Spend the cheapest of ``columns``, which cover no other rows, if that is cheaper than what is spent of them."""
    before = cover.cost
    spent = [c for c in columns if cover.spent[c]]
    for c in spent:
        cover.keep(c)
    part = _part(cover, rows, columns)
    position = {c: k for k, c in enumerate(part.gaps)}
    solved = solve(part, [position[c] for c in spent if c in position], budget, _NEAR) if part.steps else None
    chosen = spent if solved is None or solved.columns is None else [part.gaps[k] for k in solved.columns]
    for c in chosen:
        cover.spend(c)
    if cover.cost > before or int(cover.slack[rows.start : rows.stop].min(initial=0)) < 0:
        for c in chosen:
            cover.keep(c)
        for c in spent:
            cover.spend(c)


def _part(cover: Cover, rows: range, columns: list[int]) -> Reduced:
    """What rows still lack, and the columns that can cover it; its ``gaps`` are these columns."""
    whole = cover.reduced
    needs = -cover.slack[rows.start : rows.stop]
    lacking = needs > 0
    before = np.concatenate([[0], np.cumsum(lacking)])  # rows that lack something, before each row
    mine = np.isin(whole.covered.gap, columns)
    starts, ends = (before[at[mine] - rows.start] for at in (whole.covered.start, whole.covered.end))
    left = starts < ends
    used, positions = np.unique(whole.covered.gap[mine][left], return_inverse=True)
    gaps = used.tolist()
    buffers = [whole.buffers[c] for c in gaps]
    return Reduced(
        steps=[whole.steps[rows.start + k] for k in np.flatnonzero(lacking).tolist()],
        needs=needs[lacking],
        gaps=gaps,
        covered=Ranges(positions, starts[left], ends[left]),
        sizes=whole.sizes[gaps],
        costs=whole.costs[gaps],
        buffers=buffers,
        write_costs={
            b: whole.write_costs[b] for b in sorted({*buffers} & whole.write_costs.keys()) if not cover.spent_of[b]
        },
    )
