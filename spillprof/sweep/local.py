"""Runners on this computer: in this process, or in several."""

import multiprocessing
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

from spillprof.sweep.work import LOST, Finished, Outcome, Study, Task, run_task


class InProcess:
    """One task after the other, here."""

    def __init__(self, study: Study) -> None:
        self._study = study

    def run(self, tasks: Sequence[Task]) -> Iterator[Finished]:
        """In the order given."""
        for task in tasks:
            yield task, run_task(self._study, task)

    def close(self) -> None:
        """Nothing runs."""


class Processes:
    """``jobs`` processes, each of which gets the study once."""

    def __init__(self, study: Study, jobs: int) -> None:
        self._study, self._jobs = study, jobs
        self._pool: ProcessPoolExecutor | None = None
        self._before = set(multiprocessing.active_children())

    def run(self, tasks: Sequence[Task]) -> Iterator[Finished]:
        """As they finish. When a process dies, what is left runs one by one, and a task that kills one is a failure."""
        left = {task.number: task for task in tasks}
        try:
            for task, outcomes in self._finished(tasks):
                del left[task.number]
                yield task, outcomes
        except BrokenProcessPool:
            self._pool = None
        for task in list(left.values()):
            try:
                yield from self._finished([task])
            except BrokenProcessPool:
                self._pool = None
                yield task, (Outcome(status=LOST),) * len(task.pairs)

    def close(self) -> None:
        """End the processes that were started here."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - self._before:
                process.terminate()
            self._pool = None

    def _finished(self, tasks: Sequence[Task]) -> Iterator[Finished]:
        if self._pool is None:
            spawn = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self._jobs, mp_context=spawn, initializer=_adopt, initargs=(self._study,))
        submitted: dict[Future[tuple[Outcome, ...]], Task] = {}
        with _interrupts_ignored():  # processes that start meanwhile inherit it: only this one answers Ctrl-C
            for task in tasks:
                submitted[self._pool.submit(_run_adopted, task)] = task
        for future in as_completed(submitted):
            yield submitted.pop(future), future.result()


_adopted: list[Study] = []


def _adopt(study: Study) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _adopted[:] = [study]


def _run_adopted(task: Task) -> tuple[Outcome, ...]:
    return run_task(_adopted[0], task)


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
