"""Fixtures for every test."""

import os
from pathlib import Path

import pytest
from corpus_models import ABSENT, CORPUS


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real and hostile models; skips where it is absent."""
    if not CORPUS.is_dir():
        pytest.skip(ABSENT)
    return CORPUS


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, empty; the environment sets no option and no color."""
    monkeypatch.chdir(tmp_path)
    for name in [*os.environ]:
        if name.startswith("SPILLPROF_") or "COLOR" in name:
            monkeypatch.delenv(name)
    return tmp_path
