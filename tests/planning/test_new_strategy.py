"""The example in CONTRIBUTING.md works: its rule and its row, put where the page says, make a strategy."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent, indent

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SECTION = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## Add a strategy")[2].partition("\n## ")[0]
RULE, ROW = (
    dedent(block) for block in re.findall(r"^ *```(?:python|text)\n(.*?)^ *```$", SECTION, re.MULTILINE | re.DOTALL)
)
MODEL = ROOT / "sample_models" / "residual_cnn.onnx"
SRAM = ("--sram", "4MB")

FOUR_VICTIMS = """
from plans import planned, victims
from test_strategies import FOUR_VICTIMS
print(victims(FOUR_VICTIMS, planned(FOUR_VICTIMS, "mru"), at=4))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package that has the example's rule and row."""
    folder = tmp_path_factory.mktemp("newcomer")
    shutil.copytree(ROOT / "spillprof", folder / "spillprof", ignore=shutil.ignore_patterns("__pycache__"))
    table = folder / "spillprof" / "planning" / "strategies.py"
    text = table.read_text("utf-8")
    for before, new in (
        ("def _interval(", f"{RULE}\n\n"),
        ("    Strategy(\n        name=INTERVAL,", indent(ROW, "    ")),
    ):
        assert text.count(before) == 1
        text = text.replace(before, new + before)
    table.write_text(text, "utf-8")
    return folder


def ran(copy: Path, *arguments: str) -> str:
    """Standard output of the copy's ``python ARGUMENTS``, which must succeed."""
    path = os.pathsep.join(map(str, (copy, HERE, HERE.parent)))
    done = subprocess.run(
        [sys.executable, *arguments], cwd=copy, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_takes_few_lines() -> None:
    assert len((RULE + ROW).splitlines()) <= 15


def test_the_rule_has_its_own_victim(copy: Path) -> None:
    assert ran(copy, "-c", FOUR_VICTIMS) == "['d']\n"


def test_help_lists_and_settings_follow(copy: Path) -> None:
    names = [line.split()[0] for line in ran(copy, "-m", "spillprof", "info", "strategies").splitlines()]
    assert names == ["none", "lru", "size", "belady", "cost", "mru", "interval", "optimal"]
    assert "lru,size,belady,cost,mru,interval" in " ".join(ran(copy, "-m", "spillprof", "sweep", "--help").split())
    (copy / "spillprof.toml").write_text('strategy = ["lru", "mru"]\n')
    rows = ran(copy, "-m", "spillprof", "info", "config", "--config", "spillprof.toml").splitlines()
    assert "lru, mru" in next(row for row in rows if row.startswith("strategy")).replace(",", ", ").replace("  ", " ")


def test_it_makes_a_legal_plan(copy: Path) -> None:
    asked = (str(MODEL), *SRAM, "--strategy", "mru", "--what-if", "off")
    ran(copy, "-m", "spillprof", "analyze", *asked, "--plan", "plan.json", "-o", "profile.json")
    profile = json.loads((copy / "profile.json").read_text("utf-8"))
    by_name = {result["strategy"]: result for result in profile["results"]}
    assert by_name["mru"]["spill_bytes"] > 0
    ran(copy, "-m", "spillprof", "verify", str(MODEL), "plan.json", *SRAM)
