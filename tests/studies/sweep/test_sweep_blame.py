"""Cliffs of real models: blame is checked against whole analyses at both sizes."""

from pathlib import Path

import pytest
from corpus_models import graph_of

from spillprof.explain.analyze import analyze
from spillprof.explain.options import AnalyzeOptions
from spillprof.ir.graph import Graph
from spillprof.ir.result import Result
from spillprof.ir.target import load_target
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.options import PlanningOptions
from spillprof.studies.sweep.blame import blame
from spillprof.studies.sweep.cases import SweepModel, make_study
from spillprof.studies.sweep.curves import cliffs
from spillprof.studies.sweep.grid import Grid
from spillprof.studies.sweep.local import InProcess, Processes

TARGET = load_target("generic-npu")
RANGES = {
    "timm_hrnet_w18_legacy": range(9_400_000 // 64 * 64, 9_800_000, 96_000),
    "densenet121_legacy": range(8_800_000 // 64 * 64, 9_000_000, 48_000),
}


def _result(graph: Graph, sram_bytes: int) -> Result:
    options = AnalyzeOptions(strategies=("lru",))
    return analyze(graph, TARGET.with_overrides(sram_bytes=sram_bytes), options).results[0]


@pytest.mark.parametrize("name", RANGES)
def test_the_blamed_buffer_is_the_one_whose_spill_bytes_rise_most(corpus: Path, name: str) -> None:
    graph = graph_of(f"{name}.onnx")
    source = SweepModel(model=name, graph=graph, dims={})
    study, cases = make_study([source], TARGET, [{}], LoweringOptions(), PlanningOptions())
    run = Grid(cases, [("best-fit", "lru")], {})
    run.at(RANGES[name], InProcess(study), lambda done, total: None)
    found = [c for c in blame(InProcess(study), cases, cliffs(run.rows())) if c.metric == "spill_bytes"]
    assert found
    for cliff in found:
        before, after = _result(graph, cliff.sram_bytes), _result(graph, cliff.larger_sram_bytes)
        assert after.spill_bytes - before.spill_bytes == cliff.larger_value - cliff.value > 0
        smaller = {b.name: b.spill_bytes for b in before.buffers}
        rises = {b.name: b.spill_bytes - smaller.get(b.name, 0) for b in after.buffers}
        assert rises[cliff.buffer or ""] == max(rises.values())
        forcing = {o.step: o for o in after.operators}
        assert cliff.step is not None
        assert forcing[cliff.step].name == cliff.operator
        assert cliff.buffer in forcing[cliff.step].victims


def test_processes_blame_the_same(corpus: Path) -> None:
    name = "densenet121_legacy"
    graph = graph_of(f"{name}.onnx")
    study, cases = make_study(
        [SweepModel(model=name, graph=graph, dims={})], TARGET, [{}], LoweringOptions(), PlanningOptions()
    )
    run = Grid(cases, [("best-fit", "lru")], {})
    run.at(RANGES[name], InProcess(study), lambda done, total: None)
    found = cliffs(run.rows())
    runner = Processes(study, 2)
    try:
        blamed = blame(runner, cases, found)
    finally:
        runner.close()
    assert blamed == blame(InProcess(study), cases, found)
    assert any(cliff.operator for cliff in blamed)
