"""A commit that git cannot read is an error: treated as "no baseline", it would let every regression pass."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from gate_models import Project, chain

from spillprof.cli import run

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def regressed(project: Project, capsys: Capture) -> Project:
    """Model a spills now; the baseline at HEAD says that it does not."""
    chain(project.folder / "models" / "a.onnx", skip=True)
    assert run(["gate", "--against", "HEAD"]) == 1
    capsys.readouterr()
    return project


def _lose(project: Project, name: str) -> None:
    """Delete the object of that name from the repository."""
    sha = project.git("rev-parse", name)
    path = project.folder / ".git" / "objects" / sha[:2] / sha[2:]
    path.chmod(0o644)
    path.unlink()


@pytest.mark.parametrize("lost", ["HEAD^{tree}", "HEAD:spillprof-baseline.json", "HEAD^{commit}"])
def test_a_lost_object_gives_2(regressed: Project, lost: str, capsys: Capture) -> None:
    commit = regressed.git("rev-parse", "HEAD")
    _lose(regressed, lost)
    assert run(["gate", "--against", commit]) == 2
    out, err = capsys.readouterr()
    assert "error: " in err
    assert "hint: " in err
    assert out == ""


@pytest.mark.parametrize("filtered", ["tree:0", "blob:none"])
def test_a_partial_clone_without_its_remote_gives_2(
    regressed: Project, filtered: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """The objects of the commit before are neither here nor to be had."""
    regressed.git("config", "uploadpack.allowFilter", "true")
    for path, message in ((regressed.folder / "pyproject.toml", "later"), (regressed.baseline, "without")):
        path.write_text(path.read_text("utf-8") + "\n", "utf-8")
        regressed.commit(message)
    regressed.git("clone", "-q", f"--filter={filtered}", regressed.folder.as_uri(), str(tmp_path / "partial"))
    away = regressed.folder.rename(tmp_path / "away")
    shutil.copytree(away / "models", tmp_path / "partial" / "models", dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path / "partial")
    assert run(["gate", "--against", "HEAD~2"]) == 2
    assert "cannot read the baseline at 'HEAD~2'" in capsys.readouterr().err


@pytest.mark.parametrize("ref", ["^HEAD", "HEAD^@", "HEAD..HEAD", "HEAD HEAD", "--all", "-q", "HEAD\n", "@{u}"])
def test_what_names_no_single_commit_gives_2(regressed: Project, ref: str, capsys: Capture) -> None:
    assert run(["gate", f"--against={ref}"]) == 2
    assert "error: " in capsys.readouterr().err


def test_a_folder_or_link_in_place_of_the_baseline_gives_2(regressed: Project, capsys: Capture) -> None:
    regressed.baseline.unlink()
    regressed.baseline.mkdir()
    (regressed.baseline / "x").touch()
    regressed.commit("a folder")
    assert run(["gate", "--against", "HEAD"]) == 2
    assert "the baseline is no file at 'HEAD'" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_a_baseline_that_is_a_link_at_the_commit_gives_2(regressed: Project, capsys: Capture) -> None:
    regressed.baseline.rename(regressed.folder / "real.json")
    os.symlink("real.json", regressed.baseline)
    regressed.commit("a link")
    assert run(["gate", "--against", "HEAD"]) == 2
    assert "the baseline is a link at 'HEAD'" in capsys.readouterr().err


def test_without_a_repository_there_is_no_answer(
    regressed: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    shutil.rmtree(regressed.folder / ".git", ignore_errors=True)
    (regressed.folder / ".git").mkdir(exist_ok=True)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    assert run(["gate", "--against", "HEAD"]) == 2
    assert "git cannot read 'HEAD'" in capsys.readouterr().err


def test_a_folder_that_is_not_there_is_not_taken_for_a_missing_git(project: Project, capsys: Capture) -> None:
    assert run(["gate", "--against", "HEAD", "--baseline", "absent/b.json"]) == 2
    assert "there is no folder 'absent'" in capsys.readouterr().err
