"""The covering problem reduced for solvers: without the steps that others imply, in compressed time.

Step k implies step i if D_i + (bytes of gaps that cover k and not i) <= D_k, for these can take at most D_k - D_i off
step k. Each step is compared with the last one kept, forwards and backwards in turn, one pass over the gaps each. Gaps
that cover no remaining step stay on-chip; the others become intervals of the remaining steps.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spillprof.ir.arrays import Ints
from spillprof.planning.bounds.covering import Covering
from spillprof.planning.gaps import Ranges

_PASSES = 6


@dataclass(frozen=True, kw_only=True)
class Reduced:
    """A reduced covering problem: rows are the remaining steps, columns the gaps that cover one."""

    steps: list[int]
    needs: Ints  # bytes to take off each row
    gaps: list[int]  # index into Covering.gaps of each column
    covered: Ranges  # rows that each column covers
    sizes: Ints  # bytes, by column
    costs: Ints  # of each column alone
    buffers: list[int]  # Program buffer of each column
    write_costs: dict[int, int]  # by buffer, shared by its columns; those above 0

    @cached_property
    def visits(self) -> int:
        """(column, row) pairs."""
        return int((self.covered.end - self.covered.start).sum())

    @cached_property
    def ranges(self) -> list[tuple[tuple[int, int], ...]]:
        """Rows that each column covers."""
        found: list[list[tuple[int, int]]] = [[] for _ in self.gaps]
        for c, start, end in zip(*(column.tolist() for column in self.covered), strict=True):
            found[c].append((start, end))
        return [_joined(sorted(ranges)) for ranges in found]

    @cached_property
    def members(self) -> list[Ints]:
        """Columns that cover each row, ascending."""
        found: list[list[int]] = [[] for _ in self.steps]
        for c, ranges in enumerate(self.ranges):
            for start, end in ranges:
                for row in found[start:end]:
                    row.append(c)
        return [np.array(columns, dtype=np.int64) for columns in found]


def reduce(problem: Covering) -> Reduced:
    """The problem without implied steps and without gaps that cover none of the others."""
    steps = [i for i, excess in enumerate(problem.excess_bytes) if excess]
    for number in range(_PASSES):
        kept = _backwards(problem, steps) if number % 2 else _forwards(problem, steps)
        if len(kept) == len(steps) and number:
            break
        steps = kept
    starts, ends = (np.searchsorted(steps, at) for at in (problem.ranges.start, problem.ranges.end))
    left = np.flatnonzero(starts < ends)
    used, columns = np.unique(problem.ranges.gap[left], return_inverse=True)
    gaps = used.tolist()
    buffers = [problem.gaps[g].buffer for g in gaps]
    return Reduced(
        steps=steps,
        needs=np.array([problem.excess_bytes[i] for i in steps], dtype=np.int64),
        gaps=gaps,
        covered=Ranges(columns, starts[left], ends[left]),
        sizes=np.array([problem.gaps[g].size_bytes for g in gaps], dtype=np.int64),
        costs=np.array([problem.gap_costs[g] for g in gaps], dtype=np.int64),
        buffers=buffers,
        write_costs={b: problem.write_costs[b] for b in sorted(set(buffers)) if problem.write_costs[b]},
    )


def _joined(ranges: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Adjacent ranges merged."""
    joined: list[tuple[int, int]] = []
    for start, end in ranges:
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return tuple(joined)


def _forwards(problem: Covering, steps: list[int]) -> list[int]:
    """Steps that the previous kept one does not imply."""
    starts, ends, sizes = _sorted_ranges(problem, problem.ranges.end)
    excess = problem.excess_bytes
    kept: list[int] = []
    at = only_there = 0  # bytes of gaps that cover the last kept step and ended since
    last = -1  # the last kept step
    for i in steps:
        while at < len(ends) and ends[at] <= i:
            if starts[at] <= last < ends[at]:
                only_there += sizes[at]
            at += 1
        if last < 0 or excess[i] + only_there > excess[last]:
            kept.append(i)
            last, only_there = i, 0
    return kept


def _backwards(problem: Covering, steps: list[int]) -> list[int]:
    """Steps that the next kept one does not imply."""
    starts, ends, sizes = _sorted_ranges(problem, -problem.ranges.start)
    excess = problem.excess_bytes
    kept: list[int] = []
    at = only_there = 0
    last = -1
    for i in reversed(steps):
        while at < len(starts) and starts[at] > i:
            if starts[at] <= last < ends[at]:
                only_there += sizes[at]
            at += 1
        if last < 0 or excess[i] + only_there > excess[last]:
            kept.append(i)
            last, only_there = i, 0
    kept.reverse()
    return kept


def _sorted_ranges(problem: Covering, by: Ints) -> tuple[list[int], list[int], list[int]]:
    """(start, end, bytes of its gap) of each range, in ascending order of ``by``."""
    order = np.argsort(by, kind="stable")
    sizes = np.array([gap.size_bytes for gap in problem.gaps], dtype=np.int64)[problem.ranges.gap]
    starts, ends, nbytes = (column[order].tolist() for column in (problem.ranges.start, problem.ranges.end, sizes))
    return starts, ends, nbytes
