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
    """Let standard streams that are closed lead nowhere; whether stdout was open.

    Else the next file that is opened would get the number of one, and what is printed there would go into it.
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
    """A line or more on stderr. What is asked for is done all the same where nobody can read them."""
    try:
        click.echo(text, err=True, color=color)
    except OSError:
        discard(sys.stderr)


def say(text: str) -> None:
    """Write to stdout at once. A reader that had enough is no failure: files are still to be written."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        if error.errno != errno.EPIPE:
            raise
        discard(sys.stdout)


def discard(stream: TextIO) -> None:
    """Send what is still buffered for a closed pipe nowhere, so that the interpreter can exit in silence."""
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
