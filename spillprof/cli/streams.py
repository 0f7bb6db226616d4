"""Standard streams: closed ones, closed pipes, and encodings that lack some of our characters."""

import codecs
import errno
import os
import sys
from typing import TextIO

import click

from spillprof.report.text import BARS

_ALIKE = {"−": "-", "–": "-", "…": "~", "·": "|", "→": ">", "µ": "u", "×": "x", "²": "2", "¹": "1"}
_BARS_ALIKE = str.maketrans(BARS, ".:-=+*#@")
_ERRORS = "spillprof-alike"


def open_missing() -> bool:
    """Open closed standard streams on the null device; return whether stdout was open.

    Otherwise the next file opened would get the descriptor of a closed stream, and prints would go into it.
    """
    was_open = sys.stdout is not None
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)
    if sys.stdout is None:
        sys.stdout = _nowhere()
    if sys.stderr is None:
        sys.stderr = _nowhere()
    return was_open


def tell(text: str, *, color: bool | None = None) -> None:
    """Print lines on stderr. A closed stderr is no error."""
    try:
        click.echo(text, err=True, color=color)
    except OSError:
        discard(sys.stderr)


def say(text: str) -> None:
    """Write to stdout and flush. A closed pipe is no error: files may still have to be written."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        if error.errno != errno.EPIPE:
            raise
        discard(sys.stdout)


def discard(stream: TextIO) -> None:
    """Redirect a closed pipe to the null device, so that the final flush of the interpreter raises nothing."""
    try:
        number = stream.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)
    except (OSError, ValueError):  # no real file, e.g. under a test, or no descriptor is left
        if stream is sys.stdout:
            sys.stdout = _nowhere()
        elif stream is sys.stderr:
            sys.stderr = _nowhere()


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")


def make_encodable(stream: TextIO) -> None:
    """Make the stream accept any text: characters that its encoding lacks are replaced by similar ones."""
    if hasattr(stream, "reconfigure"):
        codecs.register_error(_ERRORS, _alike)
        stream.reconfigure(errors=_ERRORS)


def with_whole_bars(text: str, encoding: str | None) -> str:
    """The text, with all bars in ASCII if the encoding lacks any of them."""
    try:
        BARS.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return text.translate(_BARS_ALIKE)
    return text


def _alike(error: UnicodeError) -> tuple[str, int]:
    """Error handler for codecs: a replacement for the first character that cannot be encoded, and where to continue."""
    assert isinstance(error, UnicodeEncodeError)
    character = error.object[error.start]
    alike = _ALIKE.get(character) or character.encode("ascii", "backslashreplace").decode("ascii")
    return alike, error.start + 1
