"""Ctrl-C, a closed pipe and closed or few descriptors, in processes of their own."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parents[2] / "sample_models"
UNET = str(SAMPLES / "unet.onnx")
TRANSFORMER = str(SAMPLES / "transformer_blocks.onnx")
SWEEP = ["sweep", UNET, "--sram", "1MB..32MB/32KB", "--strategy", "optimal,lru", "--quiet"]
SPILLPROF = [sys.executable, "-m", "spillprof"]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and descriptors are others there")


@pytest.mark.parametrize(
    "module",
    ["spillprof.cli.running", "click", "spillprof.cli.options", "numpy", "spillprof.frontends.onnx.proto",
     "spillprof.explain.analyze"],
)  # fmt: skip
def test_ctrl_c_while_modules_are_imported_is_silent(module: str, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "spillprof", "analyze", TRANSFORMER, "--no-report"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:  # each module when it was imported, so that the moment is known
        if line.startswith("import time:") and line.rsplit("|", 1)[-1].strip() == module:
            process.send_signal(signal.SIGINT)
            break
    else:
        pytest.fail(f"{module} was not imported")
    out, err = process.communicate(timeout=60)
    said = [line for line in err.splitlines() if not line.startswith("import time:")]
    assert process.returncode == 130
    assert said == []
    assert out == ""


@pytest.mark.slow
@pytest.mark.parametrize("delay_s", [0.3, 0.6, 0.9, 1.2, 1.5, 2.0])
def test_ctrl_c_in_a_sweep_is_silent_at_any_moment_in_its_processes_too(delay_s: float, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*SPILLPROF, *SWEEP, "-j", "2", "--json"], cwd=tmp_path, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    time.sleep(delay_s)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == ""
    assert not out or '"complete": false' in out


def test_what_is_started_without_ctrl_c_goes_on_without_it(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = subprocess.Popen(
            [*SPILLPROF, "inspect", UNET], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    finally:
        signal.signal(signal.SIGINT, before)
    for _ in range(10):
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
    assert out


def _shell(script: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A script of sh in which "$@" is the command line of spillprof."""
    command = ["sh", "-c", script, "sh", *SPILLPROF, *arguments]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=120, env=environment
    )


def test_a_closed_stdout_is_an_error_before_the_work(tmp_path: Path) -> None:
    done = _shell('"$@" >&-', tmp_path, "analyze", UNET)
    assert done.returncode == 2
    assert done.stderr == "error: stdout is closed\nhint: send it to a file, or to /dev/null\n"
    assert list(tmp_path.iterdir()) == []


def test_a_closed_stderr_leaves_the_work_as_it_is(tmp_path: Path) -> None:
    done = _shell('"$@" 2>&-', tmp_path, "analyze", UNET, "--strategy", "lru", "-o", "a.json")
    assert done.returncode == 0
    assert "unet" in done.stdout
    assert (tmp_path / "a.json").read_text("utf-8").startswith("{")
    failed = _shell('"$@" 2>&-', tmp_path, "analyze", "absent.onnx")
    assert (failed.returncode, failed.stdout) == (2, "")
    closed = _shell('"$@" >&- 2>&-', tmp_path, "analyze", UNET)
    assert (closed.returncode, closed.stdout, closed.stderr) == (2, "", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_stderr_that_takes_nothing_leaves_the_exit_code_as_it_is(tmp_path: Path) -> None:
    assert _shell('"$@" 2>/dev/full', tmp_path, "analyze", "absent.onnx").returncode == 2
    done = _shell('"$@" 2>/dev/full', tmp_path, "inspect", UNET)
    assert done.returncode == 0
    assert done.stdout


def test_a_stdout_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    done = _shell('"$@" 1</dev/null', tmp_path, "inspect", UNET)
    assert done.returncode == 2
    assert done.stderr == "error: cannot write the result: bad file descriptor\nhint: write it elsewhere\n"


def test_too_few_descriptors_for_the_processes_of_a_sweep_are_an_error(tmp_path: Path) -> None:
    done = _shell('ulimit -n 12; "$@"', tmp_path, "sweep", UNET, "--sram", "1MB,2MB", "--strategy", "lru", "-j", "2")
    assert done.returncode == 2
    assert done.stderr == (
        "error: cannot start 2 processes\n  --> too many open files\n"
        "hint: give fewer with --jobs; 1 is this process alone\n"
    )


@pytest.mark.parametrize("streams", [("stdout",), ("stdout", "stderr")])
def test_files_are_written_though_nobody_reads_the_table(streams: tuple[str, ...], tmp_path: Path) -> None:
    arguments = ["analyze", UNET, "--strategy", "lru", "-o", "a.json", "-o", "b.json"]
    assert _unread(arguments, streams, tmp_path) == 0
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes() != b""


def test_a_gate_fails_though_nobody_reads_why(tmp_path: Path) -> None:
    assert _unread(["gate", UNET, "--sram", "1MB", "--max-spill", "1KB"], ("stdout",), tmp_path) == 1


def _unread(arguments: list[str], streams: tuple[str, ...], folder: Path) -> int:
    """Exit code of a command whose streams are pipes that nobody reads. It prints nothing to the others but notes."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*SPILLPROF, *arguments], cwd=folder, check=False,
            stdout=writing, stderr=writing if "stderr" in streams else subprocess.PIPE,
        )  # fmt: skip
    finally:
        os.close(writing)
    for word in (b"Traceback", b"error", b"Exception", b"BrokenPipe"):
        assert word not in (done.stderr or b"")
    return done.returncode
