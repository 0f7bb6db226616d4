"""Exit codes and the form of errors, through the real entry point in a fresh process or in this one."""

import gc
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import pytest

import spillprof.cli
from spillprof.cli import run
from spillprof.cli.group import spillprof as group
from spillprof.ir.errors import CapacityError, SpillprofError

SAMPLES = Path(__file__).parents[2] / "sample_models"
UNET = str(SAMPLES / "unet.onnx")


def spillprof_process(
    arguments: Sequence[str], folder: Path, *, stdin: bytes | None = None, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("SPILLPROF_") and "COLOR" not in k}
    return subprocess.run(
        [sys.executable, "-m", "spillprof", *arguments],
        cwd=folder, input=stdin, capture_output=True, env={**clean, **environment}, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["--version"], ["analyze", "--help"], ["info", "targets"]])
def test_what_was_asked_for_exits_with_0(arguments: list[str], tmp_path: Path) -> None:
    done = spillprof_process(arguments, tmp_path)
    assert done.returncode == 0
    assert done.stdout
    assert not done.stderr


def test_no_command_is_a_usage_error(tmp_path: Path) -> None:
    done = spillprof_process([], tmp_path)
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["analize", UNET], "error: no command 'analize'; did you mean 'analyze'?"),
        (["analyze"], "error: missing argument 'MODEL'"),
        (["analyze", UNET, "--srm", "1MB"], "error: no such option '--srm'"),
        (["analyze", UNET, "--sram", "1,5MiB"], "error: '1,5MiB' is not a size"),
        (["analyze", UNET, "--sram", "-1MB"], "error: '-1MB' is not a size"),
        (["analyze", UNET, "--dram-read", "32mbps"], "error: '32mbps' is not a bandwidth"),
        (["analyze", UNET, "--fuse", "all"], "error: invalid value for '--fuse'"),
        (["analyze", UNET, "--dim", "batch"], "error: 'batch' binds no dimension"),
        (["analyze", UNET, "--dim", "batch=-1"], "error: 'batch=-1' binds no dimension"),
        (["analyze", UNET, "--shape", "x=1x?"], "error: 'x=1x?' is no shape of an input"),
        (["analyze", UNET, "--dim", "n=1", "--dim", "n=2"], "error: --dim gives 'n' two values"),
        (["analyze", UNET, "--strategy", "lru,beladi"], "error: unknown strategy 'beladi'"),
        (["analyze", UNET, "--strategy", ","], "error: no strategy is named"),
        (["analyze", UNET, "--placement", "bestfit"], "error: unknown placement 'bestfit'"),
        (["analyze", UNET, "--target", "generic"], "error: unknown target 'generic'"),
        (["analyze", UNET, "--target", "none.toml"], "error: cannot read the target file"),
        (["analyze", UNET, "--pin", "nobody"], "error: "),
        (["analyze", UNET, "-o", "report.pdf"], "error: 'report.pdf' has no suffix that names a format"),
        (["analyze", UNET, "-o", "absent/report.html"], "error: cannot write 'absent/report.html'"),
        (["analyze", UNET, "--plan", "p.json"], "error: --plan writes one plan"),
        (["analyze", "absent.onnx"], "error: "),
        (["analyze", "."], "error: "),
        (["inspect", "absent.onnx"], "error: "),
        (["verify", UNET, "absent.json"], "error: cannot read the plan"),
        (["info", "nothing"], "error: invalid value for"),
        (["analyze", UNET, "--sram", "1KB", "--oversized", "error"], "error: "),
    ],
)
def test_what_cannot_be_evaluated_exits_with_2_and_one_error(
    arguments: list[str],
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert err.lower().startswith(complaint.lower())
    assert not out
    assert list(tmp_path.iterdir()) == []


def test_an_error_says_what_where_and_what_next(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = CapacityError(
        "operator 41 needs 1.31 MiB", where=["conv: inputs 0.78 MiB", "conv: output"], hint="more SRAM"
    )
    assert _raise(error, monkeypatch) == 2
    assert capsys.readouterr().err == (
        "error: operator 41 needs 1.31 MiB\n  --> conv: inputs 0.78 MiB\n  --> conv: output\nhint: more SRAM\n"
    )


def test_names_in_an_error_cannot_steer_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = "\x1b[2J\x07\u202ename\r\nhint: fine"
    _raise(SpillprofError(f"no tensor '{hostile}'", where=[hostile], hint=hostile), monkeypatch)
    text = capsys.readouterr().err
    assert len(text.splitlines()) == 3
    assert not set("\x1b\x07\u202e\r") & set(text)
    assert "\\x1b[2J\\x07\\u202ename\\r\\nhint: fine" in text


def test_an_endless_name_in_an_error_is_cut(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _raise(SpillprofError("a" * 100_000), monkeypatch)
    assert len(capsys.readouterr().err) < 1000


def test_a_bug_exits_with_3_and_asks_for_a_report(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _raise(ZeroDivisionError("division by \x1bzero"), monkeypatch) == 3
    text = capsys.readouterr().err
    assert "ZeroDivisionError: division by \\x1bzero" in text
    assert spillprof.__version__ in text
    assert "please report" in text
    assert "Traceback" not in text


def test_a_bug_shows_its_traceback_with_verbose(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _raise(ZeroDivisionError("no"), monkeypatch, "-v") == 3
    assert "Traceback" in capsys.readouterr().err


def test_too_little_memory_of_the_machine_exits_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _raise(MemoryError(), monkeypatch) == 2
    assert capsys.readouterr().err.startswith("error: out of memory\n")


@pytest.mark.parametrize("interruption", [KeyboardInterrupt(), click.Abort()])
def test_an_interruption_exits_with_130(interruption: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _raise(interruption, monkeypatch) == 130


@pytest.mark.skipif(sys.platform == "win32", reason="pipes end differently there")
def test_a_reader_that_closes_the_pipe_is_no_error(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "spillprof", "inspect", str(SAMPLES / "residual_cnn.onnx"), "--json"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 0
    assert errors == b""


def _raise(failure: BaseException, monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    """Exit code of a command that fails so."""

    def fail(*_: object, **__: object) -> None:
        raise failure

    command = group.get_command(click.Context(group), "info")
    assert command is not None
    monkeypatch.setattr(command, "callback", fail)
    monkeypatch.setenv("NO_COLOR", "1")
    return run(["info", "targets", *options])


@pytest.mark.parametrize("of_the_caller", [True, False])
@pytest.mark.parametrize("arguments", [["info", "targets"], ["analyze", "no_such_file.onnx"]])
def test_the_collector_is_off_in_a_command_and_afterwards_as_the_caller_had_it(
    arguments: list[str], of_the_caller: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[bool] = []
    main = group.main

    def watched(*args: object, **kwargs: object) -> object:
        seen.append(gc.isenabled())
        return main(*args, **kwargs)  # type: ignore[call-overload]

    monkeypatch.setattr(group, "main", watched)
    try:
        if not of_the_caller:
            gc.disable()
        run(arguments)
        seen.append(gc.isenabled())
    finally:
        gc.enable()
    assert seen == [False, of_the_caller]
