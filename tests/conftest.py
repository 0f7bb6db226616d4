"""Fixtures for every test."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real and hostile models; skips where it is absent."""
    path = Path(os.environ.get("SPILLPROF_CORPUS", Path(__file__).parents[2] / "shared" / "corpus"))
    if not path.is_dir():
        pytest.skip(f"no model corpus at {path} (set SPILLPROF_CORPUS)")
    return path
