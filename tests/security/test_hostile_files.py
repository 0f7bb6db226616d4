"""Files written to attack: nothing outside is opened, no terminal escape is printed, no file is half-written."""

import csv
import html.parser
import json
import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from spillprof.cli import run

EVIL = (
    "<script>alert(1)</script>",
    "\x1b[2J\x07clear",
    "\u202etxt.exe",
    "line\nbreak\rreturn",
    "=cmd|' /C calc'!A0",
    "+1+1",
    "@SUM(A1)",
    "| a | [x](javascript:alert(1)) |",
    "../../../etc/passwd",
    "`id` $(id) %PATH%",
)
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="POSIX files")


def chain(names: tuple[str, ...], *, location: str | None = None) -> bytes:
    """A chain of Relus (the first: an Add of a stored tensor) whose nodes and tensors have these names."""
    values = ["x", *(f"{name}\u200bout" for name in names)]
    nodes = [
        helper.make_node("Relu" if i else "Add", [values[i]] if i else ["x", "w"], [values[i + 1]], name=name)
        for i, name in enumerate(names)
    ]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [64, 64]) for n in (values[0], values[-1])]
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[64, 64], raw_data=bytes(4 * 64 * 64))
    if location is not None:
        weight.ClearField("raw_data")
        weight.data_location = TensorProto.EXTERNAL
        weight.external_data.add(key="location", value=location)
    graph = helper.make_graph(nodes, names[0], ends[:1], ends[1:], [weight])
    made = helper.make_model(graph, producer_name=names[0], opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return made.SerializeToString()


AUDITED = """
import os, sys
opened = []
sys.addaudithook(lambda event, args: opened.append(args[0]) if event in ("open", "os.listdir", "os.scandir") else None)
from spillprof.cli import run
for model in sys.argv[1:]:
    opened.clear()
    code = run(["analyze", model, "--sram", "8KiB", "--no-report", "-q"])
    paths = {os.path.realpath(os.fsdecode(p)) for p in opened if isinstance(p, (str, bytes, os.PathLike))}
    print("\\nopened " + repr([code, sorted(paths)]))
"""


@POSIX
def test_external_data_is_never_opened(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    for secret in (tmp_path / "secret.bin", folder / "secret.bin"):
        secret.write_bytes(bytes(4 * 64 * 64))
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    secret = str(tmp_path / "secret.bin")
    locations = ("secret.bin", "../secret.bin", "/dev/zero", "/etc/passwd", "link.bin", secret)
    models = [folder / f"m{k}.onnx" for k in range(len(locations))]
    for model, location in zip(models, locations, strict=True):
        model.write_bytes(chain(("a", "b"), location=location))
    done = subprocess.run([sys.executable, "-c", AUDITED, *models], capture_output=True, text=True, check=True)
    printed = [line.removeprefix("opened ") for line in done.stdout.splitlines() if line.startswith("opened ")]
    here = os.path.realpath(tmp_path)
    for model, location, text in zip(models, locations, printed, strict=True):
        code, paths = eval(text)  # a list that this test printed
        assert code == 0, location
        assert [p for p in paths if p.startswith(here)] == [os.path.realpath(model)], location
        assert not {"/dev/zero", os.path.realpath("/etc/passwd")} & set(paths), location


@pytest.fixture
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a model with hostile names, which is the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    (tmp_path / "evil.onnx").write_bytes(chain(EVIL))
    return tmp_path


@pytest.mark.parametrize("command", [["analyze", "--sram", "16KiB", "--no-report"], ["inspect"]])
def test_no_name_steers_the_terminal(command: list[str], evil: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command[0], "evil.onnx", *command[1:]]) == 0
    out, err = capsys.readouterr()
    assert "script" in out
    assert not {c for c in out + err if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}


def test_no_name_becomes_markup_or_a_formula(evil: Path) -> None:
    outputs = ["r.html", "r.md", "r.csv", "r.json"]
    assert run(["analyze", "evil.onnx", "--sram", "16KiB", "-q", *(o for name in outputs for o in ("-o", name))]) == 0
    page = (evil / "r.html").read_text("utf-8")
    assert "<script>alert(1)" not in page
    scripts = _Scripts()
    scripts.feed(page)
    assert not any("alert(1)</script" in text for text in scripts.texts)
    prose = re.sub(r"(`+) ?.+? ?\1", "", (evil / "r.md").read_text("utf-8"))  # code spans hold names as they are
    assert "<script>" not in prose
    assert "](javascript:" not in prose
    with (evil / "r.csv").open(encoding="utf-8", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert any("cmd|" in cell for cell in cells)
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@", "\t", "\r"))]
    text = (evil / "r.json").read_text("ascii")
    assert json.loads(text)["model"]["operators"] == len(EVIL)


class _Scripts(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._inside = tag == "script"

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.texts.append(data)


def test_a_report_is_named_after_the_file_and_stays_in_the_folder(
    evil: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Stdin:
        buffer = (evil / "evil.onnx").open("rb")

    monkeypatch.setattr(sys, "stdin", Stdin)
    with Stdin.buffer:
        assert run(["analyze", "-", "--sram", "16KiB"]) == 0
    made = sorted(p.name for p in evil.iterdir() if p.name != "evil.onnx")
    assert len(made) == 1
    assert made[0].endswith(".spill.html")
    assert not set("<>/\\:\x1b\n") & set(made[0])


@POSIX
@pytest.mark.parametrize("kind", ["folder", "pipe", "device", "empty", "sparse", "loop"])
def test_a_path_that_is_no_model_is_refused_at_once(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    path = tmp_path / "m.onnx"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path = Path("/dev/zero")
    elif kind == "loop":
        path.symlink_to(path)
    else:
        with path.open("wb") as file:
            file.truncate(1 << 40 if kind == "sparse" else 0)
    before = sorted(tmp_path.iterdir())
    assert run(["analyze", str(path), "--sram", "8MiB", "-o", str(tmp_path / "r.html")]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("error: ")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("suffix", ["html", "json", "md", "csv"])
def test_a_full_disk_is_said(suffix: str, evil: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path(f"r.{suffix}").symlink_to("/dev/full")
    assert run(["analyze", "evil.onnx", "--sram", "16KiB", "-o", f"r.{suffix}"]) == 2
    assert capsys.readouterr().err.startswith(f"error: cannot write 'r.{suffix}'")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_behind_stdout_is_said(evil: Path) -> None:
    command = [sys.executable, "-m", "spillprof", "analyze", "evil.onnx", "--sram", "16KiB", "--json"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: cannot write")
    assert "Exception ignored" not in done.stderr


@POSIX
def test_weights_on_stdin_are_not_held_in_memory(tmp_path: Path) -> None:
    count = 1 << 26  # float32 elements: 256 MiB
    small = onnx.ModelProto.FromString(chain(("a",)))
    weight = small.graph.initializer.add(name="big", data_type=TensorProto.FLOAT, dims=[count])
    weight.raw_data = bytes(4 * count)
    path = tmp_path / "big.onnx"
    path.write_bytes(small.SerializeToString())
    script = (
        "import resource, sys, spillprof.explain.analyze, spillprof.frontends.onnx\nfrom spillprof.cli import run\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "assert run(['inspect', '-', '-q']) == 0\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    with path.open("rb") as file:
        done = subprocess.run([sys.executable, "-c", script], stdin=file, capture_output=True, text=True, check=True)
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(done.stdout.splitlines()[-1]) * unit < 64 << 20
