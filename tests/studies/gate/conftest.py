"""A project for each test of the gate, in a folder of its own."""

import os
from pathlib import Path

import pytest
from gate_models import Project


@pytest.fixture
def clean_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, empty; no setting in the environment."""
    for name in os.environ:
        if name.startswith(("SPILLPROF_", "GITHUB_", "GIT_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_COLOR", "1")
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def project(clean_folder: Path, capsys: pytest.CaptureFixture[str]) -> Project:
    made = Project(clean_folder)
    capsys.readouterr()
    return made
