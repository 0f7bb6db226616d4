"""Records of the gate, and the commits at which a figure changed."""

import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from gate_models import SIZE, Project, chain

from spillprof.cli import run
from spillprof.ir.metric import Metric
from spillprof.studies.history import read_history, steps

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


def test_a_default_that_an_earlier_version_recorded_is_no_change(recorded: tuple[Project, list[str]]) -> None:
    """Rows of earlier versions name every setting; the third commit is the one whose spill bytes rise."""
    _, commits = recorded
    with closing(sqlite3.connect("../spill.sqlite")) as connection, connection:
        (text,) = connection.execute("SELECT config FROM runs WHERE commit_id = ?", (commits[1],)).fetchone()

        def rewrite(**more: object) -> None:
            config = json.dumps({**json.loads(text), **more})
            connection.execute("UPDATE runs SET config = ? WHERE commit_id = ?", (config, commits[1]))
            connection.commit()

        for more, reason in (({"inplace": True, "batch": None}, "model"), ({"inplace": False}, "configuration")):
            rewrite(**more)
            found = steps(read_history(Path("../spill.sqlite"))[0].runs, Metric.SPILL_BYTES)
            assert [(step.commit, step.reason) for step in found] == [(commits[2], reason)]


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
        (["history", "empty.sqlite"], "the file is no history of spillprof"),
        (["history", "h.sqlite", "-o", "h.pdf"], "no suffix that names a format"),
        (["history", "h.sqlite", "--model", "zzz"], "the history holds no such model"),
        (["history", "h.sqlite", "--metrics", "zzz"], "'zzz' is none of"),
        (["gate", "--record", "pyproject.toml"], "would take the place of 'pyproject.toml', which is read"),
        (["gate", "--record", "absent/h.sqlite"], "there is no folder 'absent'"),
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


def _changed(project: Project, *statements: str) -> str:
    """The path of a recorded history after SQL of somebody else."""
    assert run(["gate", "--record", "h.db", "--commit", "a", "-q"]) == 0
    with closing(sqlite3.connect("h.db")) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    return "h.db"


ENDLESS = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
    "SELECT i AS number, 'c' AS commit_id, 'm' AS model, "
    "'t' AS target, 'ok' AS verdict, '{}' AS config, 's' AS model_sha256, 1 AS spill_bytes, 1 AS latency_ns, "
    "1 AS peak_live_bytes, 1 AS energy_pj FROM n"
)


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (("DROP TABLE runs", f"CREATE VIEW runs AS {ENDLESS}"), "the history has a view 'runs'"),
        (("CREATE TRIGGER boom AFTER INSERT ON runs BEGIN DELETE FROM runs; END",), "the history has a trigger 'boom'"),
        (("ALTER TABLE runs ADD COLUMN twice AS (spill_bytes * 2)",), "the file is no history of spillprof"),
        (("DROP TABLE runs", "CREATE TABLE other (a)"), "the file is no history of spillprof"),
        (("PRAGMA user_version = 7",), "written by another version"),
    ],
)
def test_a_table_that_spillprof_did_not_make_is_refused(
    project: Project, statements: tuple[str, ...], said: str, capsys: Capture
) -> None:
    path = _changed(project, *statements)
    before = Path(path).read_bytes()
    if "another version" not in said:
        assert run(["history", path]) == 2
        assert said in capsys.readouterr().err
    assert run(["gate", "--record", path, "--commit", "b", "-q"]) == 2
    assert said in capsys.readouterr().err
    assert Path(path).read_bytes() == before


@pytest.mark.parametrize("value", ["-1", "'x'", "1.5", "x'ff'"])
def test_a_figure_that_is_never_recorded_is_refused(project: Project, value: str, capsys: Capture) -> None:
    path = _changed(project, f"UPDATE runs SET latency_ns = {value}")
    assert run(["history", path]) == 2
    assert "a row has a value that is never recorded" in capsys.readouterr().err


def test_a_locked_history_says_that_another_process_holds_it(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr("spillprof.studies.history._WAIT_S", 0)
    path = _changed(project)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for command in (["history", path], ["gate", "--record", path, "--commit", "b", "-q"]):
            assert run(command) == 2
            err = capsys.readouterr().err
            assert "the history is in use by another process" in err
            assert path in err
            assert "backup" not in err


@pytest.mark.parametrize("arguments", [["--record", "x.txt", "--commit", "a"], ["--record", "new.db"]])
def test_what_cannot_be_recorded_is_said_before_the_work(
    project: Project, arguments: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is no history; no commit to name the rows by."""
    Path("x.txt").write_text("no history\n" * 100, "utf-8")
    monkeypatch.setenv("GIT_DIR", "absent")
    assert run(["gate", *arguments]) == 2
    assert capsys.readouterr().out == ""
    assert not Path("new.db").exists()


def test_recording_at_once_keeps_every_commit(project: Project) -> None:
    command = [sys.executable, "-m", "spillprof", "gate", "--record", "h.db", "-q", "--commit"]
    pair = [subprocess.Popen([*command, commit], stdout=subprocess.PIPE) for commit in "xy"]
    assert [process.communicate() and process.returncode for process in pair] == [0, 0]
    assert [sorted(r.commit for r in series.runs) for series in read_history(Path("h.db"))] == [["x", "y"]] * 2
