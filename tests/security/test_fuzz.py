"""A short run of the fuzzer, always the same cases; ``benchmarks/fuzz.py`` runs for as long as one likes."""

import importlib.util
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
    path = Path(__file__).parents[2] / "benchmarks" / "fuzz.py"
    spec = importlib.util.spec_from_file_location("fuzz", path)
    assert spec is not None
    assert spec.loader is not None
    fuzz = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "fuzz", fuzz)
    spec.loader.exec_module(fuzz)
    for case in islice(fuzz.cases(Random(seed), tmp_path, fuzz.models_in(None)), 60):
        assert fuzz.broken_rule(case) is None, case.arguments
