"""Real models end to end: each is analysed, or refused with one of our errors."""

from functools import cache
from random import Random

import pytest
from corpus_models import MODELS, graph_of, needs_models

from spillprof.explain.analyze import analyze
from spillprof.explain.options import AnalyzeOptions
from spillprof.ir.errors import SpillprofError
from spillprof.ir.graph import TensorKind
from spillprof.ir.profile import Profile
from spillprof.ir.program import BufferKind
from spillprof.ir.target import Target, load_target
from spillprof.lowering.lower import lower
from spillprof.lowering.options import ConvAlgorithm, Fuse, LoweringOptions, Views, WeightsPolicy
from spillprof.planning.options import Dma, Inputs, PlanningOptions, Release, Start, WriteBack
from spillprof.planning.placements import PLACEMENTS
from spillprof.planning.strategies import STRATEGIES

MIB8 = 8 << 20
MANY_OPERATORS = 3000


@cache
def machine(sram_bytes: int) -> Target:
    return load_target("generic-npu").with_overrides(sram_bytes=sram_bytes)


def check(profile: Profile) -> None:
    assert profile.ideal.latency_s >= 0
    for r in profile.results:
        if not r.feasible:
            assert r.reason
            continue
        assert r.kinds is not None
        k = r.kinds
        parts = (k.capacity_bytes, k.lifetime_bytes, k.fragmentation_bytes, k.oversized_bytes)
        assert min(parts) >= 0
        assert sum(parts) == r.spill_bytes == r.spill_write_bytes + r.spill_read_bytes + r.streamed_bytes
        assert sum(o.spill_write_bytes + o.spill_read_bytes + o.streamed_bytes for o in r.operators) == r.spill_bytes
        assert r.spill_time_s >= 0
        assert r.peak_bytes <= profile.target.sram_bytes
        assert bool(r.streamed_bytes) <= bool(profile.oversized)


@needs_models
@pytest.mark.parametrize("file", MODELS or ["absent"])
def test_every_model_is_analysed_at_8_mib(file: str) -> None:
    profile = analyze(graph_of(file), machine(MIB8), AnalyzeOptions(strategies=("lru", "interval")))
    assert len(profile.results) == 2
    check(profile)


@needs_models
@pytest.mark.parametrize(
    "file", ["mobilenet_v2_int8_qdq_perchannel.onnx", "mobilenet_v2_int8_qoperator.onnx", "resnet50_int8_qdq.onnx"]
)
def test_quantised_networks_hold_bytes_between_their_layers(file: str) -> None:
    """All but the float image at the start and the float result at the end, in 8 bits; and as much for weights."""
    graph = graph_of(file)
    program = lower(graph, machine(MIB8), LoweringOptions())
    wide = [b for b in program.buffers if graph.tensors[b.name].dtype not in ("int8", "uint8")]
    assert {b.kind for b in wide} <= {BufferKind.INPUT, BufferKind.OUTPUT}
    steps = [s for s in program.steps if s.macs]
    assert {s.mac_dtype for s in steps} <= {"int8", "uint8"}
    stored = sum(t.nbytes for t in graph.tensors.values() if t.kind is TensorKind.WEIGHT)
    assert program.weight_bytes <= stored


@needs_models
@pytest.mark.parametrize("file", MODELS or ["absent"])
def test_half_of_the_peak_with_options_from_a_fixed_seed(file: str) -> None:
    rng = Random(file)
    graph = graph_of(file)
    if len(graph.operators) > MANY_OPERATORS:
        pytest.skip("too many operators for a quick test")
    strategy = rng.choice(STRATEGIES)
    options = AnalyzeOptions(
        strategies=(strategy,),
        lowering=LoweringOptions(
            fuse=rng.choice(list(Fuse)),
            inplace=rng.random() < 0.7,
            views=rng.choice(list(Views)),
            fold=rng.random() < 0.8,
            conv=rng.choice(list(ConvAlgorithm)),
            weights=rng.choice([WeightsPolicy.STREAM, WeightsPolicy.CACHED]),
        ),
        planning=PlanningOptions(
            placement=rng.choice(PLACEMENTS),
            inputs=rng.choice(list(Inputs)),
            writeback=rng.choice(list(WriteBack)),
            release=rng.choice(list(Release)),
            dma=rng.choice(list(Dma)),
            start=rng.choice(list(Start)),
            optimize_seconds=1,  # the search is cut short, its plans are checked all the same
        ),
    )
    roomy = analyze(graph, machine(16 << 30), AnalyzeOptions(strategies=("none",), lowering=options.lowering))
    sram = max(roomy.model.peak_live_bytes // 2, 4096)
    refused: SpillprofError | None = None
    try:
        check(analyze(graph, machine(sram), options))
    except SpillprofError as error:
        refused = error
    assert refused is None or (refused.message and refused.hint)
