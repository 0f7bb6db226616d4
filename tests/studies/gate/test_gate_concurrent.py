"""Two updates of one baseline at once: no entry is lost, and none is overwritten unseen."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from gate_models import Project, chain

from spillprof.cli import run
from spillprof.ir.errors import UsageError
from spillprof.studies.gate import locked, merged, read_baseline

Capture = pytest.CaptureFixture[str]
KEYS = ("models/a.onnx@npu-96k", "models/b.onnx@npu-96k")

HOLD = """
import sys
from pathlib import Path
from spillprof.studies.gate import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_updates_at_once_keep_both_entries(project: Project) -> None:
    for _ in range(4):
        project.baseline.unlink()
        command = [sys.executable, "-m", "spillprof", "gate", "--update", "-q"]
        pair = [subprocess.Popen([*command, f"models/{name}.onnx"], stdout=subprocess.PIPE) for name in "ab"]
        assert [process.communicate() and process.returncode for process in pair] == [0, 0]
        assert sorted(read_baseline(project.baseline)) == list(KEYS)
    assert not list(project.folder.glob(".*.lock"))
    assert not list(project.folder.glob(".*.tmp"))


def test_what_others_changed_meanwhile_is_kept(project: Project) -> None:
    before = read_baseline(project.baseline)
    chain(project.folder / "models" / "a.onnx", skip=True)
    assert run(["gate", "--update", "-q"]) == 0
    grown = read_baseline(project.baseline)
    a, b = KEYS
    assert grown[a] != before[a]
    assert grown[b] == before[b]

    def outcome(mine: dict[str, object], now: dict[str, object]) -> dict[str, object]:
        return merged(before, mine, now, shown="x.json")  # type: ignore[arg-type, return-value]

    assert outcome({**before, a: grown[a]}, {a: before[a]}) == {a: grown[a]}  # they removed b, I changed a
    assert outcome({a: before[a]}, {**before, "c": grown[a]}) == {a: before[a], "c": grown[a]}  # I removed b
    assert outcome({**before, a: grown[a]}, {**before, a: grown[a]}) == grown  # both to the same
    assert outcome(dict(before), dict(grown)) == grown  # I changed nothing
    with pytest.raises(UsageError, match=r"'models/a.onnx@npu-96k' was changed in the baseline"):
        outcome({**before, a: grown[a]}, {b: before[b]})  # they removed what I changed


def test_somebody_who_holds_the_lock_is_named(project: Project, capsys: Capture) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(project.baseline)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with (
        pytest.raises(UsageError, match="is being written by another process") as caught,
        locked(project.baseline, wait_s=0),
    ):
        pytest.fail("two are in")
    assert f"process {holder.pid} on " in caught.value.where[0]
    holder.communicate("\n")
    with locked(project.baseline, wait_s=0):
        pass


def test_the_lock_of_a_process_that_died_keeps_nobody_out(project: Project) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(project.baseline)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    holder.kill()
    holder.communicate()
    assert run(["gate", "--update", "-q"]) == 0
    assert sorted(json.loads(project.baseline.read_text("utf-8"))["entries"]) == list(KEYS)


def test_a_name_of_255_bytes_can_be_locked(tmp_path: Path) -> None:
    path = tmp_path / ("b" * 255)
    path.touch()
    with locked(path), pytest.raises(UsageError), locked(path, wait_s=0):
        pytest.fail("two are in")
    assert list(tmp_path.iterdir()) == [path]
