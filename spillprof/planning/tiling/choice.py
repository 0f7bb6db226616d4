"""Choice of a mode for each step that does not fit its pool, so that all operands together move the fewest bytes.

What a mode costs depends on the steps around it: an operand that is streamed must be in DRAM, so it is written once,
and read again by every later step that does not find it on-chip. ``UseCosts`` counts what one buffer moves for a given
set of steps that stream it; the choice starts from each step by itself and improves one step at a time, forwards and
backwards, until nothing changes.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from spillprof.ir.errors import CapacityError
from spillprof.ir.modes import OperandTraffic, StepMode
from spillprof.ir.program import BufferKind, Program
from spillprof.planning.liveness import demand_by_step, lifetimes
from spillprof.planning.options import Inputs, PlanningOptions, Start
from spillprof.planning.tiling.menus import MenuItem, menu

_ROUNDS = 6

_Rank = tuple[int, int, int, int]


def oversized_steps(program: Program) -> list[int]:
    """Steps of a fitted program whose operands do not fit its pool together, and whose loops are known."""
    if program.capacity_bytes is None:
        return []
    pool = program.capacity_bytes - program.reserved_bytes
    return [
        i
        for i, nbytes in enumerate(demand_by_step(program).tolist())
        if nbytes > pool and program.steps[i].nest is not None and program.steps[i].mode is None
    ]


def menus_of(program: Program, steps: Iterable[int], inputs: Inputs) -> dict[int, tuple[MenuItem, ...]]:
    """The menus of some steps of a fitted program. ``CapacityError`` if one is empty: inputs stay, and no tile fits."""
    found = {i: menu(program, i, inputs) for i in steps}
    for i, items in found.items():
        if not items:
            raise CapacityError(
                f"graph inputs cannot stay on-chip: operator '{program.steps[i].name}' does not fit beside those that "
                "it reads, however it is tiled",
                hint="load inputs on demand (--inputs on-demand), or give more --sram",
            )
    return found


def choose_modes(
    program: Program, options: PlanningOptions, start: Mapping[int, StepMode] | None = None
) -> tuple[StepMode, ...]:
    """A mode for each oversized step, by step; chosen together for the fewest bytes, idle buffers left aside.

    ``start``: modes to start from. Steps of it that are not oversized keep theirs unless holding all is no worse.
    """
    steps = sorted({*oversized_steps(program), *(start or {})})
    if not steps:
        return ()
    choice = ModeChoice(program, options, menus_of(program, steps, options.inputs))
    for i in steps:
        known = None if start is None else start.get(i)
        items = choice.menus[i]
        choice.items[i] = next((x for x in items if x.mode == known), None) or choice.alone(i)
    order = list(steps)
    for number in range(_ROUNDS):
        changed = [choice.improve(i) for i in (reversed(order) if number % 2 else order)]
        if not any(changed):
            break
    return choice.modes()


class ModeChoice:
    """The item of its menu that each of some steps takes."""

    def __init__(self, program: Program, options: PlanningOptions, menus: Mapping[int, Sequence[MenuItem]]) -> None:
        self._program = program
        self._costs = UseCosts(program, options)
        self.menus = menus
        self.items: dict[int, MenuItem] = {}

    def modes(self) -> tuple[StepMode, ...]:
        """The modes of the steps that run in tiles."""
        return tuple(item.mode for _, item in sorted(self.items.items()) if item.mode is not None)

    def alone(self, i: int) -> MenuItem:
        """The item that moves least if no other step streams."""
        return self._best(i, {})[1]

    def improve(self, i: int) -> bool:
        """Give a step the item that costs least beside the items of the others; whether that changed it."""
        rank, best = self._best(i, self.items)
        now = self.items[i]
        if best is now or rank >= self._rank(i, now, self._prices(i, self.items)):
            return False
        self.items[i] = best
        return True

    def _best(self, i: int, others: Mapping[int, MenuItem]) -> tuple[_Rank, MenuItem]:
        prices = self._prices(i, others)
        ranks = [self._rank(i, item, prices) for item in self.menus[i]]
        best = min(range(len(ranks)), key=ranks.__getitem__)
        return ranks[best], self.menus[i][best]

    def _prices(self, i: int, others: Mapping[int, MenuItem]) -> dict[int, int]:
        """By operand: what streaming it in step ``i`` adds to what its buffer moves, its tiles at the step left out."""
        step, costs = self._program.steps[i], self._costs
        return {b: costs.added(b, i, others) for b in dict.fromkeys((*step.reads, *step.writes))}

    def _rank(self, i: int, item: MenuItem, prices: Mapping[int, int]) -> _Rank:
        """(bytes, operands that are streamed, transfers, pool bytes)."""
        if item.mode is None:
            return 0, 0, 0, item.demand_bytes
        cost, transfers = item.mode.weight_repeat_bytes, 0
        for each in item.mode.traffic:
            cost += prices[each.buffer] + self._costs.own(each, i)
            transfers += each.transfers
        return cost, len(item.streamed), transfers, item.demand_bytes


class UseCosts:
    """DRAM bytes that each buffer moves beyond the compulsory, for given steps that stream it."""

    def __init__(self, program: Program, options: PlanningOptions) -> None:
        self._program = program
        self._lives = lifetimes(program)
        self._loads_inputs = options.inputs is Inputs.ON_DEMAND
        self._goes_round = program.weights_persist and options.start is Start.STEADY

    def own(self, each: OperandTraffic, i: int) -> int:
        """Bytes of the tiles themselves, at the step that streams the buffer."""
        buffer, nbytes = self._program.buffers[each.buffer], each.read_bytes + each.written_bytes
        if self._lives[each.buffer].use_steps[0] == i:
            if buffer.kind is BufferKind.OUTPUT:
                return nbytes - min(each.written_bytes, buffer.moved_bytes)
            if buffer.kind is BufferKind.INPUT and self._loads_inputs:
                return nbytes - min(each.read_bytes, buffer.moved_bytes)
        return nbytes

    def added(self, b: int, i: int, items: Mapping[int, MenuItem]) -> int:
        """What streaming buffer ``b`` in step ``i``, not holding it, adds at the other steps.

        ``items``: what the other steps do; those without one hold it.
        """
        uses = self._lives[b].use_steps
        streams = [u != i and u in items and b in items[u].streamed for u in uses]
        at = uses.index(i)
        held = self._around(b, streams)
        streams[at] = True
        return self._around(b, streams) - held

    def _around(self, b: int, streams: Sequence[bool]) -> int:
        """Bytes of reloads and of the write-back, given which uses stream the buffer."""
        if not any(streams):
            return 0
        buffer, life = self._program.buffers[b], self._lives[b]
        moved = buffer.moved_bytes
        total = moved * sum(before and not after for before, after in pairwise(streams))
        if self._goes_round and buffer.kind is BufferKind.WEIGHT and streams[-1] and not streams[0]:
            total += moved
        if buffer.kind is BufferKind.ACTIVATION and not (life.write_step is not None and streams[0]):
            total += moved
        return total
