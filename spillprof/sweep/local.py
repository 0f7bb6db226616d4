"""Runners on this computer: in this process, or in several."""

import gc
import multiprocessing
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

from spillprof.sweep.work import Job, Result, Study


class InProcess:
    """One job after the other, here."""

    def __init__(self, study: Study) -> None:
        self._study = study

    def run(self, jobs: Sequence[Job[Result]]) -> Iterator[tuple[int, Result]]:
        """In the order given."""
        for job in jobs:
            yield job.number, job.do(self._study)

    def close(self) -> None:
        """Nothing runs."""


class Processes:
    """So many processes, each of which gets the study once."""

    def __init__(self, study: Study, count: int) -> None:
        self._study, self._count = study, count
        self._pool: ProcessPoolExecutor | None = None
        self._before = set(multiprocessing.active_children())

    def run(self, jobs: Sequence[Job[Result]]) -> Iterator[tuple[int, Result]]:
        """As they finish. When a process dies, what is left runs one by one, and a job that kills one is a failure."""
        left = {job.number: job for job in jobs}
        try:
            for number, result in self._finished(jobs):
                del left[number]
                yield number, result
        except BrokenProcessPool:
            self._pool = None
        for job in list(left.values()):
            try:
                yield from self._finished([job])
            except BrokenProcessPool:
                self._pool = None
                yield job.number, job.lost()

    def close(self) -> None:
        """End the processes that were started here."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - self._before:
                process.terminate()
            self._pool = None

    def _finished(self, jobs: Sequence[Job[Result]]) -> Iterator[tuple[int, Result]]:
        if self._pool is None:
            spawn = multiprocessing.get_context("spawn")
            given = self._study, gc.isenabled()
            self._pool = ProcessPoolExecutor(self._count, mp_context=spawn, initializer=_adopt, initargs=given)
        submitted: dict[Future[Result], int] = {}
        with _interrupts_ignored():  # processes that start meanwhile inherit it: only this one answers Ctrl-C
            for job in jobs:
                submitted[self._pool.submit(_do, job)] = job.number
        for future in as_completed(submitted):
            yield submitted.pop(future), future.result()


_adopted: list[Study] = []


def _adopt(study: Study, seeks_cycles: bool) -> None:
    """Of the process that started this one, also whether it seeks cycles: every other second goes there else."""
    if not seeks_cycles:
        gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _adopted[:] = [study]


def _do(job: Job[Any]) -> Any:
    return job.do(_adopted[0])


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
