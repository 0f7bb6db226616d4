"""What a run knows about each buffer: its uses so far and to come, its copies, and whether it may leave."""

from spillprof.model.program import BufferKind, Phase, Program, Step
from spillprof.planning.liveness import lifetimes
from spillprof.planning.options import PlanningOptions, Start, WriteBack
from spillprof.planning.release import release_steps
from spillprof.planning.residents import resident_inputs


class BufferStates:
    """State of all buffers of one run, by buffer index."""

    def __init__(self, program: Program, options: PlanningOptions) -> None:
        self._program = program
        self._n = len(program.steps)
        self._writeback = options.writeback
        self.lives = lifetimes(program)
        self.slot = _slot_addresses(program)  # addresses of dedicated buffers
        self.resident = resident_inputs(program, options)  # on-chip from start to end
        self.steady = program.weights_persist and options.start is Start.STEADY
        self.streams_in = {(b, i) for i, step in enumerate(program.steps) for b in step.streamed_reads}
        self.streams_out = {(b, i) for i, step in enumerate(program.steps) for b in step.streamed_writes}
        self.released_at = [
            self._n if b in self.resident or (self.is_weight(b) and program.weights_persist) else step
            for b, step in enumerate(release_steps(program, self.lives, options.release))
        ]
        self.in_dram = [b.in_dram_at_start for b in program.buffers]  # a valid copy
        self.loaded = [self.steady and self.is_weight(b.index) for b in program.buffers]  # a load is a reload
        self.uses_done = [0] * len(program.buffers)

    def is_weight(self, b: int) -> bool:
        """Whether the buffer is a weight."""
        return self._program.buffers[b].kind is BufferKind.WEIGHT

    def is_output(self, b: int) -> bool:
        """Whether the buffer must be in DRAM at the end."""
        return self._program.buffers[b].kind is BufferKind.OUTPUT

    def is_fixed(self, b: int) -> bool:
        """Whether the buffer can never be evicted."""
        return b in self.slot or b in self.resident

    def is_dirty(self, b: int) -> bool:
        """Whether eviction costs a write-back."""
        if self._writeback is WriteBack.ALWAYS:
            return not self._program.buffers[b].in_dram_at_start
        return not self.in_dram[b]

    def survives(self, b: int, i: int) -> bool:
        """Whether the buffer keeps its space after step ``i``."""
        return self.released_at[b] > i

    def next_use(self, b: int) -> int | None:
        """Step of the next read; + n_steps if it is in the next inference; None if there is none."""
        reads = self.lives[b].read_steps
        if self.uses_done[b] < len(reads):
            return reads[self.uses_done[b]]
        return reads[0] + self._n if self.steady and self.is_weight(b) and reads else None

    def comes_back(self, needed_step: int | None, b: int) -> bool:
        """Whether the buffer is reloaded for that use (and not streamed)."""
        return needed_step is not None and (b, needed_step % max(self._n, 1)) not in self.streams_in

    def given_back(self, b: int, i: int, step: Step) -> Phase | None:
        """The phase after which the space of an operand that is read becomes free; None if it stays taken."""
        for update in step.updates:
            if update.old == b:
                return None if self.survives(update.new, i) else Phase.WRITE
        if self.survives(b, i):
            return None
        return Phase.WRITE if self.is_output(b) else Phase.COMPUTE  # it is drained when the step has ended


def _slot_addresses(program: Program) -> dict[int, int]:
    slots: dict[int, int] = {}
    address = 0
    for reservation in program.reservations:
        if reservation.buffer is not None:
            slots[reservation.buffer] = address
        address += reservation.size_bytes
    return slots
