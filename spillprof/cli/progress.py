"""Progress of long work: one terminal line with a bar and the time left or elapsed."""

import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from spillprof.ir.interrupts import before_end
from spillprof.ir.stages import Stage

_QUIET_S = 1.0  # shorter work shows no bar
_EVERY_S = 0.2
_BAR_COLUMNS = 20


class ProgressBar:
    """Shows on a terminal how many items are done, from the first second on."""

    def __init__(self, stream: TextIO, *, shown: bool, counted: str = "points") -> None:
        self._line = _Line(stream, shown=shown)
        self._counted = counted
        self._start_s = self._last_s = time.monotonic()
        self._first: int | None = None

    def __call__(self, done: int, total: int) -> None:
        """Report that ``done`` of ``total`` are finished."""
        now_s = time.monotonic()
        if self._first is None:
            self._first = done  # finished before the clock started: not part of the rate
        if now_s - self._start_s < _QUIET_S or now_s - self._last_s < _EVERY_S:
            return
        self._last_s = now_s
        rate = (done - self._first) / (now_s - self._start_s)
        left = f", {_duration((total - done) / rate)} left" if rate > 0 else ""
        self._line.write(f"{_bar(done, total)} {done:,} of {total:,} {self._counted}{left}")

    def clear(self) -> None:
        """Erase the line."""
        self._line.clear()


@contextmanager
def stages(stream: TextIO, *, shown: bool) -> Iterator[Stage]:
    """Show the current stage and the time elapsed while the block runs, then erase the line.

    A stage may run long without a callback, so a thread redraws the line.
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
    """A terminal line that is redrawn in place. Writes nothing to what is not such a terminal."""

    def __init__(self, stream: TextIO, *, shown: bool) -> None:
        self.shown = shown and stream.isatty() and os.environ.get("TERM") != "dumb"
        self._stream = stream
        self._width = 0
        if self.shown:
            before_end(self.clear)

    def write(self, text: str) -> None:
        if self.shown:
            text = text[: shutil.get_terminal_size().columns - 1]  # a wrapped line cannot be overwritten
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
        except (OSError, RuntimeError):  # the terminal is gone, or Ctrl-C interrupted a write
            self.shown = False


def _bar(done: int, total: int) -> str:
    """``[#####...............]``, in ASCII: the terminal's font may lack block characters."""
    filled = _BAR_COLUMNS * done // max(total, 1)
    return f"[{'#' * filled}{'.' * (_BAR_COLUMNS - filled)}]"


def _duration(seconds: float) -> str:
    """``8 s``, ``3 min``, ``2.5 h``."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
