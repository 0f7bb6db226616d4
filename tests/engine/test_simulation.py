"""Totals of a point are those that the whole analysis finds."""

from dataclasses import replace
from pathlib import Path

import pytest

from spillprof.engine.simulation import Points, Totals, lowering_key, on_machine, prepare, sram_limits
from spillprof.explain.options import AnalyzeOptions
from spillprof.explain.pipeline import analyze
from spillprof.frontends import read_model
from spillprof.ir.graph import Graph
from spillprof.ir.target import Target, load_target
from spillprof.lowering.lower import lower
from spillprof.lowering.options import ConvAlgorithm, LoweringOptions, WeightsPolicy
from spillprof.planning.options import Dma, PlanningOptions
from spillprof.planning.strategies import STRATEGIES

SAMPLES = Path(__file__).parents[2] / "sample_models"
TARGET = load_target("generic-npu")


@pytest.fixture(scope="module")
def unet() -> Graph:
    return read_model(str(SAMPLES / "unet.onnx"))


@pytest.mark.parametrize("dma", list(Dma))
@pytest.mark.parametrize("sram_bytes", [1 << 18, 1 << 20, 12 << 20])
def test_totals_are_those_of_the_analysis(unet: Graph, sram_bytes: int, dma: Dma) -> None:
    target = TARGET.with_overrides(sram_bytes=sram_bytes)
    options = AnalyzeOptions(
        strategies=("none", *STRATEGIES),
        lowering=LoweringOptions(weights=WeightsPolicy.CACHED),
        planning=PlanningOptions(dma=dma),
    )
    machine = on_machine(prepare(unet, target, options.lowering), target, options.planning)
    profile = analyze(unet, target, options)
    assert profile.ideal.latency_s == min([machine.ideal_s, *(r.latency_s for r in profile.results)])
    points = Points(machine, options.planning)
    for result in profile.results:
        totals = points.totals(result.strategy, "best-fit")
        assert totals == Totals(**{name: getattr(result, name) for name in Totals.__dataclass_fields__})


def test_limits_are_where_tiling_and_then_spilling_end() -> None:
    branches = read_model(str(SAMPLES / "three_branch.onnx"))
    prepared = prepare(branches, TARGET, LoweringOptions())
    smallest, most = sram_limits(prepared, TARGET, PlanningOptions())

    def at(sram_bytes: int) -> Totals:
        machine = on_machine(prepared, TARGET.with_overrides(sram_bytes=sram_bytes), PlanningOptions())
        return Points(machine, PlanningOptions()).totals("interval", "best-fit")

    assert at(smallest).streamed_bytes == 0
    assert at(smallest - TARGET.alignment_bytes).streamed_bytes > 0
    assert at(smallest).spill_bytes > 0
    assert at(most).spill_bytes == 0


@pytest.mark.parametrize("conv", list(ConvAlgorithm))
def test_targets_with_one_lowering_key_share_a_program(unet: Graph, conv: ConvAlgorithm) -> None:
    options = LoweringOptions(conv=conv)
    others = [replace(TARGET, sram_bytes=1 << 18), replace(TARGET, dram_read_bytes_per_s=1e9, weight_staging_bytes=64),
              replace(TARGET, alignment_bytes=256), replace(TARGET, channel_align=16)]  # fmt: skip
    programs = [prepare(unet, target, options).program for target in (TARGET, *others)]
    keys = [lowering_key(target, options) for target in (TARGET, *others)]
    for key, program in zip(keys, programs, strict=True):
        assert (key == keys[0]) <= (program == programs[0])
    cuts = conv in (ConvAlgorithm.IM2COL, ConvAlgorithm.AUTO)
    assert (keys[2] == keys[0]) is not cuts
    assert keys[3] != keys[0] != keys[4]


def test_an_sram_cut_in_blocks_has_a_program_of_its_own(unet: Graph) -> None:
    options = LoweringOptions(conv=ConvAlgorithm.IM2COL)
    small: Target = replace(TARGET, sram_bytes=1 << 18)
    assert prepare(unet, small, options).program != prepare(unet, TARGET, options).program
    assert lowering_key(small, options) != lowering_key(TARGET, options)


def test_an_ideal_is_shared_only_where_as_much_is_reserved(unet: Graph) -> None:
    prepared, options = prepare(unet, TARGET, LoweringOptions()), PlanningOptions()
    sizes = (1 << 20, 1 << 26, 1 << 27)
    small, large, larger = (on_machine(prepared, TARGET.with_overrides(sram_bytes=n), options) for n in sizes)
    assert large.ideal.program.reservations == larger.ideal.program.reservations != small.ideal.program.reservations
    for machine in (small, larger):
        again = on_machine(prepared, machine.target, options, large.ideal)
        assert again.ideal_s == machine.ideal_s
        assert (again.ideal is large.ideal) is (machine is larger)


def test_the_same_model_is_lowered_once_for_equal_keys(unet: Graph) -> None:
    faster = replace(TARGET, dram_read_bytes_per_s=1e9)
    first = prepare(unet, TARGET, LoweringOptions())
    assert prepare(unet, faster, LoweringOptions()) is first
    assert prepare(unet, TARGET, LoweringOptions(act_dtype="int8")) is not first
    assert prepare(replace(unet), TARGET, LoweringOptions()) is not first


class _Watched:
    """A target that remembers which of its fields were asked for."""

    def __init__(self, target: Target) -> None:
        self.target, self.read = target, set[str]()

    def __getattr__(self, name: str) -> object:
        method = getattr(type(self.target), name)
        if callable(method):
            return method.__get__(self)
        self.read.add(name)
        return getattr(self.target, name)


@pytest.mark.parametrize("conv", list(ConvAlgorithm))
def test_lowering_reads_nothing_of_the_target_that_its_key_leaves_out(unet: Graph, conv: ConvAlgorithm) -> None:
    options, lowers, asks = LoweringOptions(conv=conv), _Watched(TARGET), _Watched(TARGET)
    lower(unet, lowers, options)  # type: ignore[arg-type]
    lowering_key(asks, options)  # type: ignore[arg-type]
    assert lowers.read
    assert lowers.read <= asks.read
