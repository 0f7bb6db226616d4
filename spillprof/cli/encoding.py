"""What a terminal or pipe cannot encode is written otherwise: our signs by one that looks alike, names as escapes."""

import codecs
from typing import TextIO

from spillprof.report.text import BARS

_ALIKE = {"−": "-", "–": "-", "…": "~", "·": "|", "→": ">", "µ": "u", "×": "x", "²": "2", "¹": "1"}
_BARS_ALIKE = str.maketrans(BARS, ".:-=+*#@")
_ERRORS = "spillprof-alike"


def make_encodable(stream: TextIO) -> None:
    """From now on the stream takes any text, whatever its encoding; what tables align stays aligned."""
    if hasattr(stream, "reconfigure"):
        codecs.register_error(_ERRORS, _alike)
        stream.reconfigure(errors=_ERRORS)


def with_whole_bars(text: str, encoding: str | None) -> str:
    """The text; bars in ASCII if the encoding has not all of them, as some have every fourth."""
    try:
        BARS.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return text.translate(_BARS_ALIKE)
    return text


def _alike(error: UnicodeError) -> tuple[str, int]:
    """For the codecs: what to write for the first character that could not be encoded, and where to go on."""
    assert isinstance(error, UnicodeEncodeError)
    character = error.object[error.start]
    alike = _ALIKE.get(character) or character.encode("ascii", "backslashreplace").decode("ascii")
    return alike, error.start + 1
