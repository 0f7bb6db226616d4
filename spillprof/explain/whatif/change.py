"""A what-if change, its command-line argument quoted for a shell, and the run that it changes."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from spillprof.explain.whatif.trial import Trial, TrialTotals
from spillprof.ir.graph import Graph
from spillprof.ir.program import Program
from spillprof.ir.result import BufferCost


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change to a run."""

    kind: str  # "pin", "sram", ...
    argument: str  # to add to the command line, quoted for a shell
    costs: str  # what it costs, in words
    trial: Trial  # the changed run
    runs: int = 1  # changed runs that do the work of one unchanged run
    made: TrialTotals | None = None  # totals of the trial, if known already


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallerBatch:
    """The same model with fewer samples per run."""

    argument: str
    runs: int  # that do the work of one run of the whole batch
    read: Callable[[], Graph]


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The run that changes start from, and its figures."""

    trial: Trial
    program: Program  # in the order that the options select, not fitted
    spill_bytes: int  # under the strategy of the trial
    buffers: tuple[BufferCost, ...]  # that it moved, most bytes first
    strategies: tuple[str, ...]  # analyzed already
    moved_bytes: int = 0  # inside SRAM
    pinned: Mapping[str, TrialTotals] = field(default_factory=dict)  # by buffer: known totals with a slot for it
    better_order: Callable[[], tuple[int, ...] | None] = field(default=lambda: None)  # one that spills less, if any
    smaller_batch: SmallerBatch | None = None


def shell_word(text: str) -> str | None:
    r"""``text`` quoted as one shell word; None if it cannot be part of a command line.

    Names from models are untrusted: control characters become ``$'\x1b'``, which bash, zsh and ksh understand.
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
    """``--pin a --pin b``; None if a name is empty or cannot be part of a command line."""
    words = [shell_word(name) if name else None for name in names]
    return None if None in words else " ".join(f"{option} {word}" for word in words)


def rate_word(bytes_per_s: float) -> str | None:
    """``120GB/s`` or ``1234567B/s``; None for a rate that is not a whole number."""
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
