"""Dedicated slots for the buffers that move most."""

from collections.abc import Iterator
from dataclasses import replace

from spillprof.explain.whatif.change import Change, Situation
from spillprof.explain.whatif.trial import Trial
from spillprof.explain.whatif.words import option_words
from spillprof.ir.units import format_size

_MOST_SLOTS = 3


def dedicated_slots(now: Situation) -> Iterator[Change]:
    """One buffer at a time, dearest first, beside those that have a slot already; without those that were tried."""
    for buffer in now.buffers[:_MOST_SLOTS]:
        change = None if buffer.name in now.pinned else slot(buffer.name, buffer.size_bytes, now.trial)
        if change is not None:
            yield change


def tried_slots(now: Situation) -> Iterator[Change]:
    """Slots for buffers that oscillate, whose runs were made to say so."""
    for buffer in now.buffers:
        change = slot(buffer.name, buffer.size_bytes, now.trial) if buffer.name in now.pinned else None
        if change is not None:
            yield replace(change, made=now.pinned[buffer.name])


def slot(buffer: str, size_bytes: int, trial: Trial) -> Change | None:
    """The run with a slot for a buffer; None if no command line can name it."""
    pins = (*trial.run.lowering.pin, buffer)
    argument = option_words("--pin", pins)
    if argument is None:
        return None
    return Change(
        kind="pin",
        argument=argument,
        costs=f"{format_size(size_bytes)} of SRAM reserved for the whole run",
        trial=trial.lowered(pin=pins),
    )
