"""Runners on this computer: in this process, or in several."""

import gc
import multiprocessing
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any, TypeAlias, cast

from spillprof.ir.errors import UsageError
from spillprof.ir.interrupts import check
from spillprof.studies.sweep.work import Job, JobResult, Study
from spillprof.studies.sweep.worker import BLOCKED_AT_START, READY, serve

Channel: TypeAlias = "Connection[Any, Any]"
_FAILED_STARTS = 3
"""Number of processes that may die before they are ready."""


class InProcess:
    """Runs one job after the other in this process."""

    def __init__(self, study: Study) -> None:
        self._study = study

    def run(self, jobs: Sequence[Job[JobResult]]) -> Iterator[tuple[int, JobResult]]:
        """Results in the order of the jobs."""
        for job in jobs:
            result = job.do(self._study)
            check()
            yield job.number, result

    def close(self) -> None:
        """Does nothing."""


class Processes:
    """Worker processes, each sent the study once. They end with this process, however it ends."""

    def __init__(self, study: Study, count: int) -> None:
        self._study, self._count = study, count
        self._pickled: bytes | memoryview = b""
        self._processes: dict[Channel, BaseProcess] = {}
        self._failed_starts = 0

    def run(self, jobs: Sequence[Job[JobResult]]) -> Iterator[tuple[int, JobResult]]:
        """Results as they finish. A job whose process dies is retried alone; if its process dies again, it is lost."""
        died_with: list[Job[JobResult]] = []
        yield from self._done(jobs, self._count, died_with)
        for job in died_with:
            self.close()  # the job may have lacked the memory that the others hold
            again: list[Job[JobResult]] = []
            yield from self._done([job], 1, again)
            if again:
                yield job.number, job.lost()

    def close(self) -> None:
        """Kill the worker processes."""
        for channel in list(self._processes):
            self._end(channel)

    def _done(
        self, jobs: Sequence[Job[JobResult]], count: int, died_with: list[Job[JobResult]]
    ) -> Iterator[tuple[int, JobResult]]:
        waiting = deque(jobs)
        busy: dict[Channel, Job[JobResult] | None] = {}  # None: starting up
        idle = list(self._processes)
        try:
            while waiting or any(busy.values()):
                while waiting and idle:
                    channel = idle.pop()
                    with suppress(OSError):  # it died: receiving fails too
                        channel.send(waiting[0])
                    busy[channel] = waiting.popleft()
                missing = min(count, len(waiting) + len(busy)) - len(self._processes)
                busy.update(dict.fromkeys(self._started(missing)))
                for channel in cast(list[Channel], wait(list(busy))):
                    job = busy.pop(channel)
                    try:
                        answer = channel.recv()
                    except (EOFError, OSError):
                        self._end(channel)
                        if job is None:
                            self._count_failed_start()
                        else:
                            died_with.append(job)
                        continue
                    idle.append(channel)
                    check()
                    if job is not None:
                        yield job.number, _result(answer)
                    else:
                        assert answer == READY
        finally:
            for channel in busy:  # stopped early: a later message would be taken for a result of the next jobs
                self._end(channel)

    def _started(self, count: int) -> list[Channel]:
        """Channels of new processes, which are sent the study and will report that they are ready."""
        channels = []
        try:
            with _signals_held():
                for _ in range(count):
                    channels.append(self._start())
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            hint = "give fewer with --jobs; 1 is this process alone"
            raise UsageError(f"cannot start {self._count} processes", where=(reason,), hint=hint) from None
        if channels and not self._pickled:
            self._pickled = ForkingPickler.dumps(self._study)
        for channel in channels:
            with suppress(OSError):  # it died
                channel.send_bytes(self._pickled)
        return channels

    def _start(self) -> Channel:
        spawn = multiprocessing.get_context("spawn")
        ours, theirs = spawn.Pipe()
        try:
            process = spawn.Process(target=serve, args=(theirs, gc.isenabled()), daemon=True)
            process.start()
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._processes[ours] = process
        return ours

    def _end(self, channel: Channel) -> None:
        process = self._processes.pop(channel)
        channel.close()
        process.kill()
        process.join()

    def _count_failed_start(self) -> None:
        self._failed_starts += 1
        if self._failed_starts >= _FAILED_STARTS:
            raise UsageError("the processes of the sweep end while they start", hint="--jobs 1 does without them")


def _result(answer: tuple[bool, Any]) -> Any:
    was_done, result = answer
    if not was_done:
        raise result
    return result


@contextmanager
def _signals_held() -> Iterator[None]:
    """Defer termination signals until after the block: interrupting the start of a process prints a traceback.

    Processes started within have the signals blocked, also while they import modules, until they unblock them.
    """
    received: list[int] = []
    handlers: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in BLOCKED_AT_START:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                handlers[number] = signal.signal(number, lambda number, frame: received.append(number))
    try:
        with _blocked():
            yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in received[:1]:
            signal.raise_signal(number)


@contextmanager
def _blocked() -> Iterator[None]:
    """Block the signals for processes started within, if the system can. Other threads still receive them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # starting it within the block would unblock Ctrl-C
    before = signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED_AT_START)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
