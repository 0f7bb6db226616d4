"""A change to the command line, its words as a shell takes them, and the situation that it starts from."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from spillprof.explain.whatif.trial import Trial, TrialTotals
from spillprof.ir.graph import Graph
from spillprof.ir.program import Program
from spillprof.ir.result import BufferCost


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing done differently."""

    kind: str  # "pin", "sram", ...
    argument: str  # what to add to the command line, as a shell takes it
    costs: str  # its price in words
    trial: Trial  # with the change made
    runs: int = 1  # how many such runs do the work of one run before the change
    made: TrialTotals | None = None  # of the run, if it was made already


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallerBatch:
    """The same model with fewer samples a run."""

    argument: str
    runs: int  # that do the same work
    read: Callable[[], Graph]


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What was run, and what is known about it."""

    trial: Trial
    program: Program  # in the order that was asked for, not fitted
    spill_bytes: int  # under the strategy of the trial
    buffers: tuple[BufferCost, ...]  # what that moved, dearest first
    strategies: tuple[str, ...]  # compared already
    moved_bytes: int = 0  # inside SRAM
    pinned: Mapping[str, TrialTotals] = field(default_factory=dict)  # by buffer: runs with a slot for it, made already
    better_order: Callable[[], tuple[int, ...] | None] = field(default=lambda: None)  # one that spills less, if any
    smaller_batch: SmallerBatch | None = None


def shell_word(text: str) -> str | None:
    r"""``text`` as one word of a shell; None if no command line can carry it.

    Names come from models. What could steer a terminal is written as ``$'\x1b'``, which bash, zsh and ksh understand.
    """
    try:
        encoded = text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return None
    if "\0" in text:
        return None
    if text.isprintable():
        return shlex.quote(text)
    quoted = "".join(_character(c) for c in text)
    return f"$'{quoted}'" if encoded else None


def option_words(option: str, names: Sequence[str]) -> str | None:
    """``--pin a --pin b``; None if a name is empty, or no command line can carry it."""
    words = [shell_word(name) if name else None for name in names]
    return None if None in words else " ".join(f"{option} {word}" for word in words)


def rate_word(bytes_per_s: float) -> str | None:
    """``120GB/s`` or ``1234567B/s``; None for a rate that is not whole, as few are."""
    if not bytes_per_s.is_integer() or bytes_per_s >= 1e18:
        return None
    whole = int(bytes_per_s)
    for unit, factor in (("GB/s", 10**9), ("MB/s", 10**6), ("KB/s", 10**3)):
        if whole % factor == 0:
            return f"{whole // factor}{unit}"
    return f"{whole}B/s"


def _character(character: str) -> str:
    if character in "'\\":
        return f"\\{character}"
    if character.isprintable():
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode())
