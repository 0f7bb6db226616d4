"""Runner on a Dask cluster, through its standard client. Needs the extra ``dask``, here and on the workers."""

from collections.abc import Iterator, Sequence
from typing import Any

from spillprof.errors import UsageError
from spillprof.sweep.work import Job, Result, Study

_CONNECT_S = 10
_SHIP_S = 600
_TRIES = 4
"""How often a job is sent again for which no worker gave an answer."""


class Cluster:
    """Sends the study to all workers once, then jobs; what a lost worker held is done again by the others."""

    def __init__(self, study: Study, address: str) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise UsageError(
                "--dask needs the Dask client, which is not installed", hint="pip install 'spillprof[dask]'"
            ) from None
        self._study = study
        try:
            self._client: Any = Client(address, timeout=_CONNECT_S, set_as_default=False)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"cannot reach a Dask scheduler at '{address}'",
                where=[str(error) or type(error).__name__],
                hint="give the address that 'dask scheduler' prints, like tcp://10.0.0.1:8786",
            ) from None
        self._shipped: Any = None
        self._served = False  # whether any job was ever answered

    def wait_for_workers(self, count: int, timeout_s: float = 60) -> None:
        """Until so many workers are there. ``TimeoutError`` if that takes too long."""
        self._client.wait_for_workers(count, timeout=timeout_s)

    def run(self, jobs: Sequence[Job[Result]]) -> Iterator[tuple[int, Result]]:
        """As they finish. The scheduler moves jobs of a lost worker; what it gives up on is sent again from here."""
        left = {job.number: job for job in jobs}
        for _ in range(_TRIES):
            try:
                for number, result in self._finished(list(left.values())):
                    del left[number]
                    yield number, result
            except OSError as error:  # nobody is there: no worker, or no scheduler any more
                if not self._served:
                    what, hint = "no worker of the Dask cluster answers", "start some with 'dask worker'"
                    raise UsageError(what, where=[str(error)], hint=hint) from None
                break
            if not left:
                return
            self._shipped = None  # the only copy may have been on the worker that was lost
        for job in left.values():
            yield job.number, job.lost()

    def close(self) -> None:
        """Leave the cluster; what is unfinished is cancelled."""
        self._client.close()

    def _finished(self, jobs: Sequence[Job[Result]]) -> Iterator[tuple[int, Result]]:
        """The jobs that were answered."""
        from distributed import as_completed

        if self._shipped is None:
            self.wait_for_workers(1, _CONNECT_S)
            self._shipped = self._client.scatter(self._study, broadcast=True, hash=False, timeout=_SHIP_S)
        sent = {self._client.submit(_do, self._shipped, job, pure=False): job.number for job in jobs}
        for future in as_completed(list(sent), loop=self._client.loop):
            number = sent.pop(future)
            if future.status == "finished":
                try:
                    result = future.result()
                except Exception:  # the worker with the result was lost before it was fetched
                    continue
                self._served = True
                yield number, result
            elif future.status == "error":
                self._check(future.exception())

    def _check(self, error: BaseException | None) -> None:
        """``UsageError`` for an error that no second try would change: the workers cannot run this version."""
        if isinstance(error, ImportError | AttributeError):
            raise UsageError(
                "the Dask workers cannot run this sweep",
                where=[str(error)],
                hint="install the same version of spillprof on every worker",
            ) from None


def _do(study: Study, job: Job[Any]) -> Any:
    return job.do(study)
