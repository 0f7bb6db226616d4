"""Ctrl-C: ends the process silently, or raises ``KeyboardInterrupt`` within blocks that can keep partial work.

An exception may be raised at any bytecode: during an import, which turns it into another error, or in a callback that
can only print it. So it is raised only within ``with raised():``. This module is imported before all others, and
imports next to nothing.
"""

import atexit
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType

EXIT_CODE = 130

_before_end: "Callable[[], None]" = lambda: None  # noqa: E731
_was_raised = False


def end_in_silence() -> None:
    """Makes Ctrl-C end this process with exit code 130, unless it was started with SIGINT ignored."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _end)
        sys.unraisablehook = _report_unraisable
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # at interpreter exit the work is done


def before_end(act: "Callable[[], None]") -> None:
    """Sets the function that runs before Ctrl-C ends the process."""
    global _before_end
    _before_end = act


class raised:
    """Context manager: within the block Ctrl-C raises ``KeyboardInterrupt``."""

    def __enter__(self) -> None:
        global _was_raised
        self._swaps = signal.getsignal(signal.SIGINT) is _end
        if self._swaps:
            _was_raised = False
            signal.signal(signal.SIGINT, _raise)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        if self._swaps:
            signal.signal(signal.SIGINT, _end)


def check() -> None:
    """Raises ``KeyboardInterrupt`` again if one was raised in this block: library code may have swallowed it."""
    if _was_raised:
        raise KeyboardInterrupt


def _end(number: int, frame: "FrameType | None") -> None:
    try:
        _before_end()
    finally:
        os._exit(EXIT_CODE)


def _raise(number: int, frame: "FrameType | None") -> None:
    global _was_raised
    _was_raised = True
    raise KeyboardInterrupt


def _report_unraisable(what: "sys.UnraisableHookArgs") -> None:
    """Python's own hook, but silent for ``KeyboardInterrupt``: ``check`` raises it later."""
    if not isinstance(what.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(what)
