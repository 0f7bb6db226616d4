"""A process of a sweep: it does the jobs that come through its channel, and ends with the process that started it.

What a job needs is imported when the study comes, after the process has begun to watch its parent.
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

HELD = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that a process is started without; it lets them in when it is there."""
READY = "ready"
"""The first message of a process: it has the study."""


def serve(channel: "Connection[Any, Any]", seeks_cycles: bool) -> None:
    """Do jobs until the channel is closed; each is answered with (whether it was done, its result or the error).

    ``seeks_cycles`` is as in the process that started this one: every other second goes there else.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the process that started this one answers Ctrl-C
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD)
    if not seeks_cycles:
        gc.disable()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        study: Study = channel.recv()
        channel.send(READY)
        while True:
            channel.send(_answer(channel.recv(), study))
    except (EOFError, OSError):  # nobody is at the other end any more
        return


def _answer(job: "Job[Any]", study: "Study") -> tuple[bool, Any]:
    try:
        return True, job.do(study)
    except Exception as error:
        return False, error


def _end_with_parent() -> None:
    """Wait for the end of the process that started this one, however it ends, and follow it at once."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
