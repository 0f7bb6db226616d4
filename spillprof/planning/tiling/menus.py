"""Menus: the modes that a step of a program may take in its pool, each with what it needs and what it moves."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import prod

from spillprof.ir.loop_nest import Tiling
from spillprof.ir.memo import once_per_program
from spillprof.ir.modes import OperandTraffic, StepMode, StepNest
from spillprof.ir.program import ACCUMULATOR, PHASES_PER_STEP, BufferKind, Program, Step
from spillprof.ir.tiled import replaceable
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


@once_per_program
def menu(program: Program, i: int, inputs: Inputs = Inputs.ON_DEMAND) -> tuple[MenuItem, ...]:
    """The ways to run step ``i`` of a fitted program that fit its pool, none worse than another in all respects.

    The one that holds everything comes first, where it fits; then those that stream less. Empty if no tile fits. A step
    without known loops has one way. Operands that have a dedicated slot, or stay for the whole run, are held.
    """
    step, operands = program.steps[i], (*program.steps[i].reads, *program.steps[i].writes)
    return tuple(
        [
            MenuItem(
                mode=None
                if each.tiling is None
                else StepMode(
                    step=i,
                    tiling=each.tiling,
                    footprint_bytes=each.footprint_bytes,
                    tiles=each.tiles,
                    traffic=tuple(
                        [
                            OperandTraffic(
                                buffer=operands[t.buffer],
                                read_bytes=t.read_bytes,
                                written_bytes=t.written_bytes,
                                passes=t.passes,
                                transfers=t.transfers,
                            )
                            for t in each.traffic
                        ]
                    ),
                    weight_passes=each.weight_passes,
                    weight_repeat_bytes=each.weight_repeat_bytes,
                    in_two_passes=each.in_two_passes,
                ),
                demand_bytes=each.demand_bytes,
                streamed=frozenset([operands[t.buffer] for t in each.traffic]),
            )
            for each in _ways(_shape_of(program, i, inputs), is_open(step))
        ]
    )


def is_open(step: Step) -> bool:
    """Whether a plan may choose how the step is tiled."""
    return step.nest is not None and step.mode is None and not step.streamed_reads and not step.streamed_writes


def smallest_demand(program: Program, i: int) -> tuple[int, Mode | None]:
    """The fewest pool bytes that step ``i`` needs in any of its modes, and its tiling there; None if it is untiled."""
    return _smallest(_shape_of(program, i, Inputs.ON_DEMAND))


@lru_cache(maxsize=2048)
def _smallest(shape: "_Shape") -> tuple[int, Mode | None]:
    found: list[tuple[int, Mode | None]] = [(shape.demand_bytes(frozenset()), None)]
    nests = () if shape.nest is None else (shape.nest, shape.nest.in_two_passes)
    for nest in filter(None, nests):
        for chosen in _subsets(shape):
            streamed = frozenset(chosen)
            held = nest.operands_at(frozenset(range(len(shape.sizes))) - streamed)
            tiled = smallest_mode(nest.nest, _buffers(nest, shape.alignment_bytes), held)
            found.append((shape.demand_bytes(streamed) + tiled.cost.footprint_bytes, tiled))
    return min(found, key=lambda each: each[0])


@dataclass(frozen=True, slots=True)
class _Shape:
    """What decides the ways to run a step: equal steps have equal ones. Operands go by their place."""

    nest: StepNest | None
    reads: int  # operands that are read; the others are written
    sizes: tuple[int, ...]  # pool bytes of each operand
    moved: tuple[int, ...]  # bytes of a transfer of each
    free: tuple[int, ...]  # operands that may pass in tiles, the largest first
    updates: tuple[tuple[int, int], ...]  # in-place results: places of the old and the new operand
    replaceable: tuple[int, ...]  # operands that die and may be overwritten
    scratch: tuple[int, ...]  # bytes of workspaces, by phase,
    accumulators: tuple[int, ...]  # and of accumulators, which go where all results pass in tiles
    pool_bytes: int
    alignment_bytes: int

    def demand_bytes(self, streamed: Set[int]) -> int:
        """Pool bytes in the fullest phase with these operands streamed, without their tiles."""
        replaced = self._replaced(streamed)
        sizes = self.sizes
        read = sum([sizes[p] for p in range(self.reads) if p not in streamed])
        kept = read - sum([sizes[p] for p in replaced])
        written = sum([sizes[p] for p in range(self.reads, len(sizes)) if p not in streamed])
        tiled = all(p in streamed for p in range(self.reads, len(sizes)))
        beside = [s + (0 if tiled else a) for s, a in zip(self.scratch, self.accumulators, strict=True)]
        return max(read + beside[0], kept + written + max(beside[1:]))

    def _replaced(self, streamed: Set[int]) -> set[int]:
        """Operands that a result takes the place of: see ``spillprof.ir.tiled``."""
        taken, found = {old for old, _ in self.updates}, set()
        for old, new in self.updates:
            if new in streamed:
                continue
            if old in streamed:
                fitting = (p for p in self.replaceable if p not in streamed and p not in taken)
                old = next((p for p in fitting if self.sizes[p] == self.sizes[new]), -1)
                if old < 0:
                    continue
                taken.add(old)
            found.add(old)
        return found


def _shape_of(program: Program, i: int, inputs: Inputs) -> _Shape:
    step, buffers = program.steps[i], program.buffers
    operands = (*step.reads, *step.writes)
    sizes = tuple([0 if buffers[b].dedicated else buffers[b].size_bytes for b in operands])
    known = () if step.nest is None else {place for place in step.nest.places if place is not None}
    stays = BufferKind.INPUT if inputs is Inputs.RESIDENT else None
    free = [p for p in known if sizes[p] and buffers[operands[p]].kind is not stays]
    place = {b: p for p, b in enumerate(operands)} if step.updates else {}
    scratch, accumulators = [0] * PHASES_PER_STEP, [0] * PHASES_PER_STEP
    for workspace in step.workspaces:
        for phase in range(workspace.first, workspace.last + 1):
            (accumulators if workspace.purpose == ACCUMULATOR else scratch)[phase] += workspace.size_bytes
    return _Shape(
        nest=step.nest,
        reads=len(step.reads),
        sizes=sizes,
        moved=tuple([buffers[b].moved_bytes for b in operands]),
        free=tuple(sorted(free, key=lambda p: (-sizes[p], p))),
        updates=tuple([(place[u.old], place[u.new]) for u in step.updates]),
        replaceable=tuple([place[b] for b in replaceable(program, i)]) if step.updates else (),
        scratch=tuple(scratch),
        accumulators=tuple(accumulators),
        pool_bytes=(program.capacity_bytes or 0) - program.reserved_bytes,
        alignment_bytes=program.alignment_bytes,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """A way to run a step, in terms of places."""

    demand_bytes: int
    tiling: Tiling | None = None  # None: all operands are held
    footprint_bytes: int = 0
    tiles: int = 1
    traffic: tuple[OperandTraffic, ...] = ()
    weight_passes: int = 1
    weight_repeat_bytes: int = 0
    in_two_passes: bool = False

    @property
    def moved_bytes(self) -> int:
        return self.weight_repeat_bytes + sum([each.read_bytes + each.written_bytes for each in self.traffic])

    @property
    def streamed(self) -> frozenset[int]:
        return frozenset([each.buffer for each in self.traffic])


@lru_cache(maxsize=8192)
def _ways(shape: _Shape, may_be_tiled: bool) -> tuple[_Way, ...]:
    untiled = _Way(demand_bytes=shape.demand_bytes(frozenset()))
    found = [untiled] if untiled.demand_bytes <= shape.pool_bytes else []
    if shape.nest is None or not may_be_tiled:
        return tuple(found)
    for chosen in _subsets(shape):
        streamed = frozenset(chosen)
        demand = shape.demand_bytes(streamed)
        held = frozenset(range(len(shape.sizes))) - streamed
        if demand <= shape.pool_bytes:
            for nest, mode in _modes(shape.nest, held, shape.pool_bytes - demand, shape.alignment_bytes):
                found.append(_way(shape, nest, mode, demand))
    return _not_worse(found)


def _subsets(shape: _Shape) -> list[tuple[int, ...]]:
    """Sets of operands to stream, fewest bytes first.

    All sets of the largest few operands; of more, as many of the largest as make the rest fit, some more, and all.
    """
    free = shape.free
    few = free[:MOST_STREAMED]
    found = [chosen for count in range(1, len(few) + 1) for chosen in combinations(few, count)]
    if len(free) > len(few):
        counts = range(len(few) + 1, len(free))
        enough = bisect_left(counts, True, key=lambda n: shape.demand_bytes({*free[:n]}) < shape.pool_bytes)
        first = len(few) + 1 + enough
        tried = (first + (len(free) - first) * share // 8 for share in (0, 1, 2, 4, 8))  # tiles need room too
        found += [free[:count] for count in dict.fromkeys(tried)]
    return sorted(found, key=lambda chosen: sum([shape.sizes[p] for p in chosen]))


def _buffers(nest: StepNest, alignment_bytes: int) -> TileBuffers:
    return TileBuffers(accumulator_bits=nest.accumulator_bits, alignment_bytes=alignment_bytes)


def _modes(
    nest: StepNest, held: frozenset[int], room_bytes: int, alignment_bytes: int
) -> Iterator[tuple[StepNest, Mode]]:
    """Modes with these operands held: the fewest bytes first, the fewest tiles worth their bytes, and smaller ones."""
    for each in (nest, nest.in_two_passes):
        if each is None:
            continue
        found = modes(each.nest, room_bytes, _buffers(each, alignment_bytes), each.operands_at(held), few=True)
        if not found:
            continue
        kept = [found[0]]
        for mode in sorted(found[1:], key=lambda m: -m.cost.footprint_bytes):
            if mode.cost.footprint_bytes <= _LESS_ROOM * kept[-1].cost.footprint_bytes and len(kept) < _FOOTPRINTS:
                kept.append(mode)
        quick = min(found, key=lambda m: m.cost.moved_bytes + _TILE_BYTES * m.cost.tiles)
        smallest = min(found, key=lambda m: m.cost.footprint_bytes)
        yield from ((each, mode) for mode in dict.fromkeys((*kept, quick, smallest)))
        return


_TILE_BYTES = 4096  # that a mode may move to have a tile less


def _way(shape: _Shape, nest: StepNest, mode: Mode, demand_bytes: int) -> _Way:
    """A mode, in terms of places."""
    cost, tiling = mode.cost, mode.tiling
    trips = tiling.trips(nest.nest)
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
        own = prod(trips[axis] for axis in operand.axes)
        moved = shape.moved[place]
        read, written = (
            as_moved(nbytes, operand.nbytes, moved) for nbytes in (cost.read_bytes[p], cost.written_bytes[p])
        )
        visits = passes * own + ((passes - 1) * own if operand.is_output else 0)
        known = traffic.get(place)
        traffic[place] = OperandTraffic(
            buffer=place,
            read_bytes=read + (known.read_bytes if known else 0),
            written_bytes=written + (known.written_bytes if known else 0),
            passes=passes + (known.passes if known else 0),
            transfers=visits + (known.transfers if known else 0),
        )
    return _Way(
        demand_bytes=demand_bytes + cost.footprint_bytes,
        tiling=tiling,
        footprint_bytes=cost.footprint_bytes,
        tiles=cost.tiles,
        traffic=tuple([traffic[place] for place in sorted(traffic)]),
        weight_passes=weight_passes,
        weight_repeat_bytes=weight_repeat_bytes,
        in_two_passes=nest is not shape.nest,
    )


def as_moved(nbytes: int, whole_bytes: int, moved_bytes: int) -> int:
    """Bytes of tiles as DRAM stores them: ``whole_bytes`` of tiles are ``moved_bytes`` there, where that is less."""
    return -(-nbytes * moved_bytes // whole_bytes) if 0 < moved_bytes < whole_bytes else nbytes


def _not_worse(found: Sequence[_Way]) -> tuple[_Way, ...]:
    """Without ways that stream what another one streams, and more, and need or move no less."""
    kept: list[_Way] = []
    for way in sorted(found, key=lambda x: (len(x.traffic), x.moved_bytes, x.demand_bytes)):
        if not any(
            other.demand_bytes <= way.demand_bytes and other.streamed <= way.streamed and _moves_no_more(other, way)
            for other in kept
        ):
            kept.append(way)
    return tuple(kept)


def _moves_no_more(one: _Way, other: _Way) -> bool:
    """Whether one way moves no more of any operand, nor weights, and has no more tiles."""
    if one.tiling is None:
        return True
    if one.tiles > other.tiles or one.weight_repeat_bytes > other.weight_repeat_bytes:
        return False
    traffic = {each.buffer: each.read_bytes + each.written_bytes for each in other.traffic}
    return all(each.read_bytes + each.written_bytes <= traffic[each.buffer] for each in one.traffic)
