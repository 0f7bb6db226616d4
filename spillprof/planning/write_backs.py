"""Which evictions cost a write to DRAM that is not made anyway."""

from spillprof.ir.program import BufferKind, Program
from spillprof.planning.gaps import streamed_uses
from spillprof.planning.options import WriteBack


class WriteBacks:
    """What evictions of a program's buffers write beyond what every plan writes.

    DRAM holds inputs and weights from the start. A graph output is written in any case, and so is what some step
    tiles through DRAM: an eviction only makes that write earlier.
    """

    def __init__(self, program: Program, writeback: WriteBack) -> None:
        buffers = program.buffers
        if writeback is WriteBack.ALWAYS:
            self._first = [not b.in_dram_at_start and b.kind is not BufferKind.OUTPUT for b in buffers]
            self._later = [not b.in_dram_at_start for b in buffers]
        else:
            streamed = {b for b, _, _ in streamed_uses(program)}
            self._first = [b.kind is BufferKind.ACTIVATION and b.index not in streamed for b in buffers]
            self._later = [False] * len(buffers)

    def adds_write(self, buffer: int, *, evicted_before: bool) -> bool:
        """Whether one more eviction costs a write."""
        return (self._later if evicted_before else self._first)[buffer]
