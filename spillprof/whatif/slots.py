"""Dedicated slots for the buffers that move most."""

from collections.abc import Iterator
from dataclasses import replace

from spillprof.units import format_size
from spillprof.whatif.change import Change, Situation
from spillprof.whatif.words import shell_word

_MOST_SLOTS = 3


def dedicated_slots(now: Situation) -> Iterator[Change]:
    """One buffer at a time, dearest first, beside those that have a slot already."""
    lowering = now.setup.lowering
    for buffer in now.buffers[:_MOST_SLOTS]:
        pins = (*lowering.pin, buffer.name)
        words = [shell_word(name) for name in pins]
        if buffer.name and all(words):
            yield Change(
                kind="pin",
                argument=" ".join(f"--pin {word}" for word in words),
                costs=f"{format_size(buffer.size_bytes)} of SRAM reserved for the whole run",
                setup=replace(now.setup, lowering=replace(lowering, pin=pins)),
            )
