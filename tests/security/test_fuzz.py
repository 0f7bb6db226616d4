"""A short run of the fuzzer with fixed cases; ``benchmarks/fuzz.py`` runs for any length of time."""

import importlib
import sys
from itertools import islice
from pathlib import Path
from random import Random

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the fuzzer measures itself as POSIX systems can")


@pytest.mark.parametrize("seed", range(2))
def test_damaged_files_are_analysed_or_refused(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    fuzz, models = importlib.import_module("fuzz"), importlib.import_module("fuzzing.models")
    for case in islice(fuzz.cases(Random(seed), tmp_path, models.models_in(None)), 60):
        assert fuzz.broken_rule(case) is None, case.arguments
