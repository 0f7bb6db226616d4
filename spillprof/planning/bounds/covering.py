"""Gap covering: which gaps must be spent off-chip in this order of steps, whatever the policy and the placement.

Any plan of the program, ours or another's, spends a set of gaps off-chip. At each step the gaps that stay on-chip and
what the step itself needs fit the pool; each gap spent costs one reload, and each buffer that was never in DRAM one
write. So the cheapest set of gaps that covers every step's excess is a lower bound on what all plans spill. Addresses,
late release and needless writes only add to it. Where every eviction writes back (``WriteBack.ALWAYS``), each gap costs
its own write instead.

Costs are integers: bytes, or what a ``Price`` makes of the bytes of one transfer.
"""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import compress, pairwise
from math import gcd

import numpy as np

from spillprof.ir.arrays import Ints
from spillprof.ir.certificate import TiledStep
from spillprof.ir.memo import once_per_program
from spillprof.ir.program import BufferKind, Program
from spillprof.planning.bounds.family import OpenStep, family_gaps, may_be_replaced, open_steps
from spillprof.planning.gaps import (
    GapOption,
    Ranges,
    StepDemand,
    gap_options,
    in_use_unspilled,
    locked_bytes,
    ranges_of,
    streamed_uses,
)
from spillprof.planning.liveness import demand_by_step, least_by_step, lifetimes
from spillprof.planning.options import Inputs, PlanningOptions, Release, Start, WriteBack
from spillprof.planning.tiling.menus import is_open
from spillprof.planning.tiling.touched import least_read_bytes, reads_in_part

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
    tiled: tuple[TiledStep, ...] = ()  # steps that do not fit, with the least of all their modes

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
    """The problem that bounds all plans of a fitted program, however its oversized steps are tiled.

    ``ValueError`` for infinite memory.
    """
    prompt = replace(options, release=Release.LAST_USE)
    closed = _covering(program, prompt, prices, least_by_step)
    opened = open_steps(program, prompt, [i for i, excess in enumerate(closed.excess_bytes) if excess])
    return _family_covering(program, prompt, prices, opened) if opened or reads_in_part(program) else closed


def covering_in_modes(program: Program, options: PlanningOptions) -> Covering:
    """The problem that bounds the plans in which steps run in the modes that they have; without one, they hold all."""
    return _covering(program, replace(options, release=Release.LAST_USE), BYTES, least_by_step)


def _family_covering(
    program: Program, options: PlanningOptions, prices: Prices, opened: dict[int, OpenStep]
) -> Covering:
    streamed = frozenset((b, i) for b, i, _ in streamed_uses(program))
    demand = least_by_step(program).copy()
    for i, step in opened.items():
        demand[i] = step.demand_bytes
    gaps = family_gaps(program, options, opened, streamed)
    free = {b for step in opened.values() for b in step.covered}
    locked = locked_bytes(program, options, lambda _: demand, may_be_replaced(program))
    found = _excess_of(program, gaps, locked, 0)
    beyond = sum(step.excess_bytes for step in opened.values())
    forced = _forced_cost(program, options, prices, partial(least_read_bytes, program))
    problem = _priced(program, options, prices, *found, forced, written_once=free)
    tiled = tuple(
        TiledStep(step=i, footprint_bytes=step.footprint_bytes, excess_bytes=step.excess_bytes)
        for i, step in sorted(opened.items())
        if step.footprint_bytes or step.excess_bytes
    )
    return replace(problem, forced_cost=forced + _more(prices.read, beyond), tiled=tiled)


_ONE_TRANSFER = 1 << 20


def _more(price: Price, nbytes: int) -> int:
    """The least that so many bytes add to transfers, without a set-up of their own."""
    return max(0, price(_ONE_TRANSFER + nbytes) - price(_ONE_TRANSFER) - (price is not int)) if nbytes > 0 else 0


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
    forced = _forced_cost(program, options, prices, lambda _, b: program.buffers[b].moved_bytes)
    return _priced(program, options, prices, gaps, excess, forced, written_once=frozenset())


def _priced(
    program: Program,
    options: PlanningOptions,
    prices: Prices,
    gaps: tuple[GapOption, ...],
    excess: tuple[int, ...],
    forced_cost: int,
    written_once: Set[int],
) -> Covering:
    """``written_once``: buffers that are written once even where each eviction writes: tiles may have written them."""
    copied = {b for b, _, _ in streamed_uses(program)}  # their one write is forced
    each_writes = options.writeback is WriteBack.ALWAYS
    read = {nbytes: prices.read(nbytes) for nbytes in {gap.moved_bytes for gap in gaps}}
    own_writes: dict[int, int] = {}
    for b in {gap.buffer for gap in gaps}:
        buffer = program.buffers[b]
        own_writes[b] = prices.write(buffer.moved_bytes) if buffer.kind is BufferKind.ACTIVATION else 0

    def own(gap: GapOption) -> int:
        return own_writes[gap.buffer] if each_writes and gap.buffer not in written_once else 0

    def shared(b: int, cost: int) -> int:
        return 0 if b in copied or (each_writes and b not in written_once) else cost

    return Covering(
        gaps=gaps,
        excess_bytes=excess,
        gap_costs=tuple((0 if gap.next_use is None else read[gap.moved_bytes]) + own(gap) for gap in gaps),
        write_costs={b: shared(b, cost) for b, cost in own_writes.items()},
        forced_cost=forced_cost,
    )


@once_per_program
def _over_capacity(
    program: Program, options: PlanningOptions, demand: StepDemand, room_bytes: int
) -> tuple[tuple[GapOption, ...], tuple[int, ...]]:
    """Gaps that cover a step with excess, and the excess of each step."""
    gaps = gap_options(program, options)
    return _excess_of(program, gaps, locked_bytes(program, options, demand), room_bytes)


def _excess_of(
    program: Program, gaps: tuple[GapOption, ...], locked: Sequence[int], room_bytes: int
) -> tuple[tuple[GapOption, ...], tuple[int, ...]]:
    pool = (program.capacity_bytes or 0) - program.reserved_bytes
    excess = tuple(
        max(0, nbytes - pool, min(nbytes - pool + room_bytes, nbytes - least))
        for nbytes, least in zip(in_use_unspilled(gaps, locked), locked, strict=True)
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


def _forced_cost(program: Program, options: PlanningOptions, prices: Prices, brought: Callable[[int, int], int]) -> int:
    """Cost of the transfers that streaming forces on every plan, beyond those of infinite memory.

    ``brought``: the fewest bytes that bring a buffer, which is off-chip, to a step: by step, then buffer.
    """
    streamed = streamed_uses(program)
    if not streamed:
        return 0
    streamed_in = {(b, i) for b, i, written in streamed if not written}
    streamed_out = {(b, i) for b, i, written in streamed if written}
    traffic = _traffic_in_modes(program)
    lives = lifetimes(program)
    total = _more(prices.read, sum(step.weight_repeat_bytes for step in program.steps))
    for b in sorted({b for b, _, _ in streamed}):
        buffer, life = program.buffers[b], lives[b]
        moved = buffer.moved_bytes
        if buffer.kind is BufferKind.ACTIVATION:
            total += prices.write(moved)  # one, however often it is streamed
        reads = life.read_steps
        first_load = buffer.kind is BufferKind.INPUT and options.inputs is Inputs.ON_DEMAND
        for k, i in enumerate(reads):
            if (b, i) in streamed_in:
                read = traffic.get((b, i), moved)
                total += _more(prices.read, read - moved)
                total += 0 if first_load and not k else prices.read(min(read, moved))
        if life.write_step is not None and (b, life.write_step) in streamed_out:
            total += _more(prices.write, traffic.get((b, life.write_step), moved) - moved)
        points = life.use_steps
        pairs = list(pairwise(points))
        if buffer.kind is BufferKind.WEIGHT and program.weights_persist and options.start is Start.STEADY:
            pairs.append((points[-1], points[0]))
        for p, u in pairs:
            if ((b, p) in streamed_in or (b, p) in streamed_out) and (b, u) not in streamed_in:
                total += prices.read(brought(u, b))  # reload
    return total


def _traffic_in_modes(program: Program) -> dict[tuple[int, int], int]:
    """Bytes of each (buffer, step) that the step's mode streams, in both directions."""
    return {
        (each.buffer, i): each.read_bytes + each.written_bytes
        for i, step in enumerate(program.steps)
        if step.mode is not None
        for each in step.mode.traffic
    }


def has_open_steps(program: Program, options: PlanningOptions) -> bool:
    """Whether a plan of a fitted program that must spill may choose how some step is tiled."""
    excess = covering_in_modes(program, options).excess_bytes
    return reads_in_part(program) or any(
        is_open(step) for step, nbytes in zip(program.steps, excess, strict=True) if nbytes
    )
