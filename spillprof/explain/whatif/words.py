"""Arguments as a shell takes them, and rates as options read them back, exactly."""

import shlex
from collections.abc import Sequence


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
