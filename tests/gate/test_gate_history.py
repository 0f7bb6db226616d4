"""What the gate records, and where it says that a figure changed."""

import json
import re
import sqlite3
from pathlib import Path

import pytest
from gate_models import SIZE, Project, chain

from spillprof.cli import run
from spillprof.config_keys import Metric
from spillprof.history import read_history, steps

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def recorded(project: Project, capsys: Capture) -> tuple[Project, list[str]]:
    """Four commits of which the third adds a skip connection."""
    commits = []
    for number, skip in enumerate((False, False, True, True)):
        chain(project.folder / "models" / "a.onnx", skip=skip, producer=f"exporter {number}")
        commits.append(project.commit(f"{number}"))
        assert run(["gate", "--record", "../spill.sqlite", "-q"]) == int(skip)
    capsys.readouterr()
    return project, commits


def test_one_row_for_each_model_target_and_commit(recorded: tuple[Project, list[str]]) -> None:
    _, commits = recorded
    series = read_history(Path("../spill.sqlite"))
    assert [(s.model, s.target) for s in series] == [("models/a.onnx", "npu-96k"), ("models/b.onnx", "npu-96k")]
    assert [run.commit for run in series[0].runs] == commits
    assert [run.of(Metric.SPILL_BYTES) for run in series[0].runs] == [0, 0, 2 * SIZE, 2 * SIZE]
    assert [run.verdict for run in series[0].runs] == ["unchanged", "unchanged", "regressed", "regressed"]


def test_a_commit_recorded_again_is_replaced(recorded: tuple[Project, list[str]]) -> None:
    project, commits = recorded
    chain(project.folder / "models" / "a.onnx")
    assert run(["gate", "--record", "../spill.sqlite"]) == 0
    runs = read_history(Path("../spill.sqlite"))[0].runs
    assert [run.commit for run in runs] == commits
    assert runs[-1].of(Metric.SPILL_BYTES) == 0


def test_the_commit_that_changed_a_figure_is_found(recorded: tuple[Project, list[str]], capsys: Capture) -> None:
    _, commits = recorded
    assert run(["history", "../spill.sqlite"]) == 0
    out = capsys.readouterr().out
    assert "models/a.onnx @ npu-96k   4 commits" in out
    assert re.search(rf"spill bytes  ▁▁██  0 → 64 KiB\n    {commits[2][:5]}\S+  0 → 64 KiB, \+64 KiB, new spill", out)
    assert "the model changed" in out
    assert "spill bytes  ▁▁▁▁  0, as at first" in out
    found = steps(read_history(Path("../spill.sqlite"))[0].runs, Metric.LATENCY)
    assert [(s.commit, s.previous, s.reason) for s in found] == [(commits[2], commits[1], "model")]


def test_a_change_of_configuration_is_not_put_down_to_the_model(project: Project, capsys: Capture) -> None:
    chain(project.folder / "models" / "a.onnx", skip=True)
    for commit, sram in (("one", "96KiB"), ("two", "128KiB")):
        run(["gate", "--sram", sram, "--record", "h.sqlite", "--commit", commit])
    capsys.readouterr()
    assert run(["history", "h.sqlite", "--model", "a.onnx"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"two  64 KiB → 0, .*configuration or simulator revision changed", out)
    assert "b.onnx" not in out


def test_json_lists_rows_and_changes(recorded: tuple[Project, list[str]], capsys: Capture) -> None:
    _, commits = recorded
    assert run(["history", "../spill.sqlite", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["schema"] == "spillprof-history/1"
    assert data["series"][0]["changes"]["spill-bytes"] == [
        {"commit": commits[2], "before": 0, "after": 2 * SIZE, "reason": "model"}
    ]
    assert [row["commit"] for row in data["series"][1]["runs"]] == commits


def test_html_stands_alone_and_runs_nothing(recorded: tuple[Project, list[str]], capsys: Capture) -> None:
    _, commits = recorded
    assert run(["history", "../spill.sqlite", "-o", "h.html"]) == 0
    text = Path("h.html").read_text("utf-8")
    assert "default-src 'none'; script-src 'none'; style-src 'sha256-" in text
    assert "unsafe" not in text
    assert " style=" not in text
    assert "<script" not in text
    assert not re.search(r'(?:src|href)="(?!data:)', text)
    assert commits[2] in text
    assert text.count("<polyline") == 4
    assert run(["history", "../spill.sqlite", "-o", "h2.html"]) == 0
    assert Path("h2.html").read_text("utf-8") == text


def test_names_in_the_history_are_escaped_in_html(project: Project) -> None:
    run(["gate", "--record", "h.sqlite", "--commit", "</title><script>alert(1)</script>"])
    with sqlite3.connect("h.sqlite") as connection:
        connection.execute("UPDATE runs SET model = '<img onerror=x>' || model")
    connection.close()
    assert run(["history", "h.sqlite", "-o", "h.html"]) == 0
    text = Path("h.html").read_text("utf-8")
    assert "<script" not in text
    assert "<img" not in text


def test_a_file_whose_name_is_no_text_is_judged_and_recorded(project: Project) -> None:
    name = "models/\udcff.onnx"
    try:
        chain(project.folder / name)
    except OSError:
        pytest.skip("this file system takes names of text alone")
    outputs = [word for suffix in ("json", "md", "xml", "sarif") for word in ("-o", f"g.{suffix}")]
    assert run(["gate", name, "--update", "--record", "h.sqlite", "--commit", "x", *outputs]) == 0
    assert run(["gate", name, "--ratchet", *outputs]) == 0
    assert run(["history", "h.sqlite", "-o", "h.html"]) == 0
    assert read_history(Path("h.sqlite"))[0].model == "models/\\udcff.onnx"


def test_a_broken_model_is_not_recorded(project: Project, capsys: Capture) -> None:
    (project.folder / "models" / "b.onnx").write_bytes(b"broken")
    assert run(["gate", "--record", "h.sqlite", "--commit", "x"]) == 2
    assert "Recorded 1 of 2" in capsys.readouterr().err
    assert len(read_history(Path("h.sqlite"))) == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["history", "absent.sqlite"], "there is no such history"),
        (["history", "pyproject.toml"], "the history cannot be used"),
        (["history", "empty.sqlite"], "the history cannot be used"),
        (["history", "h.sqlite", "-o", "h.pdf"], "no suffix that names a format"),
        (["history", "h.sqlite", "--model", "zzz"], "the history holds no such model"),
        (["history", "h.sqlite", "--metrics", "zzz"], "'zzz' is none of"),
        (["gate", "--record", "pyproject.toml"], "the history cannot be used"),
        (["gate", "--record", "absent/h.sqlite"], "the history cannot be used"),
    ],
)
def test_what_is_no_history_gives_2(project: Project, arguments: list[str], complaint: str, capsys: Capture) -> None:
    Path("empty.sqlite").touch()
    run(["gate", "--record", "h.sqlite", "--commit", "x"])
    config = Path("pyproject.toml").read_bytes()
    capsys.readouterr()
    assert run(arguments) == 2
    assert complaint in capsys.readouterr().err
    assert Path("pyproject.toml").read_bytes() == config


def test_without_a_repository_the_commit_must_be_named(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "models").mkdir(parents=True)
    chain(elsewhere / "models" / "a.onnx")
    monkeypatch.chdir(elsewhere)
    assert run(["gate", "models/a.onnx", "--record", "h.sqlite"]) == 2
    assert "name one: --commit" in capsys.readouterr().err
