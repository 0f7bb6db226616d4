"""Runner on a Dask cluster, through its standard client. Needs the extra ``dask``, here and on the workers.

A worker of another version would silently give other figures under the same key. So every worker must report its
spillprof version before it gets work, and again with each answer, because workers may join later.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from spillprof import __version__
from spillprof.ir.errors import SpillprofError, UsageError
from spillprof.ir.interrupts import check
from spillprof.ir.revision import SIMULATOR_REVISION
from spillprof.studies.sweep.work import Job, JobResult, Study

_CONNECT_S = 5
_WORKERS_S = 10
_REPLY_S = 30
_LOOK_EVERY_S = 5
_NO_WORKER_S = 60
"""How long a cluster may be without workers before the remaining jobs are given up."""
_SHIP_S = 600
_TRIES = 4
"""How often an unanswered job is sent."""
_MOST_NAMED = 5

_HERE = (__version__, SIMULATOR_REVISION)
_VERSION_EXPRESSION = """(
    __import__('spillprof').__version__,
    getattr(__import__('importlib').import_module('spillprof.ir.revision'), 'SIMULATOR_REVISION', None),
)"""
"""For ``eval``: a function of this package would be looked up in the worker's version of it."""

_Got = TypeVar("_Got")


class Cluster:
    """Sends the study to all workers once, then jobs; the others redo the jobs of a lost worker."""

    def __init__(self, study: Study, address: str) -> None:
        try:
            import dask
        except ImportError:
            raise _not_installed() from None
        silent = dict.fromkeys(("distributed", "distributed.client", "distributed.core", "tornado"), "critical")
        dask.config.set({"logging": silent})  # its log of a lost cluster is tracebacks; errors are raised anyway
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)
        try:
            from distributed import Client
        except ImportError:
            raise _not_installed() from None
        self._study = study
        try:
            if not address:
                raise ValueError("the address is empty")
            self._client: Any = _within(
                _CONNECT_S + 1, lambda: Client(address, timeout=_CONNECT_S, set_as_default=False)
            )
        except Exception as error:  # an arbitrary server may reply with bytes that Dask takes for a message
            reason = "what answers there is no scheduler" if isinstance(error, MemoryError) else str(error)
            raise UsageError(
                f"cannot reach a Dask scheduler at '{address}'",
                where=[reason or type(error).__name__],
                hint="give the address that 'dask scheduler' prints, like tcp://10.0.0.1:8786",
            ) from None
        self._shipped: Any = None
        self._served = False  # whether any job was answered
        self._is_lost = False

    def wait_for_workers(self, count: int, timeout_s: float = 60) -> None:
        """Wait until the cluster has ``count`` workers. ``TimeoutError`` if that takes too long."""
        _within(timeout_s + 1, lambda: self._client.wait_for_workers(count, timeout=timeout_s))

    def run(self, jobs: Sequence[Job[JobResult]]) -> Iterator[tuple[int, JobResult]]:
        """Results as they finish. The scheduler moves jobs of a lost worker; jobs that it drops are sent again."""
        left = {job.number: job for job in jobs}
        for _ in range(0 if self._is_lost else _TRIES):
            if not left:
                return
            try:
                for number, result in self._finished(list(left.values())):
                    del left[number]
                    yield number, result
            except OSError as error:  # no worker, or the scheduler is gone
                if not self._served:
                    what, hint = "no worker of the Dask cluster answers", "start some with 'dask worker'"
                    raise UsageError(what, where=[str(error)], hint=hint) from None
                self._is_lost = True
                break
            self._shipped = None  # the only copy may have been on the worker that was lost
        for job in left.values():
            yield job.number, job.lost()

    def close(self) -> None:
        """Leave the cluster; unfinished jobs are cancelled."""
        try:
            _within(_CONNECT_S, lambda: self._client.close(timeout=_CONNECT_S))
        except Exception:  # the cluster is gone
            return

    def _finished(self, jobs: Sequence[Job[JobResult]]) -> Iterator[tuple[int, JobResult]]:
        """Send the jobs once and yield those that are answered."""
        if self._shipped is None:
            self.wait_for_workers(1, _WORKERS_S)
            self._check_all_versions()
            self._shipped = self._client.scatter(self._study, broadcast=True, hash=False, timeout=_SHIP_S)
        sent = {self._client.submit(_answer, self._shipped, job, pure=False): job.number for job in jobs}
        finished: SimpleQueue[Any] = SimpleQueue()
        for future in sent:
            future.add_done_callback(finished.put)
        seen_s = time.monotonic()  # when a worker was last connected
        while sent:
            check()
            try:
                future = finished.get(timeout=_LOOK_EVERY_S)
            except Empty:
                seen_s = self._look_for_workers(seen_s)
                continue
            seen_s = time.monotonic()
            number = sent.pop(future)
            if future.status == "finished":
                try:
                    worker, version, revision, result = future.result()
                except Exception:  # the worker with the result was lost before it was fetched
                    continue
                _check_versions({worker: (version, revision)})
                self._served = True
                yield number, result
            elif future.status == "error":
                self._judge(future.exception())

    def _look_for_workers(self, seen_s: float) -> float:
        """When a worker was last connected. ``TimeoutError`` if that is too long ago."""
        if _within(_REPLY_S, self._client.nthreads):
            return time.monotonic()
        if time.monotonic() - seen_s > _NO_WORKER_S:
            raise TimeoutError(f"no worker for {_NO_WORKER_S:g} s")
        return seen_s

    def _judge(self, error: BaseException | None) -> None:
        """``UsageError`` for an error that a retry would not fix: the workers cannot run this version."""
        self._check_all_versions()
        if isinstance(error, ImportError | AttributeError):
            raise UsageError(
                "the Dask workers cannot run this sweep",
                where=[str(error)],
                hint=f"install spillprof {__version__} on every worker",
            ) from None

    def _check_all_versions(self) -> None:
        """Check the version on all present workers. ``UsageError`` if one differs from this version."""
        _check_versions(_within(_REPLY_S, lambda: self._client.run(eval, _VERSION_EXPRESSION, on_error="return")))


def _answer(study: Study, job: Job[Any]) -> tuple[str, str, int, Any]:
    """Runs on a worker: its address, its version and simulator revision, and the result."""
    from distributed import get_worker

    return get_worker().address, __version__, SIMULATOR_REVISION, job.do(study)


def _check_versions(versions: Mapping[str, Any]) -> None:
    """``UsageError`` that names the workers with another spillprof, or none. ``versions``: by worker address."""
    others = [f"{worker}: {_described(which)}" for worker, which in sorted(versions.items()) if which != _HERE]
    if others:
        more = [f"and {len(others) - _MOST_NAMED:,} more"] if len(others) > _MOST_NAMED else []
        raise UsageError(
            "Dask workers have another spillprof than this one, which may give other figures",
            where=[*others[:_MOST_NAMED], *more, f"here: {_described(_HERE)}"],
            hint=f"install spillprof {__version__} on every worker",
        )


def _described(which: Any) -> str:
    if isinstance(which, BaseException):
        return f"cannot import spillprof ({which})"
    version, revision = which
    return f"spillprof {version}, simulator revision {revision}"


def _not_installed() -> SpillprofError:
    return UsageError("--dask needs the Dask client, which is not installed", hint="pip install 'spillprof[dask]'")


def _within(limit_s: float, act: Callable[[], _Got]) -> _Got:
    """What ``act`` returns or raises; ``TimeoutError`` after the limit.

    Dask does not time out on a port that accepts connections and never replies.
    """
    done: list[_Got] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            done.append(act())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(limit_s)
    if failed:
        raise failed[0]
    if not done:
        raise TimeoutError(f"no answer within {limit_s:g} s")
    return done[0]
