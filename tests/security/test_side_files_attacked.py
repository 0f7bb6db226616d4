"""A short run over attacked side files with fixed cases; ``benchmarks/side_files.py`` runs thousands."""

import importlib
import os
import sys
from itertools import islice
from pathlib import Path
from random import Random

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the cases are measured as POSIX systems can")


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*os.environ]:
        if name.startswith(("SPILLPROF_", "GITHUB_", "GIT_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")


@pytest.mark.parametrize("seed", range(2))
def test_attacked_side_files_are_answered_or_refused(seed: int, tmp_path: Path) -> None:
    side_files, fuzz = importlib.import_module("side_files"), importlib.import_module("fuzz")
    for what, case in islice(side_files.damaged_cases(Random(seed), tmp_path), 100):
        assert fuzz.broken_rule(case) is None, (what, case.arguments)


def test_every_result_over_every_input_is_refused(tmp_path: Path) -> None:
    refusals = importlib.import_module("fuzzing.refusals")
    wrong = [kind for kind, is_right in refusals.results_over_inputs(tmp_path / "results") if not is_right()]
    assert wrong == []
