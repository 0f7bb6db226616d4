"""Knapsack cover rows that a fractional solution violates: whole buffers leave, not parts of them.

With a set A apart, the other gaps must cover need - size(A), and none of them counts for more than that. Of each
step, the sets tried are the gaps with the largest shares, from none of them (which tightens coefficients) on.
"""

import numpy as np

from spillprof.planning.bounding.cover_lp import CoverLp, Cut, Floats
from spillprof.planning.bounding.reduction import Integers, Reduced

MOST_VISITS = 400_000
"""(column, row) pairs up to which violated rows are looked for."""

_ROUNDS = 30
_CUTS_A_ROUND = 400
_MOST_SETS = 40  # of a row that are tried
_VIOLATED_BY = 1e-4  # of the need
_GAINS = 1e-5  # of the bound, in three rounds: below, further cuts are not worth it


def add_cuts(lp: CoverLp, reduced: Reduced) -> None:
    """Add violated rows to a solved program, and solve it again, until none is left or they gain nothing."""
    if reduced.visits > MOST_VISITS:
        return
    values = [lp.value]
    for _ in range(_ROUNDS):
        cuts = _violated(reduced, lp.shares)
        if not cuts:
            return
        lp.add(cuts)
        lp.solve()
        values.append(lp.value)
        if not lp.solved or (len(values) > 3 and values[-1] <= values[-4] * (1 + _GAINS)):
            return


def _violated(reduced: Reduced, shares: Floats) -> list[Cut]:
    fractional = (shares > 1e-7) & (shares < 1 - 1e-7)
    found: list[tuple[float, int, tuple[int, ...]]] = []
    for r, members in enumerate(reduced.members):
        if fractional[members].any():
            by, apart = _worst_set(reduced.sizes[members], shares[members], int(reduced.needs[r]))
            if by > _VIOLATED_BY:
                found.append((by, r, tuple(members[apart].tolist())))
    found.sort(key=lambda cut: (-cut[0], cut[1]))
    return [(r, apart) for _, r, apart in found[:_CUTS_A_ROUND]]


def _worst_set(sizes: Integers, shares: Floats, need: int) -> tuple[float, list[int]]:
    """(violation as a share of the need that is left, the set A), of the sets of largest shares."""
    order = np.lexsort((-sizes, -shares))
    sizes, shares = sizes[order], shares[order]
    left = need - np.concatenate([[0], np.cumsum(sizes)[:-1]])
    n_sets = int(np.count_nonzero(left > 0))
    tried = np.arange(n_sets) if n_sets <= _MOST_SETS else np.linspace(0, n_sets - 1, _MOST_SETS).astype(np.int64)
    covers = np.minimum(sizes[None, :], left[tried, None]) * shares[None, :]
    covers *= np.arange(len(sizes))[None, :] >= tried[:, None]
    by = 1 - covers.sum(axis=1) / left[tried]
    best = int(by.argmax())
    return float(by[best]), sorted(order[: tried[best]].tolist())
