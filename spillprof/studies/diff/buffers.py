"""Buffers whose spill bytes differ, and the buffers that a rise of spill bytes goes back to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from spillprof.ir.profile import Profile
from spillprof.ir.profile_facts import BufferFact
from spillprof.ir.result import BufferCost, Result
from spillprof.studies.diff.matching import Pairing
from spillprof.studies.diff.values import BufferChange, Fate, PressureSource, Why

READERS_NAMED = 4


def buffer_changes(
    before: Profile, after: Profile, old: Result, new: Result, pairs: Pairing
) -> tuple[BufferChange, ...]:
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
    """Whether a thing was kept, renamed, added or removed; None: absent from that run."""
    if before is None or after is None:
        return Fate.ADDED if before is None else Fate.REMOVED
    return Fate.KEPT if before == after else Fate.RENAMED


def beyond(buffer: BufferFact, partner: BufferFact, partner_of_step: tuple[int | None, ...]) -> list[int]:
    """Steps that read the buffer, while their partners do not read its partner."""
    others = set(partner.read_by)
    return [step for step in buffer.read_by if partner_of_step[step] not in others]


def _change(
    before: Profile,
    after: Profile,
    old: BufferFact | None,
    new: BufferFact | None,
    was: Mapping[tuple[str, int], BufferCost],
    now: Mapping[tuple[str, int], BufferCost],
    pairs: Pairing,
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
    before: Profile, after: Profile, old: BufferFact | None, new: BufferFact | None, pairs: Pairing
) -> tuple[Why, tuple[str, ...]]:
    """The likeliest reason for the difference, and the operators responsible."""
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


_MOST_SOURCES = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class _Extra:
    """Bytes that a buffer occupies in steps ``[start, end)``, and does not in the other run."""

    buffer: BufferFact
    start: int
    end: int
    size_bytes: int
    why: Why
    readers: tuple[int, ...]  # steps responsible


def pressure(
    other: Profile, profile: Profile, pairs: Pairing, rise_bytes: Sequence[int], *, is_reordered: bool
) -> tuple[PressureSource, ...]:
    """Buffers that ``profile`` keeps live and ``other`` does not, with their share of the rise, largest first.

    At each step the additional spill bytes are shared among the additional live buffers, by size: a pointer to where to
    look, found without simulation. ``rise_bytes``: additional spill bytes of each step of ``profile``. ``pairs`` lead
    from ``other`` to ``profile``. If operators are reordered, every live range differs: only new and larger buffers
    count.
    """
    if not any(rise_bytes):
        return ()
    extras = [e for a in range(len(profile.buffers)) for e in _extras(other, profile, pairs, a, is_reordered)]
    held = [0] * (len(profile.steps) + 1)
    for extra in extras:
        held[extra.start] += extra.size_bytes
        held[extra.end] -= extra.size_bytes
    weights = [rise / total if total else 0.0 for rise, total in zip(rise_bytes, accumulate(held[:-1]), strict=True)]
    until = [0.0, *accumulate(weights)]
    found = [
        PressureSource(
            buffer=extra.buffer.name,
            size_bytes=extra.buffer.size_bytes,
            why=extra.why,
            operators=tuple(profile.steps[step].name for step in extra.readers),
            are_new=bool(extra.readers) and all(pairs.before_of_step[step] is None for step in extra.readers),
            steps=extra.end - extra.start,
            share_bytes=round(extra.size_bytes * (until[extra.end] - until[extra.start])),
        )
        for extra in extras
    ]
    return tuple(sorted((s for s in found if s.share_bytes > 0), key=lambda s: -s.share_bytes)[:_MOST_SOURCES])


def _extras(other: Profile, profile: Profile, pairs: Pairing, a: int, is_reordered: bool) -> list[_Extra]:
    buffer = profile.buffers[a]
    partner = pairs.before_of_buffer[a]
    start, end = buffer.written_by or 0, last_step(buffer) + 1
    if end <= start:
        return []
    if partner is None:
        by = () if buffer.written_by is None else (buffer.written_by,)
        return [_extra(buffer, start, end, buffer.size_bytes, Why.ADDED, by)]
    old, found = other.buffers[partner], []
    if buffer.size_bytes > old.size_bytes:
        by = () if buffer.written_by is None else (buffer.written_by,)
        found.append(_extra(buffer, start, end, buffer.size_bytes - old.size_bytes, Why.LARGER, by))
    if not is_reordered:
        until = _end_of(old, pairs, start) + 1
        if end > until:
            late = [step for step in beyond(buffer, old, pairs.before_of_step) if step >= until]
            why = Why.NEW_READER if late else Why.LONGER
            found.append(_extra(buffer, until, end, old.size_bytes, why, late[-1:]))
    return found


def _extra(buffer: BufferFact, start: int, end: int, size_bytes: int, why: Why, readers: Sequence[int]) -> _Extra:
    return _Extra(buffer=buffer, start=start, end=end, size_bytes=size_bytes, why=why, readers=tuple(readers))


def _end_of(old: BufferFact, pairs: Pairing, start: int) -> int:
    """Partner of the last step of the other run that reads the buffer."""
    steps = (pairs.after_of_step[step] for step in reversed(old.read_by))
    return next((step for step in steps if step is not None), start)
