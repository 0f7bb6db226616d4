"""Processes of a sweep end with their parent, and a dead one costs at most its own job."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from spillprof.studies.sweep.local import Processes
from spillprof.studies.sweep.work import Study

STUDY = Study(runs=())

SWEEPING = """
import os, sys, time
from dataclasses import dataclass
from spillprof.studies.sweep.local import Processes
from spillprof.studies.sweep.work import Study

@dataclass(frozen=True)
class Endless:
    number: int
    def do(self, study):
        os.write(1, b"working\\n")
        time.sleep(600)

if __name__ == "__main__":
    list(Processes(Study(runs=()), 2).run([Endless(0), Endless(1)]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there it has other signals")
@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM"])
def test_processes_end_with_the_one_that_started_them(how: str, tmp_path: Path) -> None:
    script = tmp_path / "sweeping.py"
    script.write_text(SWEEPING, "utf-8")
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == [b"working\n"] * 2
    process.send_signal(getattr(signal, how))
    out, _ = process.communicate(timeout=30)  # the pipe ends when the last process that has it does
    assert out == b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubled:
    """Twice its number; a fatal one ends its process."""

    number: int
    fatal: bool = False

    def do(self, study: Study) -> int:
        assert study == STUDY
        if self.fatal:
            os._exit(9)
        return 2 * self.number

    def lost(self) -> int:
        return -1


@dataclass(frozen=True, slots=True, kw_only=True)
class FatalOnce:
    """Kills its process the first time, as the out-of-memory killer does."""

    number: int
    marker: str

    def do(self, study: Study) -> int:
        if not Path(self.marker).exists():
            Path(self.marker).touch()
            os._exit(9)
        return 7

    def lost(self) -> int:
        return -1


@pytest.mark.slow
def test_a_job_that_ends_its_process_is_lost_and_no_other(tmp_path: Path) -> None:
    runner = Processes(STUDY, 2)
    jobs = [Doubled(number=i, fatal=i == 3) for i in range(8)]
    once = FatalOnce(number=8, marker=str(tmp_path / "marker"))
    try:
        assert dict(runner.run([*jobs, once])) == {**{i: 2 * i for i in range(8)}, 3: -1, 8: 7}
        assert dict(runner.run([Doubled(number=5)])) == {5: 10}
    finally:
        runner.close()


@pytest.mark.slow
def test_stopped_jobs_leave_no_results_to_the_next_ones() -> None:
    runner = Processes(STUDY, 2)
    try:
        for _, _ in runner.run([Doubled(number=i) for i in range(40)]):
            break
        assert dict(runner.run([Doubled(number=i) for i in range(3)])) == {0: 0, 1: 2, 2: 4}
    finally:
        runner.close()


class Broken:
    """A study that cannot be unpickled."""

    token = "t"
    graphs = ()

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return os._exit, (9,)


@pytest.mark.slow
def test_processes_that_end_while_they_start_are_an_error() -> None:
    runner = Processes(Broken(), 2)  # type: ignore[arg-type]
    try:
        with pytest.raises(Exception, match="the processes of the sweep end while they start"):
            list(runner.run([Doubled(number=0)]))
    finally:
        runner.close()
