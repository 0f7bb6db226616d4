"""Buffers whose spill bytes differ, and what is different about them."""

from collections.abc import Mapping

from spillprof.ir.profile import Profile
from spillprof.ir.profile_facts import BufferFact
from spillprof.ir.result import BufferCost, Result
from spillprof.studies.diff.matching import Pairs
from spillprof.studies.diff.values import BufferChange, Fate, Why

READERS_NAMED = 4


def buffer_changes(before: Profile, after: Profile, old: Result, new: Result, pairs: Pairs) -> tuple[BufferChange, ...]:
    """Buffers that spill more or less, largest change first."""
    was, now = _costs(old), _costs(new)
    rows: list[BufferChange] = []
    for a, buffer in enumerate(after.buffers):
        b = pairs.before_of_buffer[a]
        partner = None if b is None else before.buffers[b]
        change = _change(before, after, partner, buffer, was, now, pairs)
        if change.delta_bytes:
            rows.append(change)
    for b, buffer in enumerate(before.buffers):
        if pairs.after_of_buffer[b] is None and _key(buffer) in was:
            rows.append(_change(before, after, buffer, None, was, now, pairs))
    return tuple(sorted(rows, key=lambda c: (-abs(c.delta_bytes), (c.steps_after or c.steps_before or (0, 0))[0])))


def last_step(buffer: BufferFact) -> int:
    """The last step that touches it; -1 if none does."""
    return buffer.read_by[-1] if buffer.read_by else -1 if buffer.written_by is None else buffer.written_by


def fate(before: str | None, after: str | None) -> Fate:
    """What became of something with these names; None where it is not there."""
    if before is None or after is None:
        return Fate.ADDED if before is None else Fate.REMOVED
    return Fate.KEPT if before == after else Fate.RENAMED


def beyond(buffer: BufferFact, partner: BufferFact, partner_of_step: tuple[int | None, ...]) -> list[int]:
    """Steps that read the buffer although the steps that they are paired with do not read its partner."""
    others = set(partner.read_by)
    return [step for step in buffer.read_by if partner_of_step[step] not in others]


def _change(
    before: Profile,
    after: Profile,
    old: BufferFact | None,
    new: BufferFact | None,
    was: Mapping[tuple[str, int], BufferCost],
    now: Mapping[tuple[str, int], BufferCost],
    pairs: Pairs,
) -> BufferChange:
    buffer = new or old
    assert buffer is not None
    old_cost = None if old is None else was.get(_key(old))
    new_cost = None if new is None else now.get(_key(new))
    why, operators = _why(before, after, old, new, pairs)
    return BufferChange(
        name=buffer.name,
        name_before=None if old is None else old.name,
        kind=buffer.kind,
        fate=fate(None if old is None else old.name, None if new is None else new.name),
        size_bytes_before=None if old is None else old.size_bytes,
        size_bytes_after=None if new is None else new.size_bytes,
        spill_count_before=0 if old_cost is None else old_cost.spill_count,
        spill_count_after=0 if new_cost is None else new_cost.spill_count,
        spill_bytes_before=0 if old_cost is None else old_cost.spill_bytes,
        spill_bytes_after=0 if new_cost is None else new_cost.spill_bytes,
        steps_before=None if old is None else _span(old),
        steps_after=None if new is None else _span(new),
        why=why,
        operators=operators,
    )


def _why(
    before: Profile, after: Profile, old: BufferFact | None, new: BufferFact | None, pairs: Pairs
) -> tuple[Why, tuple[str, ...]]:
    """What sets the two apart, the likeliest reason first, and the operators that it is due to."""
    if old is None or new is None:
        profile, buffer = (after, new) if new is not None else (before, old)
        assert buffer is not None
        writer = () if buffer.written_by is None else (profile.steps[buffer.written_by].name,)
        return (Why.ADDED if old is None else Why.REMOVED), writer
    gained, lost = beyond(new, old, pairs.before_of_step), beyond(old, new, pairs.after_of_step)
    if gained and (not lost or last_step(new) in gained):
        return Why.NEW_READER, tuple(after.steps[step].name for step in gained[:READERS_NAMED])
    if new.size_bytes != old.size_bytes:
        return (Why.LARGER if new.size_bytes > old.size_bytes else Why.SMALLER), ()
    if lost:
        return Why.LOST_READER, tuple(before.steps[step].name for step in lost[:READERS_NAMED])
    spans = [last - first for first, last in (_span(old), _span(new))]
    if spans[0] != spans[1]:
        return (Why.LONGER if spans[1] > spans[0] else Why.SHORTER), ()
    return Why.SAME, ()


def _costs(result: Result) -> dict[tuple[str, int], BufferCost]:
    return {(cost.name, cost.start): cost for cost in result.buffers}


def _key(buffer: BufferFact) -> tuple[str, int]:
    return buffer.name, buffer.written_by or 0


def _span(buffer: BufferFact) -> tuple[int, int]:
    return buffer.written_by or 0, max(last_step(buffer), 0)
