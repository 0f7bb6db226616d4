"""What a rise of spill bytes goes back to: buffers that one run holds and the other does not, where more is forced out.

At each step the bytes that are forced out more are shared among the buffers held besides, by their size. That is a
pointer to where to look, found without simulating anything.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from spillprof.ir.profile import Profile
from spillprof.ir.profile_facts import BufferFact
from spillprof.studies.diff.buffers import beyond, last_step
from spillprof.studies.diff.matching import Pairs
from spillprof.studies.diff.values import Source, Why

MAX_SOURCES = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class _Extra:
    """Bytes that a buffer takes in steps ``[start, end)`` and did not in the other run."""

    buffer: BufferFact
    start: int
    end: int
    size_bytes: int
    why: Why
    readers: tuple[int, ...]  # steps to blame


def pressure(
    other: Profile, profile: Profile, pairs: Pairs, rise_bytes: Sequence[int], *, is_reordered: bool
) -> tuple[Source, ...]:
    """Buffers that ``profile`` holds beyond ``other``, with their share of the rise, largest first.

    ``rise_bytes``: what each step of ``profile`` forces out more. ``pairs`` lead from ``other`` to ``profile``. In
    another order of operators everything is held for longer or shorter: then only what is new or larger counts.
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
        Source(
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
    return tuple(sorted((s for s in found if s.share_bytes > 0), key=lambda s: -s.share_bytes)[:MAX_SOURCES])


def _extras(other: Profile, profile: Profile, pairs: Pairs, a: int, is_reordered: bool) -> list[_Extra]:
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


def _end_of(old: BufferFact, pairs: Pairs, start: int) -> int:
    """The last step of the run that reads the buffer as the other run does."""
    steps = (pairs.after_of_step[step] for step in reversed(old.read_by))
    return next((step for step in steps if step is not None), start)
