"""What must be refused whatever the files say: results over inputs, and baselines that git cannot read."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from fuzzing.files import BUFFERS, TARGET, TIMES
from fuzzing.models import own_model
from fuzzing.streams import Stream
from spillprof.cli import run

Try = tuple[str, Callable[[], bool]]
"""(kind, whether it was answered as it should be)."""

_MODEL = ["m.onnx", "--sram", "8KiB", "-q", "--target", "t.toml", "--op-times", "times.csv", "--config", "own.toml"]
_READ = ("m.onnx", "t.toml", "below.toml", "times.csv", "own.toml")
_COMMANDS: tuple[tuple[list[str], tuple[str, ...], tuple[str, ...]], ...] = (
    (["analyze", *_MODEL, "--strategy", "lru", "--plan", "OUT"], _READ, ("",)),
    (["analyze", *_MODEL, "--no-report", "-o", "OUT"], _READ, (".json", ".html", ".csv", ".md")),
    (["analyze", *_MODEL, "--order", "memory", "--save-order", "OUT"], _READ, ("",)),
    (["sweep", *_MODEL, "--resume", "rows.csv", "-o", "OUT"], (*_READ, "rows.csv"), (".json", ".html", ".csv")),
    (["report", "p.json", "-q", "-o", "OUT"], ("p.json",), (".json", ".html", ".trace.json")),
    (["diff", "p.json", *_MODEL, "-o", "OUT"], (*_READ, "p.json"), (".json", ".html", ".md")),
    (["gate", *_MODEL, "--baseline", "b.json", "-o", "OUT"], (*_READ, "b.json"), (".json", ".md", ".xml")),
    (["gate", *_MODEL, "--baseline", "b.json", "--commit", "c", "--record", "OUT"], (*_READ, "b.json"), ("",)),
    (["gate", *_MODEL, "--update", "--baseline", "OUT"], _READ, ("",)),
    (["history", "h.html", "-q", "-o", "OUT"], ("h.html",), (".html",)),
    (["pack", "buffers.csv", "-q", "-o", "OUT"], ("buffers.csv",), ("",)),
    (["calibrate", "-q", "--inherit", "t.toml", "-o", "OUT"], ("t.toml", "below.toml"), (".toml",)),
)
_TWO_RESULTS = (
    ["analyze", *_MODEL, "--strategy", "lru", "-o", "ONE.json", "--plan", "TWO.json"],
    ["analyze", *_MODEL, "--no-report", "-o", "ONE.json", "-o", "TWO.json"],
    ["sweep", *_MODEL, "-o", "ONE.csv", "-o", "TWO.csv"],
    ["report", "p.json", "-q", "-o", "ONE.html", "-o", "TWO.html"],
    ["diff", "p.json", *_MODEL, "-o", "ONE.md", "-o", "TWO.md"],
    ["gate", *_MODEL, "-o", "ONE.json", "-o", "TWO.json"],
    ["gate", *_MODEL, "-o", "ONE.json", "--baseline", "TWO.json", "--update"],
    ["gate", *_MODEL, "--commit", "c", "--record", "ONE.json", "--baseline", "TWO.json", "--update"],
)


def results_over_inputs(folder: Path) -> Iterator[Try]:
    """Every output of every command over every file that it reads, by four ways to name a file."""
    folder.mkdir()
    with contextlib.chdir(folder):
        _files()
        for arguments, read, suffixes in _COMMANDS:
            kind = f"`{arguments[0]} {arguments[-2] if arguments[0] != 'gate' else _gate_option(arguments)}`"
            for name in read:
                for suffix in suffixes:
                    for spelt in _spellings(name, suffix):
                        command = [spelt if argument == "OUT" else argument for argument in arguments]
                        yield f"{kind} over an input", lambda command=command: _is_refused(command)
        for arguments in _TWO_RESULTS:
            for one, two in (("x", "x"), ("x", "./x"), ("old", "link"), ("old", "hard")):
                command = [a.replace("ONE", one).replace("TWO", two) for a in arguments]
                for suffix in {Path(a).suffix for a in command if a.startswith("old.")}:
                    _old_with_links(suffix)
                yield f"`{arguments[0]}`: two results in one file", lambda command=command: _is_refused(command)


def _gate_option(arguments: list[str]) -> str:
    return arguments[arguments.index("OUT") - 1]


def _files() -> None:
    Path("m.onnx").write_bytes(own_model())
    texts = {"below.toml": TARGET, "t.toml": 'inherit = "below.toml"\n', "times.csv": TIMES,
             "own.toml": 'strategy = "lru"\n', "buffers.csv": BUFFERS}  # fmt: skip
    for name, text in texts.items():
        Path(name).write_text(text, "utf-8")
    made = (
        ["analyze", *_MODEL, "--strategy", "lru", "--events", "-o", "p.json"],
        ["sweep", *_MODEL, "--jobs", "1", "-o", "rows.csv"],
        ["gate", *_MODEL, "--baseline", "b.json", "--update", "--commit", "c", "--record", "h.html"],
    )
    for arguments in made:
        if _run(arguments) != 0:
            raise RuntimeError(f"{' '.join(arguments)} does not work")


def _spellings(name: str, suffix: str) -> Iterator[str]:
    if name.endswith(suffix):
        yield name
        yield f"../{Path.cwd().name}/./{name}"
    for make, stem in ((os.symlink, "link"), (os.link, "hard")):
        path = f"{stem}-to-{name}{suffix}"
        Path(path).unlink(missing_ok=True)
        make(name, path)
        yield path


def _old_with_links(suffix: str) -> None:
    for name in ("old", "link", "hard"):
        Path(name + suffix).unlink(missing_ok=True)
    Path(f"old{suffix}").touch()
    os.symlink(f"old{suffix}", f"link{suffix}")
    os.link(f"old{suffix}", f"hard{suffix}")


def _is_refused(arguments: list[str]) -> bool:
    """Exit code 2, and every file as it was, none more and none less."""
    before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    return _run(arguments) == 2 and {p: p.read_bytes() for p in Path().iterdir() if p.is_file()} == before


def _run(arguments: list[str]) -> int:
    with contextlib.redirect_stdout(Stream()), contextlib.redirect_stderr(Stream()):
        return run(arguments)


def baselines_of_git(folder: Path) -> Iterator[Try]:
    """A gate against a commit whose baseline cannot be read; and two updates at once."""
    folder.mkdir()
    git = _Git(folder / "project")
    with contextlib.chdir(git.folder):
        Path("m.onnx").write_bytes(own_model())
        gate = ["gate", "m.onnx", "--sram", "8KiB", "-q"]
        if _run([*gate, "--update"]) != 0:
            raise RuntimeError("the gate does not work")
        git("add", "-A")
        git("commit", "-q", "-m", "start")
        commit = git("rev-parse", "HEAD")
        git("config", "uploadpack.allowFilter", "true")
        yield "a commit that has the baseline passes", lambda: _run([*gate, "--against", commit]) == 0
        for ref in ("^HEAD", "HEAD^@", "HEAD..HEAD", "--all", "-q", "--output=x", "HEAD HEAD", "@{u}", "absent", ""):
            yield "what names no single commit", lambda ref=ref: _run([*gate, f"--against={ref}"]) == 2
        Path("spillprof-baseline.json").write_text("{}\n", "utf-8")
        git("commit", "-q", "-a", "-m", "later")
        for kept in ("tree:0", "blob:none"):
            yield "a partial clone without its remote", lambda kept=kept: _is_refused_in_clone(git, kept, commit, gate)
        for name in ("^{tree}", ":spillprof-baseline.json", "^{commit}"):
            yield "an object that is lost", lambda name=name: _is_refused_without(git, commit, name, gate)
        for letter in "ab":
            shutil.copy("m.onnx", f"{letter}.onnx")
        for _ in range(20):
            yield "two updates at once keep both entries", _both_are_kept


class _Git:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self("init", "-q")

    def __call__(self, *arguments: str) -> str:
        command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=True)
        return done.stdout.strip()


def _is_refused_in_clone(git: _Git, kept: str, commit: str, gate: list[str]) -> bool:
    clone, away = git.folder.parent / f"clone-{kept[:4]}", git.folder.parent / "away"
    git("clone", "-q", f"--filter={kept}", git.folder.as_uri(), str(clone))
    git.folder.rename(away)
    try:
        with contextlib.chdir(clone):
            return _run([*gate, "--against", commit]) == 2
    finally:
        away.rename(git.folder)


def _is_refused_without(git: _Git, commit: str, name: str, gate: list[str]) -> bool:
    lost = git("rev-parse", commit + name)
    path = git.folder / ".git" / "objects" / lost[:2] / lost[2:]
    content = path.read_bytes()
    path.unlink()
    try:
        return _run([*gate, "--against", commit]) == 2
    finally:
        path.write_bytes(content)


def _both_are_kept() -> bool:
    import json

    baseline = Path("pair.json")
    baseline.unlink(missing_ok=True)
    command = [sys.executable, "-m", "spillprof", "gate", "--sram", "8KiB", "-q", "--baseline", "pair.json", "--update"]
    pair = [subprocess.Popen([*command, f"{name}.onnx"], stdout=subprocess.DEVNULL) for name in "ab"]
    codes = [process.wait() for process in pair]
    entries = json.loads(baseline.read_text("utf-8"))["entries"]
    return codes == [0, 0] and len(entries) == 2
