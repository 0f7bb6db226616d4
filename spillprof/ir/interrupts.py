"""Ctrl-C ends the command line at once and in silence; where work is worth keeping it raises ``KeyboardInterrupt``.

An exception may come at any bytecode: while a library is imported, which makes another error of it, or in a place
that can only print it. So it is raised where somebody waits for it, and nowhere else. This module is imported before
all others, and imports next to nothing.
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
    """From now on Ctrl-C ends this process with 130. What was started to ignore it goes on ignoring it."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _end)
        sys.unraisablehook = _report_unraisable
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # the interpreter ends: all is done


def before_end(act: "Callable[[], None]") -> None:
    """What to do before the process ends so: it replaces what was to do."""
    global _before_end
    _before_end = act


class raised:
    """Within the block Ctrl-C raises ``KeyboardInterrupt``; after it the process ends at once again."""

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
    """``KeyboardInterrupt`` once more if there was one in this block: whoever met it may have made nothing of it."""
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
    """As Python does, but for an interruption: ``check`` finds it later."""
    if not isinstance(what.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(what)
