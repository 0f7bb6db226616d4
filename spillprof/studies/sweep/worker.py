"""Worker process of a sweep: does the jobs sent through its channel, and ends with its parent process.

Modules that jobs need are imported when the study arrives, after the process has begun to watch its parent.
"""

import gc
import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spillprof.studies.sweep.work import Job, Study

BLOCKED_AT_START = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that are blocked while a process starts; the process unblocks them."""
READY = "ready"
"""The first message of a process, when it has received the study."""


def serve(channel: "Connection[Any, Any]", collects_cycles: bool) -> None:
    """Do jobs until the channel is closed; reply to each with (whether it was done, its result or the error).

    ``collects_cycles``: whether the cyclic garbage collector runs, as in the parent; it may take half of the time.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the parent handles Ctrl-C
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, BLOCKED_AT_START)
    if not collects_cycles:
        gc.disable()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        study: Study = channel.recv()
        channel.send(READY)
        while True:
            channel.send(_answer(channel.recv(), study))
    except (EOFError, OSError):  # the other end is closed
        return


def _answer(job: "Job[Any]", study: "Study") -> tuple[bool, Any]:
    try:
        return True, job.do(study)
    except Exception as error:
        return False, error


def _end_with_parent() -> None:
    """Wait for the end of the parent process, however it ends, and exit at once."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
