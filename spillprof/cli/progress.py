"""Progress of long work: one line on a terminal, with the time that is left."""

import time
from typing import TextIO

_QUIET_S = 1.0  # work that is over sooner shows nothing
_EVERY_S = 0.2


class Progress:
    """Told how many points, or what else is counted, are done; says so on a terminal, after the first second."""

    def __init__(self, stream: TextIO, *, shown: bool, counted: str = "points") -> None:
        self._stream = stream
        self._counted = counted
        self._shown = shown and stream.isatty()
        self._start_s = self._last_s = time.monotonic()
        self._first: int | None = None
        self._width = 0

    def __call__(self, done: int, total: int) -> None:
        """``done`` of ``total`` are finished."""
        now_s = time.monotonic()
        if self._first is None:
            self._first = done  # known before, or done before the clock could tell a rate
        if not self._shown or now_s - self._start_s < _QUIET_S or now_s - self._last_s < _EVERY_S:
            return
        self._last_s = now_s
        rate = (done - self._first) / (now_s - self._start_s)
        left = f", {_duration((total - done) / rate)} left" if rate > 0 else ""
        text = f"{done:,} of {total:,} {self._counted}{left}"
        self._stream.write(f"\r{text.ljust(self._width)}")
        self._stream.flush()
        self._width = len(text)

    def clear(self) -> None:
        """Take the line away."""
        if self._width:
            self._stream.write(f"\r{' ' * self._width}\r")
            self._stream.flush()
            self._width = 0


def _duration(seconds: float) -> str:
    """``8 s``, ``3 min``, ``2.5 h``."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
