"""Rules about contents: operands on-chip in the phases that need them, segments filled, outputs written."""

from collections.abc import Iterator

import numpy as np

from spillprof.ir.arrays import Ints
from spillprof.ir.program import PHASES_PER_STEP, BufferKind, Phase
from spillprof.verify.columns import field_column, int_column
from spillprof.verify.facts import NEVER, PlanFacts, wrong
from spillprof.verify.rules import PlanRule, Violation


def check_operands(f: PlanFacts) -> Iterator[Violation]:
    """Operands that are not streamed are on-chip: read in READ and COMPUTE, written in COMPUTE and WRITE."""
    span = len(f.program.buffers)
    replaced = int_column(
        i * span + update.old
        for i, step in enumerate(f.program.steps)
        for update in step.updates
        if (i, update.new) not in f.streamed
    )
    ends_early = np.isin(f.reads.step * span + f.reads.buffer, replaced)
    reading = PHASES_PER_STEP * f.reads.step + Phase.READ
    computing = PHASES_PER_STEP * f.writes.step + Phase.COMPUTE
    absent = [
        *_absent(f, f.reads.buffer, f.reads.step, reading, reading + 2 - ends_early, "read"),
        *_absent(f, f.writes.buffer, f.writes.step, computing, computing + 2, "written"),
    ]
    yield from sorted(absent, key=lambda violation: violation.step or 0)


def _absent(f: PlanFacts, buffers: Ints, steps: Ints, starts: Ints, ends: Ints, verb: str) -> Iterator[Violation]:
    for k in np.flatnonzero(f.rows.covering(buffers, starts, ends) < 0).tolist():
        b, i = int(buffers[k]), int(steps[k])
        if (i, b) not in f.streamed:
            message = f"{f.name(b)} is {verb} in step {i}, but not on-chip through ticks {starts[k]} to {ends[k]}"
            yield Violation(rule=PlanRule.OPERAND_ABSENT, message=message, step=i, buffer=b)


def check_updates(f: PlanFacts) -> Iterator[Violation]:
    """An in-place result starts when and where the operand that it replaces ends."""
    found = [(i, update) for i, step in enumerate(f.program.steps) for update in step.updates]
    if not found:
        return
    olds, news = int_column(update.old for _, update in found), int_column(update.new for _, update in found)
    at = PHASES_PER_STEP * int_column(i for i, _ in found) + Phase.COMPUTE
    rows = f.rows
    old, new = rows.covering(olds, at - 1, at), rows.covering(news, at, at + 2)
    there = (old >= 0) & (new >= 0)
    old, new, at = old[there], new[there], at[there]
    apart = (rows.end[old] != at) | (rows.start[new] != at) | (rows.address[old] != rows.address[new])
    for k in np.flatnonzero(there)[apart].tolist():
        i, update = found[k]
        tick = PHASES_PER_STEP * i + Phase.COMPUTE
        message = f"{f.name(update.new)} does not take over the place of {f.name(update.old)} at tick {tick}"
        yield Violation(rule=PlanRule.BAD_UPDATE, message=message, step=i, buffer=update.new)


def check_segments(f: PlanFacts) -> Iterator[Violation]:
    """A buffer is on-chip once, after its write; its segment starts with a write, a move or one read."""
    rows = f.rows
    written = f.write_step[rows.buffer]
    before_write = (written >= 0) & (rows.start < PHASES_PER_STEP * written + Phase.COMPUTE)
    early = rows.is_early()
    misplaced = wrong(
        (early, lambda row: f"at two places at tick {rows.start[row]}"),
        (before_write, lambda row: f"at tick {rows.start[row]}, before step {written[row]} writes it"),
    )
    for row, problem in misplaced:
        b, step = int(rows.buffer[row]), int(rows.start[row]) // PHASES_PER_STEP
        message = f"{f.name(b)} is on-chip {problem}"
        yield Violation(rule=PlanRule.BAD_SEGMENT, message=message, step=step, buffer=b)
    unfilled = ~f.is_given & (f.fill_count[rows.segment] == 0) & ~early & ~before_write
    for row in np.flatnonzero(unfilled).tolist():
        b, start = int(rows.buffer[row]), int(rows.start[row])
        message = f"{f.name(b)} comes on-chip at tick {start}, but nothing fills its space"
        yield Violation(rule=PlanRule.NOT_FILLED, message=message, step=start // PHASES_PER_STEP, buffer=b)
    firsts = rows.firsts()
    leaves = f.dedicated[rows.buffer[firsts]] & (np.diff(firsts, append=len(rows.start)) > 1)
    for row in firsts[leaves].tolist():
        b = int(rows.buffer[row])
        message = f"{f.name(b)} is pinned, but leaves its slot at tick {rows.end[row]}"
        yield Violation(rule=PlanRule.EVICTED_PINNED, message=message, buffer=b)


def check_inputs(f: PlanFacts) -> Iterator[Violation]:
    """Graph inputs are on-chip from start to end, or each is loaded, as the terms say."""
    resident = f.terms.inputs_resident
    if f.plan.inputs_resident != resident:
        said = "are on-chip before the run" if f.plan.inputs_resident else "are loaded"
        asked = "resident" if resident else "loaded"
        message = f"the plan says that graph inputs {said}; they are to be {asked}"
        yield Violation(rule=PlanRule.OTHER_TERMS, message=message)
        return
    if not resident:
        return
    rows, end = f.rows, PHASES_PER_STEP * len(f.program.steps)
    is_input = f.is_kind(BufferKind.INPUT)
    replaced = {update.old for step in f.program.steps for update in step.updates}
    last = np.full(len(f.kind), -1)
    last[rows.buffer] = rows.end  # rows are sorted by buffer, then start: the last one counts
    left = np.zeros(len(f.kind), dtype=bool)
    np.logical_or.at(left, rows.buffer, f.fill_count[rows.segment] > 0)  # it was loaded
    for b in np.flatnonzero(is_input & (left | (last < end))).tolist():
        if b in replaced and not left[b]:
            continue
        message = f"{f.name(b)} is to be on-chip from start to end, but " + ("is loaded" if left[b] else "leaves")
        yield Violation(rule=PlanRule.OTHER_TERMS, message=message, buffer=b)


def check_weights_steady(f: PlanFacts) -> Iterator[Violation]:
    """A weight that is on-chip at the start without a transfer was left there by the inference before."""
    rows = f.rows
    first = rows.firsts()
    left_there = (rows.start[first] == 0) & (f.fill_count[rows.segment[first]] == 0)
    first = first[left_there & f.is_kind(BufferKind.WEIGHT)[rows.buffer[first]]]
    last = np.searchsorted(rows.buffer, rows.buffer[first], side="right") - 1
    end = PHASES_PER_STEP * len(f.program.steps)
    gone = (rows.end[last] != end) | (rows.address[last] != rows.address[first])
    for b in rows.buffer[first][gone].tolist():
        message = f"{f.name(b)} is on-chip at the start, but not at that place at the end"
        yield Violation(rule=PlanRule.NOT_STEADY, message=message, buffer=b)


def check_streams(f: PlanFacts) -> Iterator[Violation]:
    """Streamed operands are those of the program, whole in each pass, and off-chip all through their step."""
    seen: set[tuple[int, int, bool]] = set()
    sizes = _streamed_bytes(f)
    starts = PHASES_PER_STEP * field_column(f.plan.streamed, "step")
    on_chip = f.rows.touches(field_column(f.plan.streamed, "buffer"), starts, starts + PHASES_PER_STEP).tolist()
    for s, is_on_chip in zip(f.plan.streamed, on_chip, strict=True):
        key = (s.step, s.buffer, s.write)
        if key not in sizes:
            problem = "which the program does not stream"
        elif key in seen:
            problem = "twice"
        elif (s.size_bytes, s.transfers) != sizes[key]:
            nbytes, transfers = sizes[key]
            problem = f"but {s.size_bytes} of its {nbytes} bytes in {s.transfers} of {transfers} transfers"
        else:
            problem = "while it is on-chip" if is_on_chip else ""
        seen.add(key)
        if problem:
            message = f"step {s.step} streams {f.name(s.buffer)}, {problem}"
            yield Violation(rule=PlanRule.BAD_STREAM, message=message, step=s.step, buffer=s.buffer)
        elif not s.write and f.write_step[s.buffer] != s.step and f.copied_at[s.buffer] > s.step:
            message = f"step {s.step} streams {f.name(s.buffer)} from DRAM, where it is not yet"
            yield Violation(rule=PlanRule.NO_DRAM_COPY, message=message, step=s.step, buffer=s.buffer)
    for step, b, write in sorted(sizes.keys() - seen):
        if f.program.steps[step].mode is not None:
            message = f"step {step} does not {'write' if write else 'read'} the tiles of {f.name(b)}"
            yield Violation(rule=PlanRule.BAD_STREAM, message=message, step=step, buffer=b)


def _streamed_bytes(f: PlanFacts) -> dict[tuple[int, int, bool], tuple[int, int]]:
    """(step, buffer, whether it is written): bytes and transfers, of each operand that may be streamed."""
    found: dict[tuple[int, int, bool], tuple[int, int]] = {}
    for i, step in enumerate(f.program.steps):
        if step.mode is None:
            moved = f.moved_bytes
            found |= {(i, b, False): (int(moved[b]), 1) for b in step.streamed_reads}
            found |= {(i, b, True): (int(moved[b]), 1) for b in step.streamed_writes}
            continue
        for each in step.mode.traffic:
            if each.buffer not in step.writes:
                found[i, each.buffer, False] = each.read_bytes, each.transfers
                continue
            tiles = each.transfers // (2 * each.passes - 1)  # each leaves in every pass, and comes back but once
            found[i, each.buffer, True] = each.written_bytes, tiles * each.passes
            if each.read_bytes:
                found[i, each.buffer, False] = each.read_bytes, tiles * (each.passes - 1)
    return found


def check_holds(f: PlanFacts) -> Iterator[Violation]:
    """What a step holds is on-chip until the step has run, or in DRAM before it starts."""
    held = [(i, b) for i, step in enumerate(f.program.steps) for b in step.holds]
    if not held:
        return
    steps, buffers = int_column(i for i, _ in held), int_column(b for _, b in held)
    ticks = PHASES_PER_STEP * steps
    is_lost = (f.write_step[buffers] < steps) & (f.copied_at[buffers] > steps)
    is_lost &= f.rows.covering(buffers, ticks, ticks + Phase.WRITE) < 0
    for k in np.flatnonzero(is_lost).tolist():
        i, b = held[k]
        message = f"{f.name(b)} must be kept until step {i} has run, but is neither on-chip nor in DRAM then"
        yield Violation(rule=PlanRule.HELD_LOST, message=message, step=i, buffer=b)


def check_outputs(f: PlanFacts) -> Iterator[Violation]:
    """Every graph output that a step writes ends in DRAM."""
    lost = f.is_kind(BufferKind.OUTPUT) & (f.copied_at == NEVER) & (f.write_step >= 0)
    for b in np.flatnonzero(lost).tolist():
        message = f"{f.name(b)} is a graph output, but never written to DRAM"
        yield Violation(rule=PlanRule.OUTPUT_LOST, message=message, buffer=b)
