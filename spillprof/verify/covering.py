"""What every plan of a program must cover: gaps, what the pool lacks at each step, and what each spill costs."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import gcd

from spillprof.ir.program import PHASES_PER_STEP, BufferKind, Phase, Program, Step

Gap = tuple[int, int]
"""(buffer, step of the use before)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Gaps that cover a step where the pool lacks bytes, and what spilling them costs."""

    lacking_bytes: list[int]  # by step, if no gap is spent off-chip; rounded up; 0 or less where all fits
    spanning: list[list[Gap]]  # by step
    size_bytes: dict[Gap, int]
    own_bytes: dict[Gap, int]  # that each gap costs
    shared_bytes: dict[int, int]  # that a buffer costs once, however many of its gaps are spent
    forced_bytes: int  # that move whatever is spilled


def gather(program: Program, *, inputs_resident: bool, steady_state: bool, writes_always: bool) -> Facts:
    """The covering facts of a fitted program."""
    resident = {b.index for b in program.buffers if inputs_resident and b.kind is BufferKind.INPUT}
    spanning: list[list[Gap]] = [[] for _ in program.steps]
    uses = _uses(program)
    for gap, steps in _gaps(program, uses, resident, steady_state=steady_state):
        for i in steps:
            spanning[i].append(gap)
    sizes = [buffer.size_bytes for buffer in program.buffers]
    moved = [buffer.moved_bytes for buffer in program.buffers]
    pool = (program.capacity_bytes or 0) - program.reserved_bytes
    standing = _standing_bytes(program, resident)
    lacking = [
        held + _least_bytes(program, step) + sum(sizes[b] for b, _ in over) - pool
        for held, step, over in zip(standing, program.steps, spanning, strict=True)
    ]
    spanning = [over if lacks > 0 else [] for lacks, over in zip(lacking, spanning, strict=True)]
    gaps = {gap for over in spanning for gap in over}
    unit = gcd(*(sizes[b] for b, _ in gaps)) or 1  # whole buffers go: what lacks is made up for in units
    streamed = {b for step in program.steps for b in (*step.streamed_reads, *step.streamed_writes)}
    goes_round = [_goes_round(program, b, steady_state=steady_state) for b in range(len(sizes))]
    written = [b.kind is BufferKind.ACTIVATION for b in program.buffers]  # of the rest, DRAM has or gets a copy
    return Facts(
        lacking_bytes=[-(-lacks // unit) * unit for lacks in lacking],
        spanning=spanning,
        size_bytes={gap: sizes[gap[0]] for gap in gaps},
        own_bytes={
            (b, p): moved[b] * ((p != uses[b][-1] or goes_round[b]) + (written[b] and writes_always)) for b, p in gaps
        },
        shared_bytes={b: moved[b] if written[b] and not writes_always and b not in streamed else 0 for b, _ in gaps},
        forced_bytes=sum(_forced_bytes(program, b, uses[b], resident, steady_state=steady_state) for b in streamed),
    )


def _uses(program: Program) -> list[list[int]]:
    """Steps that write or read each buffer, ascending, each once."""
    uses: list[list[int]] = [[] for _ in program.buffers]
    for i, step in enumerate(program.steps):
        for b in {*step.reads, *step.writes}:
            uses[b].append(i)
    return uses


def _gaps(
    program: Program, uses: list[list[int]], resident: set[int], *, steady_state: bool
) -> Iterator[tuple[Gap, list[int]]]:
    """Each stretch between two uses that are not streamed, with the steps between; weights go round if they persist.

    What a later step holds has a last one, from its last use to that step.
    """
    n = len(program.steps)
    streamed = {(b, i) for i, step in enumerate(program.steps) for b in (*step.streamed_reads, *step.streamed_writes)}
    stay = program.weights_persist  # weights do, whatever holds them
    held = {
        b: i
        for i, step in enumerate(program.steps)
        for b in step.holds
        if not (stay and program.buffers[b].kind is BufferKind.WEIGHT)
    }
    for b, own in enumerate(uses):
        buffer = program.buffers[b]
        if buffer.dedicated or b in resident or not own:
            continue
        pairs = list(pairwise(own))
        if _goes_round(program, b, steady_state=steady_state):
            pairs.append((own[-1], own[0] + n))
        elif b in held and held[b] > own[-1] and (b, own[-1]) not in streamed:
            yield (b, own[-1]), list(range(own[-1] + 1, held[b] + 1))
        for p, u in pairs:
            if u > p + 1 and (b, p) not in streamed and (b, u % n) not in streamed:
                yield (b, p), [i % n for i in range(p + 1, u)]


def _goes_round(program: Program, b: int, *, steady_state: bool) -> bool:
    """Whether the next inference wants the buffer again."""
    return program.weights_persist and steady_state and program.buffers[b].kind is BufferKind.WEIGHT


def _standing_bytes(program: Program, resident: set[int]) -> list[int]:
    """Bytes of resident inputs that wait at each step: neither its operands nor overwritten by then."""
    standing, now = [], sum(program.buffers[b].size_bytes for b in resident if not program.buffers[b].dedicated)
    for step in program.steps:
        read = {b for b in step.reads if b in resident and not program.buffers[b].dedicated}
        standing.append(now - sum(program.buffers[b].size_bytes for b in read))
        now -= sum(program.buffers[u.old].size_bytes for u in step.updates if u.old in read)
    return standing


def _least_bytes(program: Program, step: Step) -> int:
    """Pool bytes that the step needs at its fullest phase, operands leaving as soon as they were read."""
    phases = [step.stream_staging_bytes] * PHASES_PER_STEP
    replaced = {u.old for u in step.updates}

    def add(size: int, first: Phase, last: Phase) -> None:
        for phase in range(first, last + 1):
            phases[phase] += size

    for b in step.reads:
        if b not in step.streamed_reads and not program.buffers[b].dedicated:
            add(program.buffers[b].size_bytes, Phase.READ, Phase.READ if b in replaced else Phase.COMPUTE)
    for b in step.writes:
        if b not in step.streamed_writes and not program.buffers[b].dedicated:
            add(program.buffers[b].size_bytes, Phase.COMPUTE, Phase.WRITE)
    for workspace in step.workspaces:
        add(workspace.size_bytes, workspace.first, workspace.last)
    return max(phases)


def _forced_bytes(program: Program, b: int, uses: list[int], resident: set[int], *, steady_state: bool) -> int:
    """What a buffer that some step streams moves in any plan, beyond what infinite memory moves too."""
    buffer = program.buffers[b]
    moved = 1 if buffer.kind is BufferKind.ACTIVATION else 0  # written once, streamed or not
    fetched = buffer.kind is not BufferKind.INPUT or b in resident
    goes_round = _goes_round(program, b, steady_state=steady_state)
    left = goes_round and b in program.steps[uses[-1]].streamed_reads  # its last use streamed it: it is off-chip
    for i in uses:
        step = program.steps[i]
        if b in step.writes:
            left = b in step.streamed_writes
        elif b in step.streamed_reads:
            moved += fetched
            fetched = left = True
        else:
            moved += left
            fetched, left = True, False
    return moved * buffer.moved_bytes
