"""``spillprof report``, and the formats that a suffix asks for."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from spillprof.cli import run
from spillprof.report.exports.registry import Subject, suffixes_of

SAMPLES = Path(__file__).parents[2] / "sample_models"
UNET = str(SAMPLES / "unet.onnx")
ANALYZE = ["analyze", UNET, "--sram", "12MB", "--strategy", "lru,belady"]
SUFFIXES = [suffix.removeprefix(".") for suffix in suffixes_of(Subject.PROFILE)]
TABLES = [s.removesuffix(".csv") for s in SUFFIXES if s.endswith(".csv") and s not in ("csv", "minimalloc.csv")]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that one analysis writes, ``brief.json`` saved without events."""
    folder = tmp_path_factory.mktemp("saved")
    arguments = [item for suffix in SUFFIXES for item in ("-o", str(folder / f"x.{suffix}"))]
    assert run([*ANALYZE, "--events", *arguments]) == 0
    data = json.loads((folder / "x.json").read_text())
    for result in data["results"]:
        del result["events"], result["residencies"], result["times"]
    (folder / "brief.json").write_text(json.dumps(data))
    return folder


pytestmark = pytest.mark.usefixtures("empty_folder")


def test_saved_profile_gives_every_format_again_byte_for_byte(saved: Path, empty_folder: Path) -> None:
    arguments = [item for suffix in SUFFIXES for item in ("-o", f"x.{suffix}")]
    assert run(["report", str(saved / "x.json"), *arguments]) == 0
    for suffix in SUFFIXES:
        assert (empty_folder / f"x.{suffix}").read_bytes() == (saved / f"x.{suffix}").read_bytes(), suffix


def test_each_suffix_gives_its_format(saved: Path) -> None:
    assert json.loads((saved / "x.trace.json").read_text())["traceEvents"]
    assert json.loads((saved / "x.speedscope.json").read_text())["shared"]["frames"]
    assert json.loads((saved / "x.netron.json").read_text())["signature"] == "netron:attachment"
    headers = {name: (saved / f"x.{name}.csv").read_text().split("\n", 1)[0] for name in TABLES}
    assert len(set(headers.values())) == len(TABLES)
    assert (saved / "x.csv").read_bytes() == (saved / "x.operators.csv").read_bytes()
    assert (saved / "x.minimalloc.csv").read_text().startswith("id,lower,upper,size\n")


def test_annotated_model_is_the_model_with_notes(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = onnx.load(saved / "x.spill.onnx")
    onnx.checker.check_model(written, full_check=True)
    notes = {p.key: p.value for node in written.graph.node if node.name == "up0/join" for p in node.metadata_props}
    assert notes["spillprof.cause"] == "oversized"
    assert notes["spillprof.streamed"].endswith("B)")
    assert "spillprof.verdict" in {p.key for p in written.metadata_props}
    assert run(["inspect", str(saved / "x.spill.onnx"), "--json"]) == 0
    with_notes = json.loads(capsys.readouterr().out)
    assert run(["inspect", UNET, "--json"]) == 0
    assert with_notes["tensors"] == json.loads(capsys.readouterr().out)["tensors"]


def test_summary_and_json_of_a_saved_profile(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", str(saved / "x.json"), "--no-report"]) == 0
    page, err = capsys.readouterr()
    assert "belady" in page
    assert err == ""
    assert run(["report", str(saved / "x.json"), "--json"]) == 0
    assert capsys.readouterr().out == (saved / "x.json").read_text()
    assert run(["report", str(saved / "brief.json"), "--json"]) == 0
    assert "events" not in json.loads(capsys.readouterr().out)["results"][0]


def test_without_o_the_report_is_named_after_the_profile(saved: Path, empty_folder: Path) -> None:
    assert run(["report", str(saved / "x.json")]) == 0
    assert [p.name for p in empty_folder.iterdir()] == ["x.spill.html"]


def test_only_the_strategies_asked_for_are_shown(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", str(saved / "x.json"), "--strategy", "belady", "--json"]) == 0
    assert [r["strategy"] for r in json.loads(capsys.readouterr().out)["results"]] == ["belady"]
    assert run(["report", str(saved / "x.json"), "--strategy", "cost"]) == 2
    assert "there are lru, belady" in capsys.readouterr().err


def test_profile_comes_through_a_pipe(
    saved: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with (saved / "x.json").open("rb") as file:
        monkeypatch.setattr(sys, "stdin", type("Stdin", (), {"buffer": file}))
        assert run(["report", "-", "--json"]) == 0
    assert capsys.readouterr().out == (saved / "x.json").read_text()


@pytest.mark.parametrize("suffix", ["trace.json", "speedscope.json", "events.csv", "steps.csv", "minimalloc.csv"])
def test_what_needs_events_says_how_to_save_them(
    suffix: str, saved: Path, empty_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", str(saved / "brief.json"), "-o", "y.html", "-o", f"y.{suffix}"]) == 2
    err = capsys.readouterr().err
    assert "holds no events" in err
    assert "--events" in err
    assert list(empty_folder.iterdir()) == []


def test_html_without_events_says_what_is_missing(saved: Path, empty_folder: Path) -> None:
    assert run(["report", str(saved / "brief.json"), "-o", "y.html"]) == 0
    assert "saved without events" in (empty_folder / "y.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "is no JSON"),
        (b"{", "is no JSON"),
        (b"[" * 200_000, "is nested more than 64 deep"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"[]", "no profile"),
        (b'{"schema": "spillprof-profile/9"}', "its schema is 'spillprof-profile/9'"),
        (b'{"schema": "spillprof-profile/1"}', "the profile lacks 'spillprof_version'"),
        (
            b'{"schema": "spillprof-profile/1", "spillprof_version": 1' + b"0" * 5000 + b"}",
            "has a number of more than 100 digits",
        ),
    ],
)
def test_what_is_no_profile_is_refused(
    text: bytes, said: str, empty_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (empty_folder / "p.json").write_bytes(text)
    assert run(["report", "p.json"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert said in err
    assert "p.json" in err


def test_no_such_profile(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", "nowhere.json"]) == 2
    assert "nowhere.json" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["x", "x.txt", ".csv", ".trace.json", "x.onnx", "x.frob.csvx"])
def test_other_names_are_no_format(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*ANALYZE, "-o", name]) == 2
    assert "no suffix that names a format" in capsys.readouterr().err


def changed(path: Path, /, **model: Any) -> Path:
    data = json.loads(path.read_text())
    data["model"].update(model)
    other = Path("changed.json")
    other.write_text(json.dumps(data))
    return other


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ({"path": "-"}, "came through a pipe"),
        ({"path": "gone.onnx"}, "cannot be read"),
        ({"sha256": "0" * 64}, "not the one that was analysed"),
    ],
)
def test_annotated_model_needs_the_model_as_it_was(
    model: dict[str, str], said: str, saved: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", str(changed(saved / "x.json", **model)), "-o", "y.spill.onnx"]) == 2
    assert said in capsys.readouterr().err
    assert not Path("y.spill.onnx").exists()


def test_annotated_model_never_replaces_the_model(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.spill.onnx").write_bytes(Path(UNET).read_bytes())
    assert run(["report", str(changed(saved / "x.json", path="m.spill.onnx")), "-o", "m.spill.onnx"]) == 2
    assert "would take the place of 'm.spill.onnx', which is read" in capsys.readouterr().err


def test_annotated_model_stays_beside_its_weights(empty_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (empty_folder / "models").mkdir()
    (empty_folder / "elsewhere").mkdir()
    model = onnx.load(UNET)
    weight = onnx.numpy_helper.from_array(np.zeros(1000, np.float32), "extra")
    model.graph.initializer.append(weight)
    onnx.save(model, "models/m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    analyze = ["analyze", "models/m.onnx", "--sram", "12MB", "--strategy", "lru", "-o"]
    assert run([*analyze, "elsewhere/m.spill.onnx"]) == 2
    assert "would not find its weights" in capsys.readouterr().err
    assert run([*analyze, "models/m.spill.onnx"]) == 0
    onnx.checker.check_model("models/m.spill.onnx", full_check=True)
