"""Figures without a unit and mistyped names: warnings and errors name the place."""

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from spillprof.cli import run

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a model whose dimensions are open in it."""
    monkeypatch.chdir(tmp_path)
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", "seq", 8]) for n in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), "open.onnx")
    return tmp_path


SIZES = ("--dim", "batch=1", "--dim", "seq=4")


def errors_of(capsys: Capture, *arguments: str, code: int = 0) -> str:
    assert run([*arguments]) == code
    return capsys.readouterr().err


def analysed(capsys: Capture, *options: str, code: int = 0) -> str:
    more = ("--strategy", "lru", "--no-report", "--json")
    return errors_of(capsys, "analyze", "open.onnx", *SIZES, *more, *options, code=code)


@pytest.mark.parametrize("options", [["--set", "dram-read=3"], ["--target", "mine.toml"], ["--target", "mine"]])
def test_a_rate_without_its_unit_is_doubted(options: list[str], capsys: Capture, model: Path) -> None:
    (model / "mine.toml").write_text('inherit = "generic-npu"\nname = "mine"\ndram_read_bytes_per_s = 3\n')
    (model / "spillprof.toml").write_text("[targets.mine]\ndram-read = 3\n")
    assert analysed(capsys, *options) == "warning: dram-read is 3 B/s; did you mean 3GB/s?\n"
    assert analysed(capsys, *options, "-q") == ""


def test_an_sram_without_its_unit_is_doubted(capsys: Capture, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    doubt = "warning: the SRAM has 8 B; did you mean 8MB?\n"
    assert doubt in analysed(capsys, "--sram", "8", code=2)  # no tile fits into 8 B
    assert analysed(capsys, "--sram", "1024") == ""
    (model / "spillprof.toml").write_text("sram = 8\n")
    assert doubt in analysed(capsys, code=2)
    (model / "spillprof.toml").unlink()
    monkeypatch.setenv("SPILLPROF_SRAM", "8")
    assert doubt in analysed(capsys, code=2)


def test_values_of_axes_are_doubted(capsys: Capture) -> None:
    sweep = ("sweep", "open.onnx", *SIZES, "--strategy", "lru", "-j", "1", "-o", "s.csv")
    told = errors_of(capsys, *sweep, "--sram", "8,2048", "--vary", "dram-read=3,60GB/s")
    assert "warning: the SRAM has 8 B; did you mean 8MB?\n" in told
    assert told.count("warning: dram-read is 3 B/s; did you mean 3GB/s?\n") == 1


@pytest.mark.parametrize("way", ["option", "environment", "file", "axis"])
def test_a_fraction_of_bytes_is_refused_everywhere(
    way: str, capsys: Capture, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options, place = [], "--sram"
    match way:
        case "option":
            options = ["--sram", "1.5"]
        case "environment":
            monkeypatch.setenv("SPILLPROF_SRAM", "1.5")
            place = "SPILLPROF_SRAM"
        case "file":
            (model / "spillprof.toml").write_text('sram = "1.5"\n')
            place = "sram"
    if way == "axis":
        told = errors_of(capsys, "sweep", "open.onnx", *SIZES, "--sram", "1.5,4MB", code=2)
    else:
        told = analysed(capsys, *options, code=2)
    assert "error: '1.5' is no whole number of bytes" in told
    assert place in told
    assert "hint: did you mean 1.5MB?" in told


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (["--srm", "8MB"], "did you mean --sram?"),
        (["--dram-raed", "8GB/s"], "did you mean --dram-read?"),
        (["--set", "dram-raed=8GB/s"], "did you mean 'dram-read'?"),
        (["--set", "dma-channels=2"], "did you mean 'dma-read-channels'?"),
        (["--set", "clock-hz=x"], "write it like 500MHz or 1.3GHz"),
        (["--set", "channel-align=-1"], "write it like 64 or 32MB"),
        (["--strategy", "leu"], "did you mean 'lru'?"),
    ],
)
def test_hints_name_the_nearest_first_as_an_option_has_it(options: list[str], hint: str, capsys: Capture) -> None:
    assert f"hint: {hint}" in analysed(capsys, *options, code=2)


def test_a_variable_is_named_as_such(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPILLPROF_SET", "dram-read")
    told = analysed(capsys, code=2)
    assert "  --> SPILLPROF_SET\n" in told
    assert "hint: write it like SPILLPROF_SET=dram-read=30GB/s" in told


def test_a_target_file_is_told_its_own_keys(capsys: Capture, model: Path) -> None:
    (model / "mine.toml").write_text('inherit = "generic-npu"\nname = "mine"\ndram-raed = "3GB/s"\n')
    told = analysed(capsys, "--target", "mine.toml", code=2)
    assert "did you mean 'dram_read_bytes_per_s'?" in told


def test_open_dimensions_are_proposed_in_the_syntax_of_the_place(capsys: Capture, model: Path) -> None:
    told = errors_of(capsys, "inspect", "open.onnx", code=2)
    assert "hint: bind it: --dim batch=1 --dim seq=128" in told
    (model / "spillprof.toml").write_text('[[models]]\npath = "open.onnx"\n')
    assert run(["gate"]) == 2
    shown = "".join(capsys.readouterr())
    assert 'dims = { "batch" = 1, "seq" = 128 } in spillprof.toml' in shown
    assert "--dim" not in shown
