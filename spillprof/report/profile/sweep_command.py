"""The command that sweeps over sizes of memory what a Profile has analysed in one."""

import shlex
from collections.abc import Iterator, Sequence

from spillprof.ir.profile import Profile
from spillprof.ir.units import size_word

_WITH_VALUE = ("-o", "--output", "--sram", "--what-if", "--why", "--plan", "--save-order", "--top")
_FLAGS = ("--json", "--events", "--no-report")
"""Options of ``analyze`` that a sweep does without, or gives anew."""


def sweep_command(profile: Profile) -> str:
    """``analyze`` as it was typed, turned into a ``sweep``; from the model alone where that is not known."""
    sizes = ("--sram", _range(profile))
    try:
        words = shlex.split(profile.command)
        at = words.index("analyze")
    except ValueError:  # no command, or one with quotes that only some shells know
        return shlex.join(["spillprof", "sweep", profile.model.path, *sizes])
    settings = [f"{name}={shlex.quote(value)}" for name, _, value in (word.partition("=") for word in words[: at - 1])]
    return " ".join([*settings, "spillprof", shlex.join(["sweep", *_kept(words[at + 1 :]), *sizes])])


def _kept(words: Sequence[str]) -> Iterator[str]:
    rest = iter(words)
    for word in rest:
        if word in _WITH_VALUE:
            next(rest, None)
        elif word not in _FLAGS and word.partition("=")[0] not in _WITH_VALUE and not word.startswith("-o"):
            yield word


def _range(profile: Profile) -> str:
    """All that matters; where operators are tiled in this memory, from half of it on."""
    here = profile.target.sram_bytes
    if here >= profile.model.min_sram_bytes:
        return "auto"
    return f"{size_word(max(here // 2, profile.target.alignment_bytes))}..{size_word(4 * here)}"
