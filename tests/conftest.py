"""Fixtures for every test."""

from pathlib import Path

import pytest
from corpus_models import ABSENT, CORPUS


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real and hostile models; skips where it is absent."""
    if not CORPUS.is_dir():
        pytest.skip(ABSENT)
    return CORPUS
