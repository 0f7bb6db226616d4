import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from spillprof.cli import run
from spillprof.cli.group import COMMANDS, spillprof
from spillprof.planning.placements import PLACEMENTS
from spillprof.planning.strategies import STRATEGIES

ROOT = Path(__file__).parents[2]
HEAVY = ("numpy", "onnx", "pandas", "plotly", "rich", "highspy", "jinja2", "google.protobuf")


def _context() -> click.Context:
    return click.Context(spillprof, info_name="spillprof")


def _command(name: str) -> click.Command:
    command = spillprof.get_command(_context(), name)
    assert command is not None
    return command


def _imported_by(arguments: list[str]) -> set[str]:
    program = (
        "import sys\nfrom spillprof.cli import run\n"
        f"run({arguments!r})\nprint(*sys.modules, sep='\\n', file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["analyze", "--help"], ["gate", "--help"], ["history", "--help"],
     ["info", "strategies"], ["info", "config"]],
)  # fmt: skip
def test_help_and_names_import_nothing_heavy(arguments: list[str]) -> None:
    assert not _imported_by(arguments) & set(HEAVY)


def test_group_help_imports_no_command() -> None:
    modules = _imported_by(["--help"])
    assert not {f"spillprof.cli.{name}" for name in COMMANDS} & modules
    assert not {
        m for m in modules if m.startswith(("spillprof.planning", "spillprof.ir.program", "spillprof.lowering"))
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_every_listed_command_exists_under_its_name(name: str) -> None:
    assert _command(name).name == name


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_help_and_an_environment_variable(name: str) -> None:
    for parameter in _command(name).params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
            assert str(parameter.envvar).startswith("SPILLPROF_"), parameter.name


def _examples() -> list[tuple[str, ...]]:
    """The examples of each command, which may build on one another."""
    found = []
    for name in COMMANDS:
        lines = re.findall(r"^  (spillprof .*)$", _command(name).epilog or "", re.MULTILINE)
        found.append(tuple(lines))
    return found


@pytest.mark.parametrize("lines", _examples(), ids=lambda lines: lines[0].split()[1])
def test_the_examples_of_the_help_run(
    lines: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 <= len(lines) <= 3
    shutil.copytree(ROOT / "sample_models", tmp_path / "sample_models")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPILLPROF_OPTIMIZE_SECONDS", "1")
    monkeypatch.setenv("SPILLPROF_WHAT_IF", "off")
    for line in lines:
        assert run(shlex.split(line)[1:]) == 0, capsys.readouterr().err
        assert capsys.readouterr().out


@pytest.mark.parametrize(("topic", "names"), [("strategies", ("none", *STRATEGIES)), ("placements", PLACEMENTS)])
def test_info_explains_every_name_that_options_accept(
    topic: str, names: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["info", topic]) == 0
    rows = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows] == list(names)
    assert all(len(row) == 2 for row in rows)


@pytest.mark.parametrize(
    ("words", "incomplete", "completions"),
    [
        ("spillprof", "an", ["analyze"]),
        ("spillprof analyze m.onnx --strategy", "bel", ["belady"]),
        ("spillprof analyze m.onnx --strategy", "lru,int", ["lru,interval"]),
        ("spillprof analyze m.onnx --placement", "best", ["best-fit"]),
        ("spillprof inspect m.onnx --target", "generic", ["generic-npu"]),
        ("spillprof gate --strategy", "int", ["interval"]),
        ("spillprof gate --metrics", "latency,en", ["latency,energy"]),
    ],
)
def test_the_shell_completes_names(
    words: str,
    incomplete: str,
    completions: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("_SPILLPROF_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"{words} {incomplete}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split())))
    assert run([]) == 0
    assert [line.partition(",")[2] for line in capsys.readouterr().out.splitlines()] == completions


def test_the_command_line_reference_is_current() -> None:
    make_cli = runpy.run_path(str(ROOT / "docs" / "make_cli.py"))
    assert (ROOT / "docs" / "cli.md").read_text("utf-8") == make_cli["render"](), "run: python docs/make_cli.py"
