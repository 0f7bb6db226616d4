"""Gap covering: which gaps must be spent off-chip in this order, whatever the policy and the placement.

Any plan of the program, ours or another's, chooses a set of gaps in which a buffer is not on-chip all the time. At
each step the gaps that stay, with what the step itself needs, fit the pool; each gap that goes costs one reload, and
each buffer that was never in DRAM one write. So the cheapest set of gaps that covers every step's excess is a bound
on what all plans spill. Addresses, late release and needless writes only add to it. Where every eviction is written
back (``WriteBack.ALWAYS``), a gap costs its own write instead.

Costs are integers: bytes, or whatever a ``Price`` makes of the bytes of one transfer.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from math import gcd

from spillprof.model.program import BufferKind, Program
from spillprof.planning.gaps import GapOption, StepDemand, gap_options, locked_bytes, unspilled_bytes
from spillprof.planning.liveness import demand_by_step, least_by_step, lifetimes
from spillprof.planning.options import Inputs, PlanningOptions, Release, Start, WriteBack

Price = Callable[[int], int]
"""What one transfer of so many bytes costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What a transfer costs in each direction."""

    read: Price
    write: Price


BYTES = Prices(read=int, write=int)
"""Traffic alone."""


@dataclass(frozen=True, kw_only=True)
class Covering:
    """The cheapest way to take at least ``excess_bytes[i]`` of gaps off-chip at every step ``i``."""

    gaps: tuple[GapOption, ...]  # those that cover a step with excess
    excess_bytes: tuple[int, ...]  # by step; 0 where everything fits
    gap_costs: tuple[int, ...]  # by gap: of its reload, and of its write-back if each gap has its own
    write_costs: dict[int, int]  # by buffer: of the write-back that all of its gaps share
    forced_cost: int  # of what every plan moves: streamed operands and what they force

    @cached_property
    def over_full_before(self) -> tuple[int, ...]:
        """Steps with excess before each step, and in all. Shape (n_steps + 1,)."""
        return tuple(accumulate((nbytes > 0 for nbytes in self.excess_bytes), initial=0))

    @cached_property
    def visits(self) -> int:
        """How many (gap, step with excess) pairs there are: the work of looking at each."""
        before = self.over_full_before
        return sum(before[end] - before[start] for gap in self.gaps for start, end in gap.ranges)

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
        """The largest number that divides every cost: what a plan spills beyond the forced is a multiple of it."""
        return gcd(*self.gap_costs, *self.write_costs.values()) or 1


def covering(program: Program, options: PlanningOptions, prices: Prices = BYTES) -> Covering:
    """The problem that bounds every plan of a fitted program. ``ValueError`` for infinite memory."""
    return _covering(program, replace(options, release=Release.LAST_USE), prices, least_by_step)


def planners_covering(program: Program, options: PlanningOptions, room_bytes: int = 0) -> Covering:
    """The problem that our planners solve: operands stay to the end of their step, buffers as the options say.

    ``room_bytes`` are left free at each step, as far as gaps can do that.
    """
    return _covering(program, options, BYTES, demand_by_step, room_bytes)


def _covering(
    program: Program, options: PlanningOptions, prices: Prices, demand: StepDemand, room_bytes: int = 0
) -> Covering:
    if program.capacity_bytes is None:
        raise ValueError("infinite memory has nothing to cover")
    gaps = gap_options(program, options)
    pool = program.capacity_bytes - program.reserved_bytes
    locked = locked_bytes(program, options, demand)
    excess = tuple(
        max(0, nbytes - pool, min(nbytes - pool + room_bytes, nbytes - least))
        for nbytes, least in zip(unspilled_bytes(program, options, gaps, demand), locked, strict=True)
    )
    before = tuple(accumulate((nbytes > 0 for nbytes in excess), initial=0))
    relevant = tuple(g for g in gaps if any(before[end] > before[start] for start, end in g.ranges))
    unit = gcd(*(gap.size_bytes for gap in relevant)) or 1  # whole buffers go: nothing less than a unit is of use
    excess = tuple(-(-nbytes // unit) * unit for nbytes in excess)
    copied = {b for b, _, _ in _streamed(program)}  # their one write is forced
    each_writes = options.writeback is WriteBack.ALWAYS
    gap_costs: list[int] = []
    write_costs: dict[int, int] = {}
    for gap in relevant:
        buffer = program.buffers[gap.buffer]
        reload = 0 if gap.next_use is None else prices.read(gap.size_bytes)
        written_anyway = buffer.in_dram_at_start or buffer.kind is BufferKind.OUTPUT
        write = 0 if written_anyway else prices.write(gap.size_bytes)
        gap_costs.append(reload + (write if each_writes else 0))
        write_costs[gap.buffer] = 0 if each_writes or gap.buffer in copied else write
    return Covering(
        gaps=relevant,
        excess_bytes=excess,
        gap_costs=tuple(gap_costs),
        write_costs=write_costs,
        forced_cost=_forced_cost(program, options, prices),
    )


def _streamed(program: Program) -> Iterator[tuple[int, int, bool]]:
    """(buffer, step, whether it is written) of each streamed operand."""
    for i, step in enumerate(program.steps):
        yield from ((b, i, False) for b in step.streamed_reads)
        yield from ((b, i, True) for b in step.streamed_writes)


def _forced_cost(program: Program, options: PlanningOptions, prices: Prices) -> int:
    """Of what streamed operands and their neighbours move in every plan, beyond what infinite memory moves too."""
    streamed = list(_streamed(program))
    streamed_in = {(b, i) for b, i, written in streamed if not written}
    streamed_out = {(b, i) for b, i, written in streamed if written}
    lives = lifetimes(program)
    total = 0
    for b in sorted({b for b, _, _ in streamed}):
        buffer, life = program.buffers[b], lives[b]
        read, write = prices.read(buffer.size_bytes), prices.write(buffer.size_bytes)
        if not buffer.in_dram_at_start and buffer.kind is not BufferKind.OUTPUT:
            total += write  # one, streamed or not
        reads = life.read_steps
        first_load = buffer.kind is BufferKind.INPUT and options.inputs is Inputs.ON_DEMAND
        total += sum(read for i in reads[1 if first_load else 0 :] if (b, i) in streamed_in)
        points = reads if life.write_step is None else (life.write_step, *reads)
        pairs = list(pairwise(points))
        if buffer.kind is BufferKind.WEIGHT and program.weights_persist and options.start is Start.STEADY:
            pairs.append((points[-1], points[0]))
        for p, u in pairs:
            if ((b, p) in streamed_in or (b, p) in streamed_out) and (b, u) not in streamed_in:
                total += read  # reload
    return total
