"""The action, the GitLab job and the pre-commit hook, each step run by a real shell; and docs/ci.md."""

import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml
from gate_models import CONFIG, Project, chain
from hatchling.builders.wheel import WheelBuilder

from spillprof.cli import run
from spillprof.cli.config import parse_config
from spillprof.cli.group import COMMANDS

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs" / "ci.md"
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the steps are written for bash")


def _action() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    return loaded


def _step(name: str) -> dict[str, Any]:
    (found,) = (step for step in _action()["runs"]["steps"] if step["name"] == name)
    return dict(found)


class Runner:
    """What a job of the platform gives to the steps of an action."""

    def __init__(self, folder: Path, project: Project) -> None:
        self.project = project
        self.temp = folder / "runner temp"
        self.output, self.summary = folder / "output", folder / "summary.md"
        (self.temp / "spillprof" / "bin").mkdir(parents=True)
        os.symlink(sys.executable, self.temp / "spillprof" / "bin" / "python")

    def run(self, name: str, **inputs: str) -> subprocess.CompletedProcess[str]:
        step = _step(name)
        given = {key: inputs.get(key, "") for key in step["env"]}
        environment = {
            **os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), sysconfig.get_path("purelib")]),
            "RUNNER_TEMP": str(self.temp), "GITHUB_OUTPUT": str(self.output),
            "GITHUB_STEP_SUMMARY": str(self.summary), **given,
        }  # fmt: skip
        command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]]
        return subprocess.run(
            command, cwd=self.project.folder, env=environment, capture_output=True, text=True, check=False
        )

    def outputs(self) -> dict[str, str]:
        """As the platform reads them: NAME=VALUE, or NAME<<END with the lines up to END."""
        lines = iter(self.output.read_text("utf-8").split("\n")[:-1])
        found: dict[str, str] = {}
        for line in lines:
            if "<<" in line.split("=", 1)[0]:
                name, end = line.split("<<", 1)
                value = []
                while (part := next(lines)) != end:
                    value.append(part)
                found[name] = "\n".join(value)
            else:
                name, found[name] = line.split("=", 1)
        return found


@pytest.fixture
def runner(tmp_path: Path, project: Project) -> Runner:
    return Runner(tmp_path, project)


def test_the_action_hands_its_inputs_to_the_shell_as_variables() -> None:
    action = _action()
    assert action["runs"]["using"] == "composite"
    for step in action["runs"]["steps"]:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"]  # what a branch is called must not become a part of the script
    assert {"exit-code", "changed", "comment"} == set(action["outputs"])


def test_the_action_installs_into_an_environment_of_its_own(tmp_path: Path, project: Project) -> None:
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path / "dist"), versions=["standard"])
    runner = Runner(tmp_path, project)
    (runner.temp / "spillprof" / "bin" / "python").unlink()
    step = _step("Install")
    environment = {
        **os.environ, "RUNNER_TEMP": str(runner.temp), "PYTHON": sys.executable, "SOURCE": wheel,
        "PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1",
    }  # fmt: skip
    subprocess.run(["bash", "-e", "-o", "pipefail", "-c", step["run"]], env=environment, check=True)
    done = subprocess.run(
        [runner.temp / "spillprof" / "bin" / "python", "-c", "import spillprof; print(spillprof.__file__)"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )  # fmt: skip
    assert done.stdout.startswith(str(runner.temp))


def test_the_action_passes_what_is_unchanged(runner: Runner) -> None:
    done = runner.run("Gate", REPORTS="reports")
    assert done.returncode == 0, done.stderr
    folder = runner.project.folder / "reports"
    assert runner.outputs() == {"exit-code": "0", "changed": "false", "comment": str(folder / "spillprof.md")}
    assert runner.summary.read_text("utf-8").startswith("<!-- spillprof:gate -->")
    assert sorted(path.suffix for path in folder.iterdir()) == [".json", ".md", ".sarif", ".xml"]


def test_the_action_fails_on_a_skip_connection_and_annotates_it(runner: Runner) -> None:
    chain(runner.project.folder / "models" / "a.onnx", skip=True)
    done = runner.run("Gate", REPORTS="reports", ARGUMENTS="--metrics spill-bytes")
    assert done.returncode == 1, done.stderr
    assert runner.outputs()["exit-code"] == "1"
    assert runner.outputs()["changed"] == "true"
    assert "::error file=pyproject.toml,line=10," in done.stdout
    assert "forces out c0" in runner.summary.read_text("utf-8")


def test_the_action_takes_arguments_of_several_lines(runner: Runner) -> None:
    chain(runner.project.folder / "models" / "a.onnx", skip=True)
    done = runner.run("Gate", REPORTS="reports", ARGUMENTS="\n--metrics spill-bytes\r\n  --exit-zero\t\n-q\n")
    assert done.returncode == 0, done.stderr
    assert runner.outputs()["exit-code"] == "0"
    assert runner.outputs()["changed"] == "true"
    assert "forces out c0" in runner.summary.read_text("utf-8")


@pytest.mark.parametrize(
    "arguments", ["$(touch pwned)", "`touch pwned`", "; touch pwned", "*", "&& touch pwned", "-q\n$(touch pwned)"]
)
def test_the_action_runs_nothing_that_its_arguments_say(runner: Runner, arguments: str) -> None:
    done = runner.run("Gate", REPORTS="reports", ARGUMENTS=arguments)
    assert done.returncode == 2
    assert not (runner.project.folder / "pwned").exists()
    assert arguments.split()[-1].strip(")`") in done.stdout + done.stderr  # as it stands: a star is no list of files
    assert runner.outputs()["exit-code"] == "2"


def test_the_action_writes_reports_to_an_absolute_folder(runner: Runner, tmp_path: Path) -> None:
    folder = tmp_path / "else where" / "reports"
    done = runner.run("Gate", REPORTS=str(folder))
    assert done.returncode == 0, done.stderr
    assert runner.outputs()["comment"] == str(folder / "spillprof.md")
    assert (folder / "spillprof.md").is_file()
    assert not list(runner.project.folder.glob("reports*"))


@pytest.mark.parametrize("name", ["a\nchanged=true\nevil=1", "a\ncomment<<x\nb", "-", "-rf", "$(touch pwned)"])
def test_the_action_sets_no_output_that_a_folder_s_name_says(runner: Runner, name: str) -> None:
    done = runner.run("Gate", REPORTS=name)
    assert done.returncode == 0, done.stderr
    comment = f"{runner.project.folder}/{name}/spillprof.md"
    assert runner.outputs() == {"exit-code": "0", "changed": "false", "comment": comment}
    assert Path(comment).is_file()
    assert not (runner.project.folder / "pwned").exists()


def test_the_action_does_not_take_an_earlier_report_for_its_own(runner: Runner) -> None:
    assert runner.run("Gate", REPORTS="reports").returncode == 0
    assert runner.run("Gate", REPORTS="reports", ARGUMENTS="--no-such-option").returncode == 2
    assert list((runner.project.folder / "reports").iterdir()) == []
    assert runner.outputs()["changed"] == "true"


@pytest.mark.parametrize("branch", ["main\n--upload-pack=touch pwned", "--upload-pack=touch pwned", "$(touch pwned)"])
def test_the_action_fetches_no_branch_that_is_no_branch(runner: Runner, tmp_path: Path, branch: str) -> None:
    runner.project.git("clone", "-q", "--bare", ".", str(tmp_path / "origin.git"))
    runner.project.git("remote", "add", "origin", (tmp_path / "origin.git").as_uri())
    assert runner.run("Fetch the baseline", BRANCH=branch).returncode != 0
    assert runner.run("Gate", REPORTS="reports", BRANCH=branch).returncode == 2
    assert not (runner.project.folder / "pwned").exists()


def test_the_action_says_2_where_nothing_could_be_evaluated(runner: Runner) -> None:
    (runner.project.folder / "pyproject.toml").write_text("[tool.spillprof]\nsram = 'x'\n", "utf-8")
    done = runner.run("Gate", REPORTS="reports")
    assert done.returncode == 2
    assert runner.outputs()["exit-code"] == "2"


def test_the_action_compares_with_the_base_branch(runner: Runner, tmp_path: Path) -> None:
    project = runner.project
    project.git("clone", "-q", "--bare", ".", str(tmp_path / "origin.git"))
    project.git("remote", "add", "origin", (tmp_path / "origin.git").as_uri())
    chain(project.folder / "models" / "a.onnx", skip=True)
    assert run(["gate", "--update", "-q"]) == 0
    project.commit("accepted on this branch alone")
    assert runner.run("Fetch the baseline", BRANCH="main").returncode == 0
    assert runner.run("Gate", REPORTS="reports", BRANCH="main").returncode == 1
    assert runner.run("Gate", REPORTS="reports").returncode == 0


@pytest.mark.parametrize("skip", [False, True])
def test_the_gitlab_job_runs(project: Project, tmp_path: Path, skip: bool) -> None:
    job = yaml.safe_load((ROOT / "docs" / "gitlab-ci.yml").read_text("utf-8"))["spillprof"]
    start = project.git("rev-parse", "HEAD")
    chain(project.folder / "models" / "a.onnx", skip=skip)
    assert run(["gate", "--update", "-q"]) == 0
    (project.folder / "notes").touch()
    project.commit("more")
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "spillprof"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m spillprof "$@"\n', "utf-8")
    command.chmod(0o755)
    environment = {
        **os.environ, "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": start,
    }  # fmt: skip
    script = "\n".join(job["script"])
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=project.folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == int(skip), done.stderr
    assert (project.folder / job["artifacts"]["reports"]["junit"]).is_file()
    assert all((project.folder / path).is_file() for path in job["artifacts"]["paths"])


def test_the_pre_commit_hook_runs(project: Project) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert {"id", "name", "entry", "language"} <= set(hook)
    program, *arguments = shlex.split(hook["entry"])
    assert program == "spillprof"
    assert hook["pass_filenames"] is False
    assert run(arguments) == 0
    chain(project.folder / "models" / "a.onnx", skip=True)
    assert run(arguments) == 1
    touched = ["models/a.onnx", "spillprof-baseline.json", "pyproject.toml", "sub/spillprof.toml"]
    assert all(re.search(hook["files"], path) for path in touched)
    assert not re.search(hook["files"], "src/main.py")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", DOCS.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def test_the_configuration_of_the_page_is_understood() -> None:
    (block,) = _blocks("toml")
    config = parse_config(block, Path("pyproject.toml"))
    assert config.targets["npu-2m"].sram_bytes == 2 * 2**20
    assert config.models[0].budgets.spill_bytes == 24 * 2**20
    assert config.gate == {"max-increase": "1%", "min-increase": "64KiB", "metrics": "spill-bytes,latency"}
    assert CONFIG


def test_the_commands_and_files_of_the_page_are_real(project: Project) -> None:
    for block in _blocks("yaml"):
        assert yaml.safe_load(block)
    for line in "\n".join(_blocks("sh")).splitlines():
        program, *arguments = shlex.split(line)
        assert program in ("spillprof", "git")
        if program == "spillprof":
            assert arguments[0] in COMMANDS
            assert run(arguments) == 0
    assert json.loads((ROOT / "spillprof" / "report" / "gate.schema.json").read_text("utf-8"))
