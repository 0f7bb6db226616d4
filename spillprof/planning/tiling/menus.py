"""Menus: the modes that a step of a program may take in its pool, each with what it needs and what it moves."""

from bisect import bisect_left
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import prod

from spillprof.ir.loop_nest import Tiling
from spillprof.ir.memo import once_per_program
from spillprof.ir.modes import OperandTraffic, StepMode, StepNest
from spillprof.ir.program import BufferKind, Program, Step
from spillprof.ir.tiled import step_in_mode
from spillprof.planning.options import Inputs
from spillprof.planning.tiling.cost import TileBuffers
from spillprof.planning.tiling.modes import Mode, modes, smallest_mode

MOST_STREAMED = 4
"""Operands of which all subsets are tried as streamed: the largest ones. Besides, all together are."""

_FOOTPRINTS = 4  # modes for one choice of held operands
_LESS_ROOM = 0.6  # of the footprint before: modes that differ less are one


@dataclass(frozen=True, slots=True, kw_only=True)
class MenuItem:
    """A way to run a step."""

    mode: StepMode | None  # None: all operands are held
    demand_bytes: int  # of the pool, in the fullest phase
    streamed: frozenset[int] = frozenset()  # buffers that pass in tiles

    @property
    def moved_bytes(self) -> int:
        """DRAM bytes of what passes in tiles."""
        return 0 if self.mode is None else self.mode.moved_bytes


def demand_of(program: Program, step: Step, streamed: Set[int] | None = None) -> int:
    """Pool bytes that a step needs in its fullest phase, as ``liveness.demand_by_step`` counts.

    ``streamed``: the operands that pass in tiles, if not those of the step.
    """
    gone = {*step.streamed_reads, *step.streamed_writes} if streamed is None else streamed
    size = [0 if b.dedicated else b.size_bytes for b in (program.buffers[b] for b in (*step.reads, *step.writes))]
    replaced = {update.old for update in step.updates}
    read = kept = written = 0
    for b, nbytes in zip(step.reads, size, strict=False):
        if b not in gone:
            read += nbytes
            kept += 0 if b in replaced else nbytes
    for b, nbytes in zip(step.writes, size[len(step.reads) :], strict=True):
        written += 0 if b in gone else nbytes
    phases = [read, kept + written, kept + written]
    for workspace in step.workspaces:
        for phase in range(workspace.first, workspace.last + 1):
            phases[phase] += workspace.size_bytes
    return max(phases) + step.stream_staging_bytes


@once_per_program
def menu(program: Program, i: int, inputs: Inputs = Inputs.ON_DEMAND) -> tuple[MenuItem, ...]:
    """The ways to run step ``i`` of a fitted program that fit its pool, none worse than another in all respects.

    The one that holds everything comes first, where it fits; then those that stream less. Empty if no tile fits. A step
    without known loops has one way. Operands that have a dedicated slot, or stay for the whole run, are held.
    """
    step = program.steps[i]
    pool = (program.capacity_bytes or 0) - program.reserved_bytes
    untiled = MenuItem(mode=None, demand_bytes=demand_of(program, step))
    found = [untiled] if untiled.demand_bytes <= pool else []
    if step.nest is None or step.streamed_reads or step.streamed_writes:
        return tuple(found)
    operands = (*step.reads, *step.writes)
    free = [b for b in _streamable(program, step, step.nest) if not _stays(program, b, inputs)]
    for streamed in _subsets(program, step, free, pool):
        bare = step_in_mode(
            program, StepMode(step=i, tiling=_NONE, footprint_bytes=0, tiles=1, traffic=_bare(streamed))
        )
        held = demand_of(program, bare)
        if held > pool:
            continue
        gone = frozenset(streamed)
        held_places = frozenset(k for k, b in enumerate(operands) if b not in gone)
        for nest, mode in _modes(step.nest, held_places, pool - held, program.alignment_bytes):
            made = _step_mode(program, i, nest, mode)
            found.append(MenuItem(mode=made, demand_bytes=held + made.footprint_bytes, streamed=gone))
    return _not_worse(found)


def smallest_demand(program: Program, i: int) -> tuple[int, Mode | None]:
    """The fewest pool bytes that step ``i`` needs with everything streamed that may be; and its tiling."""
    step = program.steps[i]
    if step.nest is None:
        return demand_of(program, step), None
    operands = (*step.reads, *step.writes)
    streamed = tuple(_streamable(program, step, step.nest))
    gone = frozenset(streamed)
    bare = step_in_mode(program, StepMode(step=i, tiling=_NONE, footprint_bytes=0, tiles=1, traffic=_bare(streamed)))
    held_places = frozenset(k for k, b in enumerate(operands) if b not in gone)
    nests = [nest for nest in (step.nest, step.nest.in_two_passes) if nest is not None]
    least = min(
        (smallest_mode(n.nest, _buffers(n, program.alignment_bytes), n.operands_at(held_places)) for n in nests),
        key=lambda mode: mode.cost.footprint_bytes,
    )
    tiled = demand_of(program, bare) + least.cost.footprint_bytes
    untiled = demand_of(program, step)
    return (untiled, None) if untiled <= tiled else (tiled, least)


_NONE = Tiling(tile=(), order=())


def _bare(streamed: Sequence[int]) -> tuple[OperandTraffic, ...]:
    return tuple(OperandTraffic(buffer=b, read_bytes=0, written_bytes=0, passes=1, transfers=1) for b in streamed)


def _streamable(program: Program, step: Step, nest: StepNest) -> list[int]:
    """Operands that may pass in tiles: what the nest knows, without dedicated slots. The largest first."""
    operands = (*step.reads, *step.writes)
    known = {operands[place] for place in nest.places if place is not None}
    free = [b for b in known if not program.buffers[b].dedicated and program.buffers[b].size_bytes]
    place = {b: k for k, b in enumerate(operands)}
    return sorted(free, key=lambda b: (-program.buffers[b].size_bytes, place[b]))


def _stays(program: Program, b: int, inputs: Inputs) -> bool:
    return inputs is Inputs.RESIDENT and program.buffers[b].kind is BufferKind.INPUT


def _subsets(program: Program, step: Step, free: Sequence[int], pool_bytes: int) -> list[tuple[int, ...]]:
    """Sets of operands to stream, fewest bytes first.

    All sets of the largest few operands; of more, as many of the largest as make the rest fit, and all.
    """
    few = free[:MOST_STREAMED]
    found = [chosen for count in range(1, len(few) + 1) for chosen in combinations(few, count)]
    if len(free) > len(few):
        counts = range(len(few) + 1, len(free))
        enough = bisect_left(counts, True, key=lambda count: demand_of(program, step, {*free[:count]}) < pool_bytes)
        first = len(few) + 1 + enough
        tried = (first + (len(free) - first) * share // 8 for share in (0, 1, 2, 4, 8))  # tiles need room too
        found += [tuple(free[:count]) for count in dict.fromkeys(tried)]
    return sorted(found, key=lambda chosen: sum(program.buffers[b].size_bytes for b in chosen))


def _buffers(nest: StepNest, alignment_bytes: int) -> TileBuffers:
    return TileBuffers(accumulator_bits=nest.accumulator_bits, alignment_bytes=alignment_bytes)


@lru_cache(maxsize=8192)
def _modes(
    nest: StepNest, held_places: frozenset[int], room_bytes: int, alignment_bytes: int
) -> tuple[tuple[StepNest, Mode], ...]:
    """Modes with these operands held: the fewest bytes first, the fewest tiles worth their bytes, and smaller ones."""
    for each in (nest, nest.in_two_passes):
        if each is None:
            continue
        found = modes(each.nest, room_bytes, _buffers(each, alignment_bytes), each.operands_at(held_places))
        if found:
            kept = [found[0]]
            for mode in sorted(found[1:], key=lambda m: -m.cost.footprint_bytes):
                if mode.cost.footprint_bytes <= _LESS_ROOM * kept[-1].cost.footprint_bytes and len(kept) < _FOOTPRINTS:
                    kept.append(mode)
            quick = min(found, key=lambda m: m.cost.moved_bytes + _TILE_BYTES * m.cost.tiles)
            smallest = min(found, key=lambda m: m.cost.footprint_bytes)
            kept += [mode for mode in dict.fromkeys((quick, smallest)) if mode not in kept]
            return tuple((each, mode) for mode in kept)
    return ()


_TILE_BYTES = 4096  # that a mode may move to have a tile less


def _step_mode(program: Program, i: int, nest: StepNest, mode: Mode) -> StepMode:
    """The mode in terms of the program's buffers."""
    step, cost, tiling = program.steps[i], mode.cost, mode.tiling
    operands, trips = (*step.reads, *step.writes), tiling.trips(nest.nest)
    traffic: dict[int, OperandTraffic] = {}
    weight_passes, weight_repeat_bytes = 1, 0
    for p, (operand, place) in enumerate(zip(nest.nest.operands, nest.places, strict=True)):
        if p in tiling.held:
            continue
        passes = cost.passes[p]
        if place is None:
            weight_passes = max(weight_passes, passes)
            weight_repeat_bytes += max(0, cost.read_bytes[p] - operand.nbytes)
            continue
        b = operands[place]
        own = prod(trips[axis] for axis in operand.axes)
        moved = program.buffers[b].moved_bytes
        read, written = (
            as_moved(nbytes, operand.nbytes, moved) for nbytes in (cost.read_bytes[p], cost.written_bytes[p])
        )
        visits = passes * own + ((passes - 1) * own if operand.is_output else 0)
        known = traffic.get(b)
        traffic[b] = OperandTraffic(
            buffer=b,
            read_bytes=read + (known.read_bytes if known else 0),
            written_bytes=written + (known.written_bytes if known else 0),
            passes=passes + (known.passes if known else 0),
            transfers=visits + (known.transfers if known else 0),
        )
    return StepMode(
        step=i,
        tiling=tiling,
        footprint_bytes=cost.footprint_bytes,
        tiles=cost.tiles,
        traffic=tuple(traffic[b] for b in operands if b in traffic),
        weight_passes=weight_passes,
        weight_repeat_bytes=weight_repeat_bytes,
        in_two_passes=nest is step.nest.in_two_passes if step.nest else False,
    )


def as_moved(nbytes: int, whole_bytes: int, moved_bytes: int) -> int:
    """Bytes of tiles as DRAM stores them: ``whole_bytes`` of tiles are ``moved_bytes`` there, where that is less."""
    return -(-nbytes * moved_bytes // whole_bytes) if 0 < moved_bytes < whole_bytes else nbytes


def _not_worse(found: Sequence[MenuItem]) -> tuple[MenuItem, ...]:
    """Without items that stream what another one streams, and more, and need or move no less."""
    kept: list[MenuItem] = []
    for item in sorted(found, key=lambda x: (len(x.streamed), x.moved_bytes, x.demand_bytes)):
        if not any(
            other.streamed <= item.streamed and other.demand_bytes <= item.demand_bytes and _moves_no_more(other, item)
            for other in kept
        ):
            kept.append(item)
    return tuple(kept)


def _moves_no_more(one: MenuItem, other: MenuItem) -> bool:
    """Whether one item moves no more of any buffer, nor weights, and has no more tiles."""
    if one.mode is None:
        return True
    if other.mode is None or one.mode.tiles > other.mode.tiles:
        return False
    traffic = {each.buffer: each.read_bytes + each.written_bytes for each in other.mode.traffic}
    return one.mode.weight_repeat_bytes <= other.mode.weight_repeat_bytes and all(
        each.read_bytes + each.written_bytes <= traffic[each.buffer] for each in one.mode.traffic
    )
