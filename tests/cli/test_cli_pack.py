"""``spillprof pack`` from the command line."""

import json
from pathlib import Path

import pytest

from spillprof.cli import run
from spillprof.frontends.minimalloc import read_minimalloc
from spillprof.verify.layout import layout_faults

EXAMPLE = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text(EXAMPLE)
    return tmp_path


def offsets(path: Path) -> list[int]:
    return [int(line.rpartition(",")[2]) for line in path.read_text().splitlines()[1:]]


def test_offsets_peak_and_bound(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pack", "x.csv", "--sram", "12", "-o", "y.csv"]) == 0
    out, err = capsys.readouterr()
    assert "peak         12 B (as low as can be)" in out
    assert "it fits" in out
    assert "lower bound  12 B" in out
    assert err.startswith("Wrote y.csv")
    assert layout_faults(read_minimalloc(folder / "x.csv"), offsets(folder / "y.csv")) == ()


def test_the_file_is_written_even_if_the_peak_passes_the_memory(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["pack", "x.csv", "--sram", "11", "-o", "y.csv", "--align", "2"]) == 2
    out, err = capsys.readouterr()
    assert "it cannot fit: more is live at once" in out
    assert "error: the buffers cannot fit into 11 B" in err
    assert "hint: they need at least 12 B" in err
    assert layout_faults(read_minimalloc(folder / "x.csv", alignment_bytes=2), offsets(folder / "y.csv")) == ()


def test_csv_on_stdout_is_nothing_but_csv(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pack", "x.csv", "-o", "-"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == "id,lower,upper,size,offset"
    assert len(out.splitlines()) == 6
    assert err == ""


def test_json_tells_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pack", "x.csv", "--sram", "1KiB", "--json", "--align", "64"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "spillprof-layout/1"
    assert (found["peak_bytes"], found["lower_bound_bytes"], found["fits"]) == (192, 192, True)
    assert [b["id"] for b in found["buffers"]] == ["b1", "b2", "b3", "b4", "b5"]
    assert all(b["offset"] % 64 == 0 for b in found["buffers"])


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["pack", "absent.csv"], "error: cannot read the table of buffers"),
        (["pack", "x.csv", "-o", "-", "--json"], "error: -o - and --json both want stdout"),
        (["pack", "x.csv", "-o", "no/where.csv"], "error: cannot write 'no/where.csv'"),
        (["pack", "x.csv", "--align", "0"], "error: '0' is not a positive size"),
        (["pack", "x.csv", "--seconds", "-1"], "error: '-1' is no number of seconds"),
        (["pack", "x.csv", "--seconds", "nan"], "error: 'nan' is no number of seconds"),
    ],
)
def test_usage_errors(arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    assert capsys.readouterr().err.startswith(complaint)


def test_names_from_the_file_cannot_steer_the_terminal(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "evil.csv").write_text("id,lower,upper,size\na\x1b[31m,0,1,-1\n")
    assert run(["pack", "evil.csv"]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_a_hundred_thousand_rows_go_through(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"t{i},{i},{i + 2 + i * 7919 % 40},{64 * (1 + i * 31 % 50)}\n" for i in range(100_000))
    (folder / "big.csv").write_text("id,lower,upper,size\n" + rows)
    assert run(["pack", "big.csv", "-o", "big.out.csv"]) == 0
    assert "100,000 buffers" in capsys.readouterr().out
    assert len((folder / "big.out.csv").read_text().splitlines()) == 100_001


def test_the_plan_of_a_model_is_a_problem_that_fits(folder: Path) -> None:
    unet = str(Path(__file__).parents[2] / "sample_models" / "unet.onnx")
    options = ["--sram", "12MB", "--strategy", "interval", "-q"]
    assert run(["analyze", unet, *options, "-o", "unet.minimalloc.csv", "-o", "unet.json"]) == 0
    problem = read_minimalloc(folder / "unet.minimalloc.csv", alignment_bytes=64)
    [result] = json.loads((folder / "unet.json").read_text())["results"]
    assert len(problem.buffers) > len(result["buffers"]) // 2
    assert run(["pack", "unet.minimalloc.csv", "--sram", "12MB", "--align", "64", "-q"]) == 0
