"""Choice of a mode for each step that does not fit its pool, so that all operands together move the fewest bytes.

What a mode costs depends on the steps around it: an operand that is streamed must be in DRAM, so it is written once,
and read again by every later step that does not find it on-chip. ``UseCosts`` counts what one buffer moves for a given
set of steps that stream it; the choice starts from each step by itself and improves one step at a time, forwards and
backwards, until nothing changes.
"""

from collections.abc import Mapping, Sequence

from spillprof.ir.modes import StepMode
from spillprof.ir.program import BufferKind, Program
from spillprof.planning.liveness import demand_by_step, lifetimes
from spillprof.planning.options import Inputs, PlanningOptions, Start
from spillprof.planning.tiling.menus import MenuItem, menu

_ROUNDS = 6


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


def choose_modes(
    program: Program, options: PlanningOptions, start: Mapping[int, StepMode] | None = None
) -> tuple[StepMode, ...]:
    """A mode for each oversized step, by step; chosen together for the fewest bytes, idle buffers left aside.

    ``start``: modes to start from. Steps of it that are not oversized keep theirs unless holding all is no worse.
    """
    steps = sorted({*oversized_steps(program), *(start or {})})
    if not steps:
        return ()
    choice = ModeChoice(program, options, {i: menu(program, i, options.inputs) for i in steps})
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
        return min(self.menus[i], key=lambda item: self._rank(i, item, {}))

    def improve(self, i: int) -> bool:
        """Give a step the item that costs least beside the items of the others; whether that changed it."""
        now = self.items[i]
        best = min(self.menus[i], key=lambda item: self._rank(i, item, self.items))
        if best is now or self._rank(i, best, self.items) >= self._rank(i, now, self.items):
            return False
        self.items[i] = best
        return True

    def _rank(self, i: int, item: MenuItem, others: dict[int, MenuItem]) -> tuple[int, int, int, int]:
        """(bytes, operands that are streamed, transfers, pool bytes)."""
        step = self._program.steps[i]
        cost = 0 if item.mode is None else item.mode.weight_repeat_bytes
        before, others[i] = others.get(i), item
        for b in dict.fromkeys((*step.reads, *step.writes)):
            cost += self._costs.of(b, others)
        if before is None:
            del others[i]
        else:
            others[i] = before
        transfers = 0 if item.mode is None else sum(each.transfers for each in item.mode.traffic)
        return cost, len(item.streamed), transfers, item.demand_bytes


def _streams(item: MenuItem | None, b: int) -> tuple[int, int] | None:
    """(bytes read, written) of a buffer that an item streams; None if it holds it."""
    if item is None or item.mode is None or b not in item.streamed:
        return None
    return next((each.read_bytes, each.written_bytes) for each in item.mode.traffic if each.buffer == b)


class UseCosts:
    """DRAM bytes that each buffer moves beyond the compulsory, for given steps that stream it."""

    def __init__(self, program: Program, options: PlanningOptions) -> None:
        self._program = program
        self._lives = lifetimes(program)
        self._loads_inputs = options.inputs is Inputs.ON_DEMAND
        self._goes_round = program.weights_persist and options.start is Start.STEADY

    def of(self, b: int, items: Mapping[int, MenuItem]) -> int:
        """Bytes of buffer ``b``, where steps take these items; the others hold it."""
        buffer, life = self._program.buffers[b], self._lives[b]
        uses = life.use_steps
        traffic = [_streams(items.get(i), b) for i in uses]
        if not any(each is not None for each in traffic):
            return 0
        moved, total = buffer.moved_bytes, 0
        for k, each in enumerate(traffic):
            if k == 0 and life.write_step is not None:
                if each is not None:
                    read, written = each
                    total += read + written - (moved if buffer.kind is BufferKind.OUTPUT else 0)
                continue
            if each is not None:
                total += each[0]
                if k == 0 and buffer.kind is BufferKind.INPUT and self._loads_inputs:
                    total -= min(moved, each[0])
            elif k and traffic[k - 1] is not None:
                total += moved
        if self._goes_round and buffer.kind is BufferKind.WEIGHT and traffic[0] is None and traffic[-1] is not None:
            total += moved
        written_by_step = life.write_step is not None and traffic[0] is not None
        if buffer.kind is BufferKind.ACTIVATION and not written_by_step:
            total += moved
        return total
