"""``--conv auto`` is no slower than direct convolution under the conditions in which it simulates."""

from math import inf
from pathlib import Path
from random import Random

import onnx
import pytest
from graphs import MACHINE, graph, lowered
from hypothesis import given, settings
from hypothesis import strategies as st

from spillprof.engine.engine import Engine
from spillprof.engine.run import Run
from spillprof.frontends import read_model
from spillprof.ir.errors import CapacityError
from spillprof.ir.graph import Graph
from spillprof.ir.target import Target, load_target
from spillprof.lowering.fitting import fit
from spillprof.lowering.options import ConvAlgorithm, LoweringOptions
from spillprof.planning.options import PlanningOptions
from spillprof.planning.planner import make_plan
from spillprof.timing.timeline import simulate
from spillprof.verify import verify

SAMPLES = Path(__file__).parents[2] / "sample_models"
LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"
FAST_WINOGRAD = MACHINE.with_overrides(
    macs_per_s={"default": 1e9}, conv_time_factors={"im2col": 0.8, "winograd": 0.5}, shared_workspace=True,
    dram_read_bytes_per_s=1e8, dram_write_bytes_per_s=1e8,
)  # fmt: skip


def run_s(g: Graph, target: Target, conv: ConvAlgorithm) -> float:
    """Seconds of the better of two strategies, transfers on demand; infinite where the model cannot run."""
    options = LoweringOptions(conv=conv)
    best_s = inf
    try:
        fitted = fit(Engine().lowered(Run(graph=g, target=target, lowering=options)), target, options)
    except CapacityError:
        return inf
    for strategy in ("cost", "interval"):
        plan = make_plan(fitted, target, strategy, PlanningOptions())
        assert verify(fitted, plan) == ()
        best_s = min(best_s, simulate(fitted, plan, target).makespan_s)
    return best_s


def random_net(seed: int) -> Graph:
    """Up to ten 3 x 3 and 1 x 1 convolutions of 4 to 16 channels in 16 x 16, some of them beside a skip connection."""
    rng = Random(seed)
    ops, weights, tensors = [], {}, {}
    last, channels = "x", 4
    skips: dict[int, list[str]] = {}
    for i in range(rng.randint(2, 10)):
        kernel, made = rng.choice([1, 3, 3]), rng.choice([4, 8, 16])
        weights[f"w{i}"] = (made, channels, kernel, kernel)
        tensors[f"c{i}"] = (1, made, 16, 16)
        ops.append(f"Conv {last} w{i} -> c{i}")
        last, channels = f"c{i}", made
        if skips.get(made) and rng.random() < 0.5:
            tensors[f"s{i}"] = tensors[last]
            ops.append(f"Add {last} {rng.choice(skips[made])} -> s{i}")
            last = f"s{i}"
        skips.setdefault(made, []).append(last)
    return graph({"x": (1, 4, 16, 16)}, ops, last, weights=weights, tensors=tensors)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**9),
    sram_bytes=st.integers(16 << 10, 200 << 10),
    shared=st.booleans(),
    accumulators=st.sampled_from([0, 4]),
    launch_s=st.sampled_from([0.0, 1e-5]),
)
def test_auto_is_never_slower_than_direct(
    seed: int, sram_bytes: int, shared: bool, accumulators: int, launch_s: float
) -> None:
    target = FAST_WINOGRAD.with_overrides(
        sram_bytes=sram_bytes, shared_workspace=shared, accumulator_bytes_per_output=accumulators,
        launch_overhead_s=launch_s,
    )  # fmt: skip
    g = random_net(seed)
    assert run_s(g, target, ConvAlgorithm.AUTO) <= run_s(g, target, ConvAlgorithm.DIRECT)


@pytest.mark.parametrize("mib", [4, 8, 12, 24, 32])
@pytest.mark.parametrize("name", ["unet", "residual_cnn"])
def test_auto_is_never_slower_than_direct_on_the_samples(name: str, mib: int) -> None:
    g, target = read_model(SAMPLES / f"{name}.onnx"), load_target("generic-npu").with_overrides(sram_bytes=mib << 20)
    assert run_s(g, target, ConvAlgorithm.AUTO) <= run_s(g, target, ConvAlgorithm.DIRECT)


def test_resnet50_runs_directly_where_a_shared_block_would_push_tensors_out_and_faster_where_not() -> None:
    """In 8 MiB a block of half of it makes convolutions faster by 0.2 ms, and the run slower by 0.4 ms."""
    g = read_model(LIGHT / "light_resnet50.onnx")
    direct_s, auto_s = {}, {}
    for mib in (8, 12, 20):
        target = load_target("generic-npu").with_overrides(sram_bytes=mib << 20)
        direct_s[mib], auto_s[mib] = (run_s(g, target, c) for c in (ConvAlgorithm.DIRECT, ConvAlgorithm.AUTO))
    assert auto_s[8] == direct_s[8]
    assert auto_s[12] < 0.95 * direct_s[12]
    assert auto_s[20] < 0.95 * direct_s[20]


ADDED = ["c", *(f"s{i}" for i in range(9)), "y"]
WAITING = graph(
    {"x": (1, 8, 16, 16)},
    [*(f"Conv x v -> a{i}" for i in range(10)), "Conv x w -> b", "Conv b w -> c",
     *(f"Add {ADDED[i]} a{i} -> {ADDED[i + 1]}" for i in range(10))],
    "y",
    weights={"v": (8, 8, 1, 1), "w": (8, 8, 3, 3)},
    tensors=dict.fromkeys([*(f"a{i}" for i in range(10)), "b", *ADDED], (1, 8, 16, 16)),
)  # fmt: skip
"""Ten maps of 8 KiB wait while b and c are made. Winograd needs 32 KiB for either side of b and c, 64 KiB at once."""


@pytest.mark.parametrize(
    ("sram_kib", "bytes_per_s", "algorithm"),
    [(320, 1e8, "winograd"), (136, 1e8, "direct"), (136, 1e11, "winograd")],
    ids=["all fits", "slow transfers", "fast transfers"],
)
def test_what_a_workspace_pushes_out_is_weighed_against_what_it_wins(
    sram_kib: int, bytes_per_s: float, algorithm: str
) -> None:
    """Half of 136 KiB holds the workspace, but beside it 72 KiB do not hold the maps, of which four leave and return.

    That takes 0.65 ms at 0.1 GB/s, and a thousandth at 100. Winograd saves half of twice 0.15 ms.
    """
    target = FAST_WINOGRAD.with_overrides(
        sram_bytes=sram_kib << 10, dram_read_bytes_per_s=bytes_per_s, dram_write_bytes_per_s=bytes_per_s,
        weight_staging_bytes=4096, conv_time_factors={"winograd": 0.5},
    )  # fmt: skip
    steps = lowered(WAITING, target, conv=ConvAlgorithm.AUTO).steps
    assert {s.convolution.algorithm for s in steps[10:12] if s.convolution is not None} == {algorithm}


def test_the_choice_is_the_same_again() -> None:
    target = FAST_WINOGRAD.with_overrides(sram_bytes=96 << 10)
    first, second = (lowered(random_net(7), target, conv=ConvAlgorithm.AUTO) for _ in range(2))
    assert first == second
