"""Figures of this simulator revision, as baselines hold them."""

import json
from pathlib import Path

from gate_models import chain

from spillprof.cli import run
from spillprof.ir.revision import SIMULATOR_REVISION

FIGURES = {7: {"spill_bytes": 65536, "spill_count": 1, "reload_count": 1, "peak_live_bytes": 98304}}


def test_the_same_revision_gives_the_same_figures(clean_folder: Path) -> None:
    chain(clean_folder / "models" / "a.onnx", skip=True)
    assert run(["gate", "models/a.onnx", "--sram", "96KiB", "--update"]) == 0
    (entry,) = json.loads((clean_folder / "spillprof-baseline.json").read_text("utf-8"))["entries"].values()
    totals = {name: entry["totals"][name] for name in FIGURES[SIMULATOR_REVISION]}
    assert totals == FIGURES[SIMULATOR_REVISION], (
        "if this is meant: one more in SIMULATOR_REVISION, and its figures here"
    )
