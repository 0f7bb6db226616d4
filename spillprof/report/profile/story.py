"""The history of a tensor or an operator (--why) as sentences and table rows."""

from collections.abc import Iterator, Sequence

from spillprof.ir.story import Absence, OperatorStory, Story, Suggestion, TensorStory
from spillprof.ir.units import format_size, format_time
from spillprof.report.scales import signed_time
from spillprof.report.text import count_of, label

NAME_WIDTH = 40
NAMES_SHOWN = 4

COLUMNS = ("left after", "pushed out by", "needed by", "written", "reloaded", "waited", "why")
"""Heads of the table of absences."""


def story_paragraphs(story: Story) -> Iterator[tuple[str, tuple[str, ...], tuple[Absence, ...]]]:
    """Yields (title, sentences, absences for a table) of each tensor and operator."""
    for tensor in story.tensors:
        yield (
            f"Why {label(tensor.buffer, NAME_WIDTH)} (under {story.strategy})",
            tuple(_tensor(tensor)),
            tensor.absences,
        )
    for operator in story.operators:
        title = f"Why #{operator.step} {label(operator.name, NAME_WIDTH)} (under {story.strategy})"
        yield title, tuple(_operator(operator)), operator.victims


def absence_row(absence: Absence, *, with_buffer: bool, name_width: int = 20) -> tuple[str, ...]:
    """Returns cells under ``COLUMNS``; with ``with_buffer`` the first cell names the buffer."""
    left = "the start" if absence.last_use_step < 0 else f"#{absence.last_use_step}"
    return (
        f"{label(absence.buffer, name_width)} {left}" if with_buffer else left,
        f"#{absence.forced_by_step} {label(absence.forced_by, name_width)}",
        "no step"
        if absence.needed_step is None
        else f"#{absence.needed_step} {label(absence.needed_by or '', name_width)}",
        format_size(absence.write_bytes) if absence.write_bytes else "clean",
        format_size(absence.read_bytes) if absence.read_bytes else "-",
        format_time(absence.wait_s) if absence.wait_s else "-",
        absence.kind if absence.cause in (None, "capacity") else absence.cause,
    )


def _tensor(story: TensorStory) -> Iterator[str]:
    others = [name for name in story.tensors if name != story.buffer]
    kept = f"; it keeps {_names(others)} too" if others else ""
    yield f"{format_size(story.size_bytes)}, {story.kind}{kept}."
    if story.written_by is None:
        written = "There from the start"
    else:
        written = f"Written by #{story.written_by_step} {label(story.written_by, NAME_WIDTH)}"
    readers = [f"#{step} {label(name, 24)}" for step, name in zip(story.read_by_steps, story.read_by, strict=True)]
    yield f"{written}, {'read by ' + _listed(readers) if readers else 'read by no step'}."
    if story.held_by is not None:
        held_by = f"#{story.held_by_step} {label(story.held_by, NAME_WIDTH)}"
        yield f"It is kept until {held_by} has its condition: the branch that is not taken might have read it."
    if story.dedicated:
        yield "It lies in a slot of its own and never leaves."
    elif not story.absences and not story.streamed_bytes:
        still = ", but not in one place" if story.moves else ": nothing of it spills"
        yield f"It stays in SRAM from its first use to its last{still}."
    if story.moves:
        where = [f"before #{move.step} {label(move.before, 24)}" for move in story.moves]
        took_s = sum(move.took_s for move in story.moves)
        yield (
            f"It is moved inside SRAM {count_of(len(story.moves), 'time')}, {_listed(where)}, for want of one free "
            f"piece: {format_time(took_s)}."
        )
    if story.absences:
        written_bytes = sum(a.write_bytes for a in story.absences)
        read_bytes = sum(a.read_bytes for a in story.absences)
        clean = sum(not a.write_bytes for a in story.absences)
        without = f", {clean:,} without a write" if clean else ""
        waited = f"steps stall {format_time(story.wait_s)} for it" if story.wait_s else "no step stalls for it"
        yield (
            f"It leaves {count_of(len(story.absences), 'time')}{without}: {format_size(written_bytes)} written, "
            f"{format_size(read_bytes)} reloaded; {waited}."
        )
    if story.streamed_bytes:
        yield f"Operators that cannot fit tile it through DRAM: {format_size(story.streamed_bytes)}."
    if story.pinned is not None:
        yield f"In a slot of its own: {_remedy(story.pinned)}."
    elif (story.absences or story.moves) and not story.dedicated:
        yield "In a slot of its own nothing could be planned."
    if story.stays is not None:
        stay = "stay" if story.absences or story.streamed_bytes else "lie still"
        yield f"It would {stay} by itself with {_remedy(story.stays)}."


def _operator(story: OperatorStory) -> Iterator[str]:
    inside = [name for name in story.operators if name != story.name]
    yield f"{label(story.op_type, 30)}{', with ' + _names(inside) if inside else ''}."
    for role in ("reads", "writes", "reads, tiled", "writes, tiled"):
        own = [f"{label(o.buffer, 24)} ({format_size(o.size_bytes)})" for o in story.operands if o.role == role]
        if own:
            yield f"{role.capitalize()}: {_listed(own)}."
    beside = sum(b.size_bytes for b in story.bystanders)
    yield (
        f"It needs {format_size(story.demand_bytes)} at once, of {format_size(story.pool_bytes)} that are not "
        f"reserved; {format_size(beside)} lie beside it."
    )
    if story.bystanders:
        waiting = [
            f"{label(b.buffer, 24)} ({format_size(b.size_bytes)}, "
            f"{'not read again in this run' if b.next_use_step is None else f'next read by #{b.next_use_step}'})"
            for b in story.bystanders
        ]
        yield f"Beside it: {_listed(waiting)}."
    if story.victims:
        moved = sum(v.write_bytes + v.read_bytes for v in story.victims)
        yield f"It evicts {count_of(len(story.victims), 'buffer')}: {format_size(moved)} written and reloaded."
    else:
        yield "It evicts nothing."
    if story.streamed_bytes:
        yield f"It cannot fit, and tiles {format_size(story.streamed_bytes)} through DRAM."
    if story.stall_s:
        whom = f", last for {label(story.stall_buffer, NAME_WIDTH)}" if story.stall_buffer else ""
        yield f"It waits {format_time(story.stall_s)} before it starts{whom}."


def _remedy(remedy: Suggestion) -> str:
    return (
        f"{label(remedy.argument, 400)} (latency {signed_time(-remedy.saves_s)}, {format_size(remedy.spill_bytes)} "
        f"spilled in all under {remedy.strategy}; {remedy.costs})"
    )


def _names(names: Sequence[str]) -> str:
    return _listed([label(name, 24) for name in names])


def _listed(items: Sequence[str]) -> str:
    more = len(items) - NAMES_SHOWN
    return ", ".join(items[:NAMES_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
