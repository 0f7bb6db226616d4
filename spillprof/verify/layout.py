"""Checks a layout by a sweep over time, independently of how its offsets were found."""

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence

from spillprof.ir.layout_problem import LayoutProblem

Placed = tuple[int, int, int]
"""(offset, end, buffer) of a buffer in use."""


def layout_faults(problem: LayoutProblem, offsets: Sequence[int]) -> tuple[str, ...]:
    """The faults of the offsets, one line each; empty if they are legal."""
    if len(offsets) != len(problem.buffers):
        return (f"{len(offsets)} offsets for {len(problem.buffers)} buffers",)
    return (*_misplaced(problem, offsets), *_overlaps(problem, offsets))


def _misplaced(problem: LayoutProblem, offsets: Sequence[int]) -> Iterator[str]:
    for buffer, offset in zip(problem.buffers, offsets, strict=True):
        if offset < 0:
            yield f"'{buffer.name}' lies at offset {offset}"
        elif offset % problem.alignment_bytes:
            yield f"'{buffer.name}' lies at offset {offset}, which is no multiple of {problem.alignment_bytes}"


def _overlaps(problem: LayoutProblem, offsets: Sequence[int]) -> Iterator[str]:
    """At each start of a buffer, it must fit between its neighbours among those in use, which are disjoint."""
    changes = []
    for k, (buffer, offset) in enumerate(zip(problem.buffers, offsets, strict=True)):
        if buffer.size_bytes:
            changes += [(buffer.lower, 1, offset, k), (buffer.upper, 0, offset, k)]  # at one time, ends come first
    in_use: list[Placed] = []
    outside: set[int] = set()  # buffers that overlap another: left out of the sweep
    for _, starts, offset, k in sorted(changes):
        placed = (offset, offset + problem.buffers[k].size_bytes, k)
        if not starts:
            if k not in outside:
                del in_use[bisect_left(in_use, placed)]
            continue
        i = bisect_left(in_use, placed)
        clash = next((p for p in in_use[max(i - 1, 0) : i + 1] if p[1] > offset and placed[1] > p[0]), None)
        if clash is None:
            insort(in_use, placed)
        else:
            outside.add(k)
            yield f"'{problem.buffers[k].name}' at offset {offset} overlaps '{problem.buffers[clash[2]].name}'"
