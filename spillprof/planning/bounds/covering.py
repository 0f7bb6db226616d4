"""Gap covering: which gaps must be spent off-chip in this order of steps, whatever the policy and the placement.

Any plan of the program, ours or another's, spends a set of gaps off-chip. At each step the gaps that stay on-chip and
what the step itself needs fit the pool; each gap spent costs one reload, and each buffer that was never in DRAM one
write. So the cheapest set of gaps that covers every step's excess is a lower bound on what all plans spill. Addresses,
late release and needless writes only add to it. Where every eviction writes back (``WriteBack.ALWAYS``), each gap costs
its own write instead.

Costs are integers: bytes, or what a ``Price`` makes of the bytes of one transfer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress, pairwise
from math import gcd

import numpy as np

from spillprof.ir.arrays import Ints
from spillprof.ir.memo import once_per_program
from spillprof.ir.program import BufferKind, Program
from spillprof.planning.gaps import (
    GapOption,
    Ranges,
    StepDemand,
    gap_options,
    locked_bytes,
    ranges_of,
    streamed_uses,
    unspilled_bytes,
)
from spillprof.planning.liveness import demand_by_step, least_by_step, lifetimes
from spillprof.planning.options import Inputs, PlanningOptions, Release, Start, WriteBack

Price = Callable[[int], int]
"""The cost of one transfer of so many bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """The cost of a transfer in each direction."""

    read: Price
    write: Price


BYTES = Prices(read=int, write=int)
"""Traffic alone."""


@dataclass(frozen=True, kw_only=True)
class Covering:
    """The covering problem: take at least ``excess_bytes[i]`` of gaps off-chip at every step ``i``, at least cost."""

    gaps: tuple[GapOption, ...]  # those that cover a step with excess
    excess_bytes: tuple[int, ...]  # by step; 0 where everything fits
    gap_costs: tuple[int, ...]  # by gap: its reload, and its write-back if each gap has its own
    write_costs: dict[int, int]  # by buffer: the write-back that all of its gaps share
    forced_cost: int  # of transfers that streamed operands force on every plan

    @cached_property
    def ranges(self) -> Ranges:
        """The steps that each gap covers."""
        return ranges_of(self.gaps)

    @cached_property
    def covered(self) -> Ints:
        """Steps with excess in each range. Shape (n_ranges,), int64."""
        return _over_full(self.excess_bytes, self.ranges)

    @cached_property
    def visits(self) -> int:
        """The number of (gap, step with excess) pairs: the work of one pass over all of them."""
        return int(self.covered.sum())

    @cached_property
    def spanning(self) -> dict[int, tuple[int, ...]]:
        """Gaps (by index) that cover each step with excess."""
        found: dict[int, list[int]] = {i: [] for i, excess in enumerate(self.excess_bytes) if excess}
        for g, gap in enumerate(self.gaps):
            for start, end in gap.ranges:
                for i in range(start, end):
                    if i in found:
                        found[i].append(g)
        return {i: tuple(gaps) for i, gaps in found.items()}

    @cached_property
    def unit_cost(self) -> int:
        """The greatest common divisor of all costs, which divides what a plan spills beyond the forced."""
        return gcd(*self.gap_costs, *self.write_costs.values()) or 1


def covering(program: Program, options: PlanningOptions, prices: Prices = BYTES) -> Covering:
    """The problem that bounds all plans of a fitted program. ``ValueError`` for infinite memory."""
    return _covering(program, replace(options, release=Release.LAST_USE), prices, least_by_step)


def planners_covering(program: Program, options: PlanningOptions, room_bytes: int = 0) -> Covering:
    """The problem that our planners solve: operands stay to the end of their step, buffers until their release.

    ``room_bytes`` stay free at each step, as far as gaps can free them.
    """
    return _covering(program, options, BYTES, demand_by_step, room_bytes)


def _covering(
    program: Program, options: PlanningOptions, prices: Prices, demand: StepDemand, room_bytes: int = 0
) -> Covering:
    if program.capacity_bytes is None:
        raise ValueError("infinite memory has nothing to cover")
    gaps, excess = _over_capacity(program, options, demand, room_bytes)
    copied = {b for b, _, _ in streamed_uses(program)}  # their one write is forced
    each_writes = options.writeback is WriteBack.ALWAYS
    moved = {gap.moved_bytes for gap in gaps}
    read, write = ({nbytes: price(nbytes) for nbytes in moved} for price in (prices.read, prices.write))
    own_writes: dict[int, int] = {}
    for b, nbytes in {gap.buffer: gap.moved_bytes for gap in gaps}.items():
        buffer = program.buffers[b]
        own_writes[b] = write[nbytes] if buffer.kind is BufferKind.ACTIVATION else 0
    return Covering(
        gaps=gaps,
        excess_bytes=excess,
        gap_costs=tuple(
            (0 if gap.next_use is None else read[gap.moved_bytes]) + (own_writes[gap.buffer] if each_writes else 0)
            for gap in gaps
        ),
        write_costs={b: 0 if each_writes or b in copied else cost for b, cost in own_writes.items()},
        forced_cost=_forced_cost(program, options, prices),
    )


@once_per_program
def _over_capacity(
    program: Program, options: PlanningOptions, demand: StepDemand, room_bytes: int
) -> tuple[tuple[GapOption, ...], tuple[int, ...]]:
    """Gaps that cover a step with excess, and the excess of each step."""
    gaps = gap_options(program, options)
    pool = (program.capacity_bytes or 0) - program.reserved_bytes
    locked = locked_bytes(program, options, demand)
    excess = tuple(
        max(0, nbytes - pool, min(nbytes - pool + room_bytes, nbytes - least))
        for nbytes, least in zip(unspilled_bytes(program, options, gaps, demand), locked, strict=True)
    )
    rows = ranges_of(gaps)
    is_relevant = np.zeros(len(gaps), dtype=bool)
    is_relevant[rows.gap[_over_full(excess, rows) > 0]] = True
    relevant = tuple(compress(gaps, is_relevant.tolist()))
    unit = gcd(*(gap.size_bytes for gap in relevant)) or 1  # whole buffers leave: excess rounds up to a unit
    return relevant, tuple(-(-nbytes // unit) * unit for nbytes in excess)


def _over_full(excess_bytes: Sequence[int], rows: Ranges) -> Ints:
    """Steps with excess in each range."""
    before = np.concatenate([[0], np.cumsum(np.array(excess_bytes, dtype=np.int64) > 0)])
    steps: Ints = before[rows.end] - before[rows.start]
    return steps


def _forced_cost(program: Program, options: PlanningOptions, prices: Prices) -> int:
    """Cost of the transfers that streaming forces on every plan, beyond those of infinite memory."""
    streamed = streamed_uses(program)
    if not streamed:
        return 0
    streamed_in = {(b, i) for b, i, written in streamed if not written}
    streamed_out = {(b, i) for b, i, written in streamed if written}
    lives = lifetimes(program)
    total = 0
    for b in sorted({b for b, _, _ in streamed}):
        buffer, life = program.buffers[b], lives[b]
        read, write = prices.read(buffer.moved_bytes), prices.write(buffer.moved_bytes)
        if buffer.kind is BufferKind.ACTIVATION:
            total += write  # one, however often it is streamed
        reads = life.read_steps
        first_load = buffer.kind is BufferKind.INPUT and options.inputs is Inputs.ON_DEMAND
        total += sum(read for i in reads[1 if first_load else 0 :] if (b, i) in streamed_in)
        points = life.use_steps
        pairs = list(pairwise(points))
        if buffer.kind is BufferKind.WEIGHT and program.weights_persist and options.start is Start.STEADY:
            pairs.append((points[-1], points[0]))
        for p, u in pairs:
            if ((b, p) in streamed_in or (b, p) in streamed_out) and (b, u) not in streamed_in:
                total += read  # reload
    return total
