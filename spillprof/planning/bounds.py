"""Proven lower bounds on spill bytes, with a certificate that a few lines of integer arithmetic re-prove.

A certificate weighs rows of the covering problem. A row says: at step i, the gaps outside of a set A must make up
for what A does not, D = excess - size(A) (knapsack cover inequality, Carr et al. 2000):

    sum of min(size_g, D) y_g >= D    over gaps g that cover step i and are not in A

For any weights >= 0 the Lagrangian of these rows is a lower bound; its inner minimum splits by buffer, because only
the write-back is shared by a buffer's gaps. Where weights come from does not matter for the proof:

- *equal weights*: one weight for all steps; weak, but quick for any size (PFOO-L of Berger et al. 2018 does so);
- *local ratio* (Bar-Noy et al. 2001): raises one row at a time until some gap is paid for; strong for few large gaps;
- *linear program*: the duals of the covering LP in flow form (one variable a step, two entries a gap); strong for
  many small gaps. Without fractions of buffers the optimum may lie above it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import gcd

import numpy as np

from spillprof.model.program import Program
from spillprof.planning.covering import Covering, covering
from spillprof.planning.highs import quiet_solver
from spillprof.planning.options import PlanningOptions
from spillprof.planning.range_max import RangeMax

SCALE = 1 << 40
"""Weights are integers, in units of 1 / SCALE."""

NOTHING = "nothing must spill"
FORCED = "operators that cannot fit"

_MANY_VISITS = 3_000_000  # (gap, step) pairs; beyond, only the linear program is asked
_LP_GAPS = 40_000
_LP_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Row:
    """A weighted row of a certificate."""

    step: int
    apart: tuple[int, ...]  # gaps of the set A, by index into Covering.gaps
    weight: int  # >= 0, in units of 1 / SCALE


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """No plan of the program spills less."""

    spill_bytes: int
    proven_by: str  # NOTHING, FORCED, "equal weights", "local ratio" or "linear program"
    certificate: tuple[Row, ...]


def lower_bound(program: Program, options: PlanningOptions) -> Bound:
    """The best bound found for a fitted program: of all plans in this order, with this choice of streamed operands."""
    problem = covering(program, options)
    found = [
        Bound(spill_bytes=problem.forced_bytes, proven_by=FORCED if problem.forced_bytes else NOTHING, certificate=())
    ]
    if problem.gaps:
        methods = (
            ("equal weights", _equal_weights),
            ("local ratio", _local_ratio),
            ("linear program", _linear_program),
        )
        for name, weigh in methods:
            rows = weigh(problem)
            found.append(Bound(spill_bytes=certified_bytes(problem, rows), proven_by=name, certificate=rows))
    return max(found, key=lambda bound: bound.spill_bytes)


def certified_bytes(problem: Covering, rows: Sequence[Row]) -> int:
    """The bound that the rows prove, in exact integers; it needs nothing but the problem. Any weights are valid.

    In very large problems the rows are read in their weaker form, with whole sizes and without a set A, which takes
    one pass over the gaps.
    """
    if problem.visits <= _MANY_VISITS:
        total, paid = _row_by_row(problem, rows)
    else:
        total, paid = _whole_sizes(problem, rows)
    unpaid: dict[int, int] = {}
    for g, gap in enumerate(problem.gaps):
        unpaid[gap.buffer] = unpaid.get(gap.buffer, 0) + min(0, SCALE * gap.size_bytes - paid[g])
    total += sum(min(0, SCALE * problem.write_bytes[b] + rest) for b, rest in unpaid.items())
    # What a plan spills is a sum of sizes: of the sums, the next one above the bound is a bound too.
    unit = gcd(*(gap.size_bytes for gap in problem.gaps)) or 1
    return problem.forced_bytes + max(0, -(-total // (SCALE * unit)) * unit)


def _row_by_row(problem: Covering, rows: Sequence[Row]) -> tuple[int, list[int]]:
    """Weighted needs of the rows, and what each gap pays for them."""
    total, paid = 0, [0] * len(problem.gaps)
    for row in rows:
        apart = set(row.apart)
        need = problem.excess_bytes[row.step] - sum(problem.gaps[g].size_bytes for g in apart)
        if need > 0 and row.weight > 0:
            total += row.weight * need
            for g in problem.spanning[row.step]:
                if g not in apart:
                    paid[g] += row.weight * min(problem.gaps[g].size_bytes, need)
    return total, paid


def _whole_sizes(problem: Covering, rows: Sequence[Row]) -> tuple[int, list[int]]:
    weights = [0] * len(problem.excess_bytes)
    for row in rows:
        if not row.apart and row.weight > 0:
            weights[row.step] += row.weight
    before = list(accumulate(weights, initial=0))
    total = sum(weight * need for weight, need in zip(weights, problem.excess_bytes, strict=True))
    return total, [
        gap.size_bytes * sum(before[end] - before[start] for start, end in gap.ranges) for gap in problem.gaps
    ]


def _equal_weights(problem: Covering) -> tuple[Row, ...]:
    """The same weight for every step with excess, the best one: one pass over the gaps a try, for any size.

    The bound is concave in the weight, so narrowing an interval around its maximum finds it.
    """
    steps = [i for i, excess in enumerate(problem.excess_bytes) if excess]
    before = problem.over_full_before
    sizes = np.array([gap.size_bytes for gap in problem.gaps], dtype=np.float64)
    covered = np.array([sum(before[e] - before[s] for s, e in gap.ranges) for gap in problem.gaps], dtype=np.float64)
    buffers, owner = np.unique([gap.buffer for gap in problem.gaps], return_inverse=True)
    writes = np.array([problem.write_bytes[b] for b in buffers.tolist()], dtype=np.float64)
    excess = float(sum(problem.excess_bytes))

    def value(weight: float) -> float:
        unpaid = np.bincount(owner, np.minimum(0.0, sizes - weight * sizes * covered))
        return float(weight * excess + np.minimum(0.0, writes + unpaid).sum())

    low, high = 0.0, 2.0
    for _ in range(60):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (left, high) if value(left) < value(right) else (low, right)
    weight = int(low * SCALE)
    return tuple(Row(step=i, apart=(), weight=weight) for i in steps) if weight else ()


def _local_ratio(problem: Covering) -> tuple[Row, ...]:
    if problem.visits > _MANY_VISITS:
        return ()
    reload_left = [float(gap.size_bytes) for gap in problem.gaps]
    write_left = {b: float(nbytes) for b, nbytes in problem.write_bytes.items()}
    missing = RangeMax(problem.excess_bytes)
    gone = [False] * len(problem.gaps)
    rows: list[Row] = []
    while True:
        need, step = missing.overall()
        if need <= 0:
            return tuple(rows)
        left = [g for g in problem.spanning[step] if not gone[g]]
        if not left:
            return tuple(rows)  # the step does not fit whatever leaves: no plan exists, and rows stay valid
        share = {g: min(problem.gaps[g].size_bytes, need) for g in left}
        price = min((reload_left[g] + write_left[problem.gaps[g].buffer]) / share[g] for g in left)
        apart = tuple(g for g in problem.spanning[step] if gone[g])
        rows.append(Row(step=step, apart=apart, weight=int(price * SCALE)))
        for g in left:
            buffer, pay = problem.gaps[g].buffer, price * share[g]
            from_reload = min(pay, reload_left[g])
            reload_left[g] -= from_reload
            write_left[buffer] = max(0.0, write_left[buffer] - (pay - from_reload))
            if reload_left[g] + write_left[buffer] <= 1e-9 * problem.gaps[g].size_bytes:
                gone[g] = True
                for start, end in problem.gaps[g].ranges:
                    missing.add(start, end, -problem.gaps[g].size_bytes)


def _linear_program(problem: Covering) -> tuple[Row, ...]:
    """Rows of single steps, weighed by the duals of the covering LP."""
    if len(problem.gaps) > _LP_GAPS:
        return ()
    import highspy  # heavy: only where a bound is asked for

    steps = [i for i, excess in enumerate(problem.excess_bytes) if excess]
    position = np.searchsorted(np.array(steps), np.arange(len(problem.excess_bytes) + 1))
    unit = float(np.median([gap.size_bytes for gap in problem.gaps]))
    n, n_steps = len(problem.gaps), len(steps)
    writers = sorted(b for b, nbytes in problem.write_bytes.items() if nbytes)
    write_column = {b: n + k for k, b in enumerate(writers)}
    first_off = n + len(writers)  # columns of the bytes off-chip at each step
    sizes = np.array([gap.size_bytes for gap in problem.gaps]) / unit

    entries: list[tuple[int, int, float]] = []
    for r in range(n_steps):
        entries.append((r, first_off + r, 1.0))
        if r:
            entries.append((r, first_off + r - 1, -1.0))
    for g, gap in enumerate(problem.gaps):
        for start, end in gap.ranges:
            a, b = int(position[start]), int(position[end])
            if a < b:
                entries.append((a, g, -sizes[g]))
                if b < n_steps:
                    entries.append((b, g, sizes[g]))
    n_rows = n_steps
    for g, gap in enumerate(problem.gaps):
        if gap.buffer in write_column:
            entries += [(n_rows, g, 1.0), (n_rows, write_column[gap.buffer], -1.0)]
            n_rows += 1

    entries.sort()
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = first_off + n_steps, n_rows
    infinity = highspy.kHighsInf
    lp.col_cost_ = np.concatenate([sizes, [problem.write_bytes[b] / unit for b in writers], np.zeros(n_steps)])
    lp.col_lower_ = np.concatenate([np.zeros(first_off), [problem.excess_bytes[i] / unit for i in steps]])
    lp.col_upper_ = np.concatenate([np.ones(first_off), np.full(n_steps, infinity)])
    lp.row_lower_ = np.concatenate([np.zeros(n_steps), np.full(n_rows - n_steps, -infinity)])
    lp.row_upper_ = np.zeros(n_rows)
    counts = np.bincount([r for r, _, _ in entries], minlength=n_rows)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(counts)])
    lp.a_matrix_.index_ = np.array([c for _, c, _ in entries])
    lp.a_matrix_.value_ = np.array([v for _, _, v in entries])
    solver = quiet_solver()
    solver.setOptionValue("time_limit", _LP_SECONDS)
    solver.passModel(lp)
    solver.run()
    duals = np.asarray(solver.getSolution().col_dual)[first_off:]
    if len(duals) != n_steps:
        return ()
    return tuple(
        Row(step=i, apart=(), weight=int(dual * SCALE))
        for i, dual in zip(steps, duals.tolist(), strict=True)
        if dual > 0
    )
