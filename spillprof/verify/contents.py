"""What is on-chip: operands through the phases that need them, and where contents come from and go to."""

from collections.abc import Iterator

from spillprof.model.program import PHASES_PER_STEP, BufferKind, Phase
from spillprof.verify.rules import NEVER, Facts, Rule, Violation

_READ, _COMPUTE = int(Phase.READ), int(Phase.COMPUTE)


def operands(f: Facts) -> Iterator[Violation]:
    """Operands that are not streamed are on-chip: read in READ and COMPUTE, written in COMPUTE and WRITE."""
    for i, step in enumerate(f.program.steps):
        read, compute = PHASES_PER_STEP * i + _READ, PHASES_PER_STEP * i + _COMPUTE
        replaced = {update.old for update in step.updates if (i, update.new) not in f.streamed}
        for b in step.reads:
            end = compute if b in replaced else compute + 1
            if f.covering(b, read, end) is None and (i, b) not in f.streamed:
                yield _absent(f, b, i, read, end, "read")
        for b in step.writes:
            if f.covering(b, compute, compute + 2) is None and (i, b) not in f.streamed:
                yield _absent(f, b, i, compute, compute + 2, "written")


def _absent(f: Facts, b: int, i: int, start: int, end: int, verb: str) -> Violation:
    message = f"{f.name(b)} is {verb} in step {i}, but not on-chip through ticks {start} to {end}"
    return Violation(rule=Rule.OPERAND_ABSENT, message=message, step=i, buffer=b)


def updates(f: Facts) -> Iterator[Violation]:
    """An in-place result starts when and where the operand that it replaces ends."""
    for i, step in enumerate(f.program.steps):
        at = PHASES_PER_STEP * i + Phase.COMPUTE
        for update in step.updates:
            old, new = f.covering(update.old, at - 1, at), f.covering(update.new, at, at + 2)
            if old and new and (old.end != at or new.start != at or old.address != new.address):
                message = f"{f.name(update.new)} does not take over the place of {f.name(update.old)} at tick {at}"
                yield Violation(rule=Rule.BAD_UPDATE, message=message, step=i, buffer=update.new)


def segments(f: Facts) -> Iterator[Violation]:
    """A buffer is on-chip once, after its write; its segment starts with a write, a move or one read."""
    for b, own in enumerate(f.segments):
        written = f.write_step[b]
        end = 0
        for k in own:
            segment, step = f.plan.segments[k], f.plan.segments[k].start // PHASES_PER_STEP
            if segment.start < end:
                message = f"{f.name(b)} is on-chip at two places at tick {segment.start}"
                yield Violation(rule=Rule.BAD_SEGMENT, message=message, step=step, buffer=b)
            elif written is not None and segment.start < PHASES_PER_STEP * written + Phase.COMPUTE:
                message = f"{f.name(b)} is on-chip at tick {segment.start}, before step {written} writes it"
                yield Violation(rule=Rule.BAD_SEGMENT, message=message, step=step, buffer=b)
            elif not f.holds_data_at_start(k) and not f.fills[k]:
                message = f"{f.name(b)} comes on-chip at tick {segment.start}, but nothing fills its space"
                yield Violation(rule=Rule.NOT_FILLED, message=message, step=step, buffer=b)
            end = max(end, segment.end)
        if f.program.buffers[b].dedicated and len(own) > 1:
            message = f"{f.name(b)} is pinned, but leaves its slot at tick {f.plan.segments[own[0]].end}"
            yield Violation(rule=Rule.EVICTED_PINNED, message=message, buffer=b)


def weights_steady(f: Facts) -> Iterator[Violation]:
    """A weight that is on-chip at the start without a transfer was left there by the inference before."""
    end = PHASES_PER_STEP * len(f.program.steps)
    for b, own in enumerate(f.segments):
        if f.program.buffers[b].kind is BufferKind.WEIGHT and own and f.plan.segments[own[0]].start == 0:
            first, last = f.plan.segments[own[0]], f.plan.segments[own[-1]]
            if not f.fills[own[0]] and (last.end != end or last.address != first.address):
                message = f"{f.name(b)} is on-chip at the start, but not at that place at the end"
                yield Violation(rule=Rule.NOT_STEADY, message=message, buffer=b)


def streams(f: Facts) -> Iterator[Violation]:
    """Streamed operands are those of the program, whole, once, and off-chip all through their step."""
    seen: set[tuple[int, int]] = set()
    allowed = {(i, b, False) for i, step in enumerate(f.program.steps) for b in step.streamed_reads}
    allowed |= {(i, b, True) for i, step in enumerate(f.program.steps) for b in step.streamed_writes}
    for s in f.plan.streamed:
        start = PHASES_PER_STEP * s.step
        if (s.step, s.buffer, s.write) not in allowed:
            problem = "which the program does not stream"
        elif (s.step, s.buffer) in seen:
            problem = "twice"
        elif s.size_bytes != f.program.buffers[s.buffer].size_bytes:
            problem = f"but {s.size_bytes} of its {f.program.buffers[s.buffer].size_bytes} bytes"
        elif f.touching(s.buffer, start, start + PHASES_PER_STEP):
            problem = "while it is on-chip"
        else:
            problem = ""
        seen.add((s.step, s.buffer))
        if problem:
            message = f"step {s.step} streams {f.name(s.buffer)}, {problem}"
            yield Violation(rule=Rule.BAD_STREAM, message=message, step=s.step, buffer=s.buffer)
        elif not s.write and f.copied_at[s.buffer] > s.step:
            message = f"step {s.step} streams {f.name(s.buffer)} from DRAM, where it is not yet"
            yield Violation(rule=Rule.NO_DRAM_COPY, message=message, step=s.step, buffer=s.buffer)


def outputs(f: Facts) -> Iterator[Violation]:
    """Every graph output that a step writes ends in DRAM."""
    for buffer, copied, written in zip(f.program.buffers, f.copied_at, f.write_step, strict=True):
        if buffer.kind is BufferKind.OUTPUT and copied == NEVER and written is not None:
            message = f"{f.name(buffer.index)} is a graph output, but never written to DRAM"
            yield Violation(rule=Rule.OUTPUT_LOST, message=message, buffer=buffer.index)
