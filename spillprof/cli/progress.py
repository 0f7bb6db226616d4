"""Progress of long work: one line on a terminal, with a bar, and the time that is left or has passed."""

import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from spillprof.ir.interrupts import before_end
from spillprof.ir.stages import Stage

_QUIET_S = 1.0  # work that is over sooner shows nothing
_EVERY_S = 0.2
_BAR_COLUMNS = 20


class Progress:
    """Told how many points, or what else is counted, are done; says so on a terminal, after the first second."""

    def __init__(self, stream: TextIO, *, shown: bool, counted: str = "points") -> None:
        self._line = _Line(stream, shown=shown)
        self._counted = counted
        self._start_s = self._last_s = time.monotonic()
        self._first: int | None = None

    def __call__(self, done: int, total: int) -> None:
        """``done`` of ``total`` are finished."""
        now_s = time.monotonic()
        if self._first is None:
            self._first = done  # known before, or done before the clock could tell a rate
        if now_s - self._start_s < _QUIET_S or now_s - self._last_s < _EVERY_S:
            return
        self._last_s = now_s
        rate = (done - self._first) / (now_s - self._start_s)
        left = f", {_duration((total - done) / rate)} left" if rate > 0 else ""
        self._line.write(f"{_bar(done, total)} {done:,} of {total:,} {self._counted}{left}")

    def clear(self) -> None:
        """Take the line away."""
        self._line.clear()


@contextmanager
def stages(stream: TextIO, *, shown: bool) -> Iterator[Stage]:
    """While the block runs, a line says which stage runs and for how long; after the block it is gone.

    A stage may take long and tell nothing, so a thread keeps the line up to date.
    """
    line = _Line(stream, shown=shown)
    start_s = time.monotonic()
    now = ""
    over = threading.Event()

    def tell(done: int, total: int, what: str) -> None:
        nonlocal now
        now = f"{_bar(done, total)} {what}"

    def draw() -> None:
        wait_s = _QUIET_S
        while not over.wait(wait_s):
            line.write(f"{now}, {_duration(time.monotonic() - start_s)}" if now else "")
            wait_s = _EVERY_S

    drawing = threading.Thread(target=draw, daemon=True)
    if line.shown:
        drawing.start()
    try:
        yield tell
    finally:
        over.set()
        if line.shown:
            drawing.join()
        line.clear()


class _Line:
    """One line of a terminal that is written over and over; nothing where there is no terminal that can."""

    def __init__(self, stream: TextIO, *, shown: bool) -> None:
        self.shown = shown and stream.isatty() and os.environ.get("TERM") != "dumb"
        self._stream = stream
        self._width = 0
        if self.shown:
            before_end(self.clear)

    def write(self, text: str) -> None:
        if self.shown:
            text = text[: shutil.get_terminal_size().columns - 1]  # a line that wraps cannot be written over
            self._put(f"\r{text.ljust(self._width)}")
            self._width = len(text)

    def clear(self) -> None:
        if self._width:
            self._put(f"\r{' ' * self._width}\r")
            self._width = 0

    def _put(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, RuntimeError):  # the terminal is gone, or Ctrl-C came in the middle of a write
            self.shown = False


def _bar(done: int, total: int) -> str:
    """``[#####...............]``: in ASCII, as nobody knows what the terminal's font has."""
    filled = _BAR_COLUMNS * done // max(total, 1)
    return f"[{'#' * filled}{'.' * (_BAR_COLUMNS - filled)}]"


def _duration(seconds: float) -> str:
    """``8 s``, ``3 min``, ``2.5 h``."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
