"""Strategy ``interval``: chooses over the whole run which gaps are spent off-chip, before any address is given.

While some step is over capacity, take the worst such step and send off-chip, for its whole gap, the gap spanning
it with the greatest length x size. Then take back, dearest first, what still fits.

Screening puts gaps that are hardly worth a spill last. Each test that a gap fails costs it a point, and gaps with fewer
points lost are taken first:

| test | passes if | because |
| --- | --- | --- |
| span | at least MIN_SPAN steps lie between the uses | the space must be free for a while, and the reload takes time |
| size | set-up is at most half of the transfer | small buffers pay a fixed cost for little space |
| next use | at most CLOSE_USES other uses follow within the span of the gap | it would be reloaded again and again |

Operands of the step at hand and pinned buffers are never offered.
"""

from bisect import bisect_right
from collections.abc import Sequence

from spillprof.ir.program import Program
from spillprof.ir.target import Target
from spillprof.planning.gaps import GapOption, WriteBacks, gap_options, unspilled_bytes
from spillprof.planning.liveness import lifetimes
from spillprof.planning.options import PlanningOptions
from spillprof.planning.range_max import RangeMax, StabbingIndex

MIN_SPAN = 2
CLOSE_USES = 4


def points_lost(gap: GapOption, read_steps: Sequence[int], target: Target) -> int:
    """Screening tests that the gap fails, 0 to 3. ``read_steps``: those of its buffer, ascending."""
    lost = 0
    if gap.length < MIN_SPAN:
        lost += 1
    if gap.moved_bytes / target.dram_read_bytes_per_s < target.dram_read_setup_s:
        lost += 1
    if gap.next_use is not None:
        later = bisect_right(read_steps, gap.next_use)
        if bisect_right(read_steps, gap.next_use + gap.length) - later > CLOSE_USES:
            lost += 1
    return lost


def choose_gaps(program: Program, target: Target, options: PlanningOptions) -> list[tuple[GapOption, int]]:
    """The gaps to spend off-chip so that the rest fits, each with the step that forces it, in program order."""
    if program.capacity_bytes is None or not program.steps:
        return []
    pool = program.capacity_bytes - program.reserved_bytes
    every_gap = gap_options(program, options)
    unspilled = unspilled_bytes(program, options, every_gap)
    if max(unspilled) <= pool:
        return []
    lives = lifetimes(program)
    gaps = sorted(
        every_gap,
        key=lambda g: (points_lost(g, lives[g.buffer].read_steps, target), -g.length * g.size_bytes),
    )
    in_use = RangeMax(unspilled)
    spanning = StabbingIndex(len(program.steps))
    for rank, gap in enumerate(gaps):
        for start, end in gap.ranges:
            spanning.append(rank, start, end)

    forced_by: dict[int, int] = {}
    taken = [False] * len(gaps)
    while True:
        most, step = in_use.overall()
        if most <= pool:
            break
        best = spanning.first(step, taken)
        if best is None:  # no gap can help: what is locked does not fit, which placement reports
            in_use.add(step, step + 1, -most)
            continue
        taken[best] = True
        forced_by[best] = step
        _add(in_use, gaps[best], -1)

    for rank in _dearest_first(WriteBacks(program, options.writeback), gaps, list(forced_by)):
        gap = gaps[rank]
        if max(in_use.max(start, end) for start, end in gap.ranges) + gap.size_bytes <= pool:
            _add(in_use, gap, 1)
            del forced_by[rank]
    chosen = [(gaps[rank], step) for rank, step in forced_by.items()]
    return sorted(chosen, key=lambda item: (item[0].buffer, item[0].last_use))


def _add(in_use: RangeMax, gap: GapOption, sign: int) -> None:
    for start, end in gap.ranges:
        in_use.add(start, end, sign * gap.size_bytes)


def _dearest_first(write_backs: WriteBacks, gaps: list[GapOption], ranks: list[int]) -> list[int]:
    """Ranks by bytes moved: the reload, and an equal share of the extra writes of the buffer's evictions."""
    chosen: dict[int, int] = {}
    for rank in ranks:
        chosen[gaps[rank].buffer] = chosen.get(gaps[rank].buffer, 0) + 1

    def moved(rank: int) -> float:
        gap = gaps[rank]
        first, later = (write_backs.adds_write(gap.buffer, evicted_before=before) for before in (False, True))
        writes = first + later * (chosen[gap.buffer] - 1)
        return gap.moved_bytes * ((gap.next_use is not None) + writes / chosen[gap.buffer])

    return sorted(ranks, key=lambda rank: (-moved(rank), gaps[rank].buffer, gaps[rank].last_use))
