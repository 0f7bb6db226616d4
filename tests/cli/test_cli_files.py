"""No output replaces an input or another output; a replaced file keeps permissions and links."""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spillprof.cli import run

SAMPLES = Path(__file__).parents[2] / "sample_models"
Capture = pytest.CaptureFixture[str]
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="POSIX files")
ANALYZE = ["analyze", "m.onnx", "--sram", "12MB", "--strategy", "lru", "--what-if", "off", "-q", "--no-report"]
GATE = ["gate", "m.onnx", "--sram", "12MB", "-q"]
SWEEP = ["sweep", "m.onnx", "--sram", "8MB", "--strategy", "lru", "--jobs", "1", "-q"]
TARGET = 'inherit = "below.toml"\nsram_bytes = "12MB"\n'
BELOW = 'inherit = "generic-npu"\ndram_read_bytes_per_s = "60GB/s"\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Files of every kind in a folder of their own."""
    for name in [*os.environ]:
        if name.startswith(("SPILLPROF_", "GITHUB_")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    shutil.copy(SAMPLES / "unet.onnx", "m.onnx")
    texts = {
        "target.toml": TARGET, "below.toml": BELOW, "times.csv": "name,time_us\nx,1\n", "b.csv": BUFFERS,
        "own.toml": 'strategy = "lru"\n',
    }  # fmt: skip
    for name, text in texts.items():
        Path(name).write_text(text, "utf-8")
    return tmp_path


BUFFERS = "id,lower,upper,size\na,0,2,64\nb,1,3,64\n"


@pytest.fixture
def saved(folder: Path, capsys: Capture) -> Path:
    """Also what the tool itself writes."""
    assert run([*ANALYZE, "-o", "p.json", "--plan", "plan.json"]) == 0
    assert run([*GATE, "--update", "--record", "h.html", "--commit", "c"]) == 0
    assert run([*SWEEP, "-o", "rows.csv"]) == 0
    capsys.readouterr()
    return folder


def refused(arguments: list[str], capsys: Capture, complaint: str = "would take the place of") -> None:
    """Exit code 2 with one error, and every file in the folder as it was."""
    before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert complaint in err
    assert out == ""
    assert {path: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before


@pytest.mark.parametrize(
    "arguments",
    [
        [*ANALYZE, "--plan", "m.onnx"],
        [*ANALYZE, "--plan", "./m.onnx"],
        [*ANALYZE, "--plan", "../{here}/m.onnx"],
        [*ANALYZE, "--order", "memory", "--save-order", "m.onnx"],
        [*ANALYZE, "--target", "target.toml", "--plan", "target.toml"],
        [*ANALYZE, "--target", "target.toml", "--plan", "below.toml"],
        [*ANALYZE, "--op-times", "times.csv", "-o", "times.csv"],
        [*ANALYZE, "--config", "own.toml", "--plan", "own.toml"],
        ["report", "p.json", "-o", "p.json"],
        ["report", "p.json", "-o", "p.html", "-o", "./p.json"],
        ["diff", "p.json", "m.onnx", "--sram", "8MB", "-o", "p.json"],
        ["diff", "m.onnx", "p.json", "--sram", "8MB", "-o", "p.json"],
        ["diff", "m.onnx", "m.onnx", "--sram", "12MB", "--plan", "plan.json", "-o", "plan.json"],
        [*SWEEP, "--resume", "rows.csv", "-o", "rows.csv"],
        [*SWEEP, "--op-times", "times.csv", "-o", "times.csv"],
        [*GATE, "-o", "spillprof-baseline.json"],
        [*GATE, "--record", "m.onnx", "--commit", "c"],
        [*GATE, "--record", "spillprof-baseline.json", "--commit", "c"],
        [*GATE, "--baseline", "m.onnx", "--update"],
        ["history", "h.html", "-o", "h.html"],
        ["pack", "b.csv", "-o", "b.csv"],
        ["calibrate", "--inherit", "target.toml", "-o", "below.toml"],
    ],
)
def test_no_result_takes_the_place_of_what_is_read(saved: Path, arguments: list[str], capsys: Capture) -> None:
    refused([argument.replace("{here}", saved.name) for argument in arguments], capsys)


@POSIX
@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_a_link_to_what_is_read_is_the_same_file(link: object, capsys: Capture) -> None:
    link("m.onnx", "other.json")  # type: ignore[operator]
    refused([*ANALYZE, "--plan", "other.json"], capsys)
    link(Path("b.csv"), "result.csv")  # type: ignore[operator]
    refused(["pack", "b.csv", "-o", "result.csv"], capsys)


@pytest.mark.parametrize(
    "arguments",
    [
        [*ANALYZE, "-o", "x.json", "-o", "x.json"],
        [*ANALYZE, "-o", "x.json", "-o", "./x.json"],
        [*ANALYZE, "-o", "x.json", "--plan", "x.json"],
        [*ANALYZE, "-o", "x.json", "--plan", "{folder}/x.json"],
        [*SWEEP, "-o", "x.csv", "-o", "x.csv"],
        ["diff", "m.onnx", "m.onnx", "-o", "x.md", "-o", "x.md"],
        [*GATE, "-o", "x.md", "-o", "x.md"],
        [*GATE, "-o", "new.json", "--baseline", "new.json", "--update"],
        [*GATE, "-o", "x.json", "--record", "x.json", "--commit", "c"],
        [*GATE, "--baseline", "new.json", "--update", "--record", "new.json", "--commit", "c"],
    ],
)
def test_two_results_do_not_share_a_file(arguments: list[str], folder: Path, capsys: Capture) -> None:
    refused([a.replace("{folder}", str(folder)) for a in arguments], capsys, "two results would go to")


@POSIX
def test_two_results_do_not_share_a_file_by_a_link_to_where_none_is_yet(capsys: Capture) -> None:
    os.symlink("x.json", "y.json")
    refused([*ANALYZE, "-o", "x.json", "-o", "y.json"], capsys, "two results would go to 'x.json' and 'y.json'")


def test_names_that_differ_in_case_are_told_apart_where_the_file_system_does(folder: Path) -> None:
    (folder / "probe").touch()
    told_apart = not (folder / "PROBE").exists()
    assert run([*ANALYZE, "-o", "x.json", "-o", "X.json"]) == (0 if told_apart else 2)


def test_the_job_summary_is_an_output_like_any_other(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "s.md")
    assert run([*GATE, "--format", "github", "-o", "s.md"]) == 2
    assert "two results would go to 's.md'" in capsys.readouterr().err


def _spillprof(arguments: list[str], **streams: object) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run([sys.executable, "-m", "spillprof", *arguments], check=False, **streams)  # type: ignore[call-overload, no-any-return]


@POSIX
def test_what_comes_through_stdin_is_read_too() -> None:
    with open("b.csv", "rb") as file:
        done = _spillprof(["pack", "-", "-o", "b.csv"], stdin=file, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert b"'b.csv', which is read\n  --> stdin is the same file" in done.stderr
    assert Path("b.csv").read_text("utf-8") == BUFFERS


@POSIX
def test_the_file_behind_stdout_is_not_replaced_under_it() -> None:
    with open("x.csv", "wb") as file:
        done = _spillprof(["pack", "b.csv", "-o", "x.csv"], stdout=file, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert b"'x.csv' is where stdout goes" in done.stderr


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="names for open descriptors")
def test_dev_stdout_is_stdout_wherever_it_goes() -> None:
    """The summary, and the layout behind it, in the order in which they are written."""
    with open("x.txt", "wb") as file:
        done = _spillprof(["pack", "b.csv", "-o", "/dev/stdout", "-q"], stdout=file)
    assert done.returncode == 0
    text = Path("x.txt").read_text("utf-8")
    assert "peak" in text.partition("id,lower,upper,size,offset\n")[0]
    assert text.endswith(("b,1,3,64,64\n", "b,1,3,64,0\n"))
    piped = _spillprof(["pack", "b.csv", "-o", "/dev/stdout", "-q"], stdout=subprocess.PIPE)
    assert piped.stdout.decode() == text


@POSIX
def test_devices_and_pipes_are_written_into(folder: Path) -> None:
    os.mkfifo("pipe")
    reader = subprocess.Popen([sys.executable, "-c", "print(open('pipe').read())"], stdout=subprocess.PIPE)
    assert run(["pack", "b.csv", "-o", "pipe", "-q"]) == 0
    assert b"id,lower,upper,size,offset" in reader.communicate()[0]
    assert run(["pack", "b.csv", "-o", "/dev/null", "-q"]) == 0
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@POSIX
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o666, 0o755])
def test_what_is_replaced_keeps_its_permissions(mode: int) -> None:
    path = Path("x.csv")
    path.write_text("old", "utf-8")
    path.chmod(mode)
    assert run(["pack", "b.csv", "-o", "x.csv", "-q"]) == 0
    assert path.read_text("utf-8") != "old"
    assert stat.S_IMODE(path.stat().st_mode) == mode


@POSIX
@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_permissions_that_the_user_grants(mask: int, mode: int) -> None:
    before = os.umask(mask)
    try:
        assert run(["pack", "b.csv", "-o", "x.csv", "-q"]) == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat("x.csv").st_mode) == mode


@pytest.mark.parametrize(
    "arguments",
    [
        ["pack", "b.csv", "-o", "x.json"],
        [*ANALYZE, "-o", "x.json"],
        [*ANALYZE, "--plan", "x.json"],
        [*GATE, "--baseline", "x.json", "--update"],
        [*GATE, "--record", "x.json", "--commit", "c"],
    ],
)
def test_what_is_read_only_is_not_replaced(arguments: list[str], capsys: Capture) -> None:
    Path("x.json").write_text("old", "utf-8")
    os.chmod("x.json", 0o444)
    refused(arguments, capsys, "error: cannot write 'x.json'\n  --> it is read-only\nhint: make it writable")


@POSIX
def test_a_link_stays_a_link_and_leads_on(capsys: Capture) -> None:
    os.mkdir("sub")
    os.symlink("sub/real.csv", "x.csv")
    assert run(["pack", "b.csv", "-o", "x.csv", "-q"]) == 0
    assert os.readlink("x.csv") == "sub/real.csv"
    assert Path("sub/real.csv").read_text("utf-8").startswith("id,lower,upper,size,offset")
    capsys.readouterr()
    os.symlink("absent/real.csv", "nowhere.csv")
    refused(["pack", "b.csv", "-o", "nowhere.csv"], capsys, "there is no folder")
    os.symlink("circle.csv", "circle.csv")
    refused(["pack", "b.csv", "-o", "circle.csv"], capsys, "its links lead in a circle")


def test_files_of_others_beside_the_result_are_left_alone(folder: Path) -> None:
    stale = folder / f".x.csv.{os.getpid()}.tmp"
    stale.write_text("somebody's", "utf-8")
    before = {*folder.iterdir()}
    assert run(["pack", "b.csv", "-o", "x.csv", "-q"]) == 0
    assert stale.read_text("utf-8") == "somebody's"
    assert {*folder.iterdir()} == {*before, folder / "x.csv"}


def test_the_longest_name_that_a_file_can_have_works() -> None:
    name = "x" * 251 + ".csv"
    assert run(["pack", "b.csv", "-o", name, "-q"]) == 0
    assert run(["pack", "b.csv", "-o", name, "-q"]) == 0
    assert Path(name).read_text("utf-8").startswith("id,lower,upper,size,offset")
