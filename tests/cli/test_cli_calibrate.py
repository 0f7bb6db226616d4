"""``spillprof calibrate`` from the command line, on copies that take almost no time."""

import json
import sys
from pathlib import Path

import pytest

from spillprof.cli import run
from spillprof.frontends.calibration.host_memory import HostCopier
from spillprof.frontends.calibration.measure import Direction
from spillprof.ir.target import load_target
from spillprof.timing.dma import read_link

QUICK = ["calibrate", "--sizes", "4KB..64KB", "--cache", "64KB", "--seconds", "0"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_summary_shows_sizes_curves_and_errors(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(QUICK) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert len([line for line in out.splitlines() if " KiB *" in line]) == 4
    assert len([line for line in out.splitlines() if " KiB  " in line]) >= 5
    for part in ("caches are swept before each copy (last level 64 KiB)", "95 % interval", "bandwidth", "both at once",
                 "median relative error on held-out sizes", "the same without sweeping the caches"):  # fmt: skip
        assert part in out
    assert list(folder.iterdir()) == []


def test_target_that_is_written_loads_and_carries_the_curve_of_the_json(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert run([*QUICK, "--json", "-o", "here.toml", "--inherit", "ethos-u85"]) == 0
    out, err = capsys.readouterr()
    assert err.startswith("Wrote here.toml")
    found, target = json.loads(out), load_target("here.toml")
    assert found["schema"] == "spillprof-calibration/1"
    assert found["target"] == "here.toml"
    assert found["swept_cache_bytes"] == 65536
    assert [list(point) for point in target.dram_read_curve] == found["fit"]["read"]["curve"]
    assert [list(point) for point in target.dram_write_curve] == found["fit"]["write"]["curve"]
    assert "1970-01-02" in target.sources["dram_read_curve"]
    for each in found, found["unswept"]:
        assert each["heldout_median_relative_error"] >= 0
        assert {p["direction"] for p in each["points"]} == set(Direction)
        assert all(p["min_s"] <= p["median_s"] and p["repetitions"] >= 3 for p in each["points"])
    assert found["unswept"]["heldout_median_relative_error_swept"] >= 0
    for point in found["points"]:
        if point["direction"] == "read":
            assert read_link(target).alone_s(point["size_bytes"]) == pytest.approx(point["fitted_s"], rel=1e-12)
            assert point["relative_error"] == pytest.approx(point["fitted_s"] / point["min_s"] - 1)


def test_no_sweep_measures_once_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["calibrate", "--sizes", "4KB..64KB", "--seconds", "0", "--no-sweep", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["swept_cache_bytes"], found["unswept"], found["target"]) == (None, None, None)


def test_target_on_stdout_is_nothing_but_toml(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*QUICK, "-o", "-"]) == 0
    out, err = capsys.readouterr()
    (folder / "copy.toml").write_text(out)
    assert load_target("copy.toml").dram_read_curve[0][0] == 0
    assert err == ""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["-o", "target.json"], "error: 'target.json' is no name for a target"),
        (["-o", ""], "error: '' is no name for a target"),
        (["-o", "no/where.toml"], "error: cannot write 'no/where.toml'"),
        (["-o", "-", "--json"], "error: -o - and --json both want stdout"),
        (["--sizes", "4KB"], "error: '4KB' is no span of sizes"),
        (["--sizes", "4KB..8KB"], "error: from 4 KiB to 8 KiB there are too few sizes"),
        (["--sizes", "64KB..4KB"], "error: from 64 KiB to 4 KiB there are too few sizes"),
        (["--sizes", "1..64KB"], "error: copies of 1 B are too small to be timed"),
        (["--sizes", "4KB.."], "error: '' is not a size"),
        (["--sizes", "1MB..512TB"], "error: 512 TiB is larger than what can be copied"),
        (["--sizes", "1MB..1TB"], "error: buffers of "),
        (["--seconds", "-1"], "error: '-1' is no number of seconds"),
        (["--seconds", "inf"], "error: 'inf' is no number of seconds"),
        (["--repetitions", "2"], "error: invalid value for '--repetitions'"),
        (["--cache", "0"], "error: '0' is not a positive size"),
        (["--no-sweep"], "error: --no-sweep sweeps no --cache"),
        (["--inherit", "generic"], "error: a target cannot inherit from 'generic'"),
        (["--inherit", "absent.toml"], "error: cannot read the target file"),
        (["--device", "gpu"], "error: there is no device 'gpu'"),
        (["--device", "cuda:x"], "error: there is no device 'cuda:x'"),
    ],
)
def test_usage_errors(arguments: list[str], complaint: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*QUICK, *arguments]) == 2
    out, err = capsys.readouterr()
    assert err.startswith(complaint)
    assert out == ""
    assert list(folder.iterdir()) == []


def test_cuda_without_its_library_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)  # makes its import fail
    assert run([*QUICK, "--device", "cuda"]) == 2
    assert "hint: pip install 'spillprof[cuda]'" in capsys.readouterr().err


def test_moment_that_is_none_is_told_before_the_measuring(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    assert run([*QUICK, "-o", "-"]) == 2
    assert capsys.readouterr().err.startswith("error: SOURCE_DATE_EPOCH: 'yesterday' is no moment")


def test_interruption_writes_nothing_and_gives_the_buffers_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "here.toml").write_text("inherit = 'generic-npu'\n")
    taken, closed = [], []
    seconds, close = HostCopier.seconds, HostCopier.close

    def interrupted(copier: HostCopier, direction: Direction, size_bytes: int) -> float:
        taken.append(size_bytes)
        if len(taken) == 40:
            raise KeyboardInterrupt
        return seconds(copier, direction, size_bytes)

    monkeypatch.setattr(HostCopier, "seconds", interrupted)
    monkeypatch.setattr(HostCopier, "close", lambda copier: (closed.append(True), close(copier)))
    assert run([*QUICK, "-o", "here.toml"]) == 130
    assert capsys.readouterr().out == ""
    assert closed == [True]
    assert [(p.name, p.read_text()) for p in folder.iterdir()] == [("here.toml", "inherit = 'generic-npu'\n")]
