"""From a graph to a Profile, on the sample models and small literal graphs."""

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graphs import MACHINE, graph
from hypothesis import given, settings
from hypothesis import strategies as st

from spillprof.engine.engine import Engine
from spillprof.explain.analyze import analyze
from spillprof.explain.options import AnalyzeOptions, run_of
from spillprof.explain.plan_files import check_plan, plan_file
from spillprof.frontends import read_model
from spillprof.ir.errors import CapacityError, UsageError
from spillprof.ir.graph import Graph
from spillprof.ir.profile import Profile
from spillprof.ir.result import Result
from spillprof.ir.target import Target, load_target
from spillprof.lowering.lower import lower
from spillprof.lowering.options import LoweringOptions, Oversized, WeightsPolicy
from spillprof.planning.options import Dma, Inputs, PlanningOptions, Release, Start, WriteBack
from spillprof.planning.strategies import STRATEGIES
from spillprof.timing.compute import step_times_s

SAMPLES = Path(__file__).parents[2] / "sample_models"
TIGHT = {
    "residual_cnn": 30 << 20,
    "three_branch": 1500 << 20,
    "three_branch, oversized": 600 << 20,
    "transformer_blocks": 1_250_000,
    "transformer_blocks, oversized": 600_000,
    "unet": 12 << 20,
}
"""SRAM in which each sample spills; with "oversized", operators are tiled through DRAM too."""


@cache
def sample(case: str) -> Graph:
    return read_model(SAMPLES / f"{case.partition(',')[0]}.onnx")


@cache
def machine(sram_bytes: int) -> Target:
    return load_target("generic-npu").with_overrides(sram_bytes=sram_bytes)


@cache
def tight(case: str) -> Profile:
    return analyze(sample(case), machine(TIGHT[case]), AnalyzeOptions())


def test_an_output_moves_what_it_has_not_what_the_alignment_makes_of_it() -> None:
    # 2,050 floats each: stored in three pieces of 4,096 B, written as 8,200 B.
    g = graph({"x": (2050,)}, ["Relu x -> y"], "y", tensors={"y": (2050,)})
    profile = analyze(g, MACHINE.with_overrides(alignment_bytes=4096), AnalyzeOptions())
    assert profile.ideal.compulsory_write_bytes == profile.ideal.compulsory_read_bytes == 8200
    assert {buffer.size_bytes for buffer in profile.buffers} == {12288}


def total_bytes(profile: Profile, result: Result, direction: str) -> int:
    """DRAM bytes of the run in one direction, from its events and the weights that its steps stream."""
    kinds = {"read": ("fetch", "reload", "stream-in"), "written": ("write-back", "drain", "stream-out")}[direction]
    return sum(e.size_bytes for e in result.events if e.kind in kinds)


def streamed_weights(case: str) -> int:
    program = lower(sample(case), machine(TIGHT[case]), LoweringOptions())
    return sum(step.weight_stream_bytes for step in program.steps)


# --- what must hold for every result


@pytest.mark.parametrize("case", TIGHT)
def test_the_sample_spills_and_its_figures_agree(case: str) -> None:
    profile = tight(case)
    assert any(not o.fits for o in profile.oversized) == ("oversized" in case or case == "unet")
    assert [r.strategy for r in profile.results] == list(STRATEGIES)
    for r in profile.results:
        assert r.feasible
        assert r.spill_bytes == r.spill_write_bytes + r.spill_read_bytes + r.streamed_bytes > 0
        assert r.kinds is not None
        k = r.kinds
        assert k.capacity_bytes + k.lifetime_bytes + k.fragmentation_bytes + k.oversized_bytes == r.spill_bytes
        assert sum(o.spill_write_bytes + o.spill_read_bytes + o.streamed_bytes for o in r.operators) == r.spill_bytes
        assert sum(b.spill_bytes for b in r.buffers) == r.spill_bytes
        assert sum(b.spill_count for b in r.buffers) == r.spill_count >= r.clean_eviction_count
        assert r.peak_bytes == max(r.in_use_bytes) <= TIGHT[case]
        assert len(r.in_use_bytes) == profile.model.steps
        happened = Counter(e.kind for e in r.events)
        assert happened["reload"] == r.reload_count
        assert happened["move"] == r.compaction_count
        compulsory = profile.ideal.compulsory_read_bytes + profile.ideal.compulsory_write_bytes
        moved = total_bytes(profile, r, "read") + total_bytes(profile, r, "written") + streamed_weights(case)
        assert moved == compulsory + r.spill_bytes


@pytest.mark.parametrize("case", TIGHT)
def test_nothing_is_faster_than_the_ideal_nor_than_its_parts(case: str) -> None:
    profile, target = tight(case), machine(TIGHT[case])
    compute_s = float(step_times_s(lower(sample(case), target, LoweringOptions()), target).sum())
    assert profile.ideal.latency_s >= compute_s * (1 - 1e-12)
    for r in profile.results:
        read = total_bytes(profile, r, "read") + streamed_weights(case)
        written = total_bytes(profile, r, "written")
        least_s = max(compute_s, read / target.dram_read_bytes_per_s, written / target.dram_write_bytes_per_s)
        assert r.latency_s >= max(least_s * (1 - 1e-12), profile.ideal.latency_s)
        assert r.spill_time_s == r.latency_s - profile.ideal.latency_s >= 0
        assert r.hidden_share == pytest.approx(1 - r.spill_time_s / r.serial_cost_s)


@pytest.mark.parametrize("case", TIGHT)
def test_energy_adds_up(case: str) -> None:
    target = machine(TIGHT[case]).with_overrides(
        dram_read_j_per_byte=7e-9, dram_write_j_per_byte=11e-9, sram_j_per_byte=1e-9, mac_j=3e-12
    )
    profile = analyze(sample(case), target, AnalyzeOptions(strategies=("lru", "interval")))
    program = lower(sample(case), target, LoweringOptions())
    macs, touched = sum(s.macs for s in program.steps), sum(s.touched_bytes for s in program.steps)
    for r in profile.results:
        read = total_bytes(profile, r, "read") + streamed_weights(case)
        written = total_bytes(profile, r, "written")
        expected = read * 7e-9 + written * 11e-9 + (touched + read + written + 2 * r.compaction_bytes) * 1e-9
        assert r.energy_j == pytest.approx(expected + macs * 3e-12)
        assert r.energy_j > profile.ideal.energy_j


@pytest.mark.parametrize("case", TIGHT)
def test_a_large_memory_spills_nothing_and_costs_no_time(case: str) -> None:
    profile = analyze(sample(case), machine(8 << 30), AnalyzeOptions(strategies=("none", *STRATEGIES)))
    assert profile.oversized == ()
    for r in profile.results:
        assert (r.spill_bytes, r.spill_count, r.spill_time_s, r.hidden_share) == (0, 0, 0.0, None)
        assert r.latency_s == profile.ideal.latency_s
        assert (r.operators == ()) or all(o.cause is None for o in r.operators)
        assert r.peak_bytes == profile.ideal.peak_bytes


@pytest.mark.parametrize("case", TIGHT)
def test_the_smallest_sram_streams_nothing_and_one_unit_less_does(case: str) -> None:
    model = tight(case).model
    smallest, unit = model.min_sram_bytes, machine(1 << 20).alignment_bytes
    only = AnalyzeOptions(strategies=("none",))
    assert analyze(sample(case), machine(smallest), only).oversized == ()
    assert analyze(sample(case), machine(smallest - unit), only).oversized != ()


@pytest.mark.parametrize("case", TIGHT)
def test_prefetch_is_never_slower_than_demand_and_moves_the_same_bytes(case: str) -> None:
    on_demand = analyze(sample(case), machine(TIGHT[case]), AnalyzeOptions(planning=PlanningOptions(dma=Dma.DEMAND)))
    for early, late in zip(tight(case).results, on_demand.results, strict=True):
        assert early.latency_s <= late.latency_s
        assert early.spill_bytes == late.spill_bytes
        if early.strategy != "optimal":  # of equally good plans the fastest is shown, which need not be the same one
            assert early.kinds == late.kinds


# --- the same input gives the same bytes


SCRIPT = """
import hashlib, json, sys
from test_pipeline import tight
print(hashlib.sha256(json.dumps(tight(sys.argv[1]).to_json(events=True)).encode()).hexdigest())
"""


@pytest.mark.parametrize("case", ["unet", "three_branch, oversized", "transformer_blocks"])
def test_json_is_the_same_byte_for_byte_in_any_process(case: str) -> None:
    first = json.dumps(tight(case).to_json(events=True))
    tight.cache_clear()
    assert json.dumps(tight(case).to_json(events=True)) == first
    digest = hashlib.sha256(first.encode()).hexdigest()
    environment = {
        **os.environ,
        "PYTHONHASHSEED": "77",
        "PYTHONPATH": os.pathsep.join(map(str, Path(__file__).parents[:2])),
    }
    command = [sys.executable, "-c", SCRIPT, case]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=120)
    assert run.stdout.strip() == digest


# --- plans as files


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("case", ["unet", "three_branch, oversized", "transformer_blocks, oversized"])
def test_a_plan_written_and_checked_gives_the_same_result(case: str, strategy: str) -> None:
    target, options = machine(TIGHT[case]), AnalyzeOptions(strategies=(strategy,))
    data = json.loads(json.dumps(plan_file(Engine(), run_of(sample(case), target, options), strategy)))
    checked = check_plan(Engine(), run_of(sample(case), target, options), data)
    assert checked.violations == ()
    (own,) = analyze(sample(case), target, options).results
    assert checked.result == replace(own, oscillations=())


@pytest.mark.parametrize(
    "planning",
    [
        PlanningOptions(inputs=Inputs.RESIDENT),
        PlanningOptions(writeback=WriteBack.ALWAYS, release=Release.END),
        PlanningOptions(dma=Dma.DEMAND, placement="size-classes"),
    ],
)
@pytest.mark.parametrize("weights", [WeightsPolicy.STREAM, WeightsPolicy.CACHED])
def test_a_plan_survives_the_file_under_other_options(planning: PlanningOptions, weights: WeightsPolicy) -> None:
    options = AnalyzeOptions(strategies=("belady",), planning=planning, lowering=LoweringOptions(weights=weights))
    target = machine(20 << 20)
    engine, run = Engine(), run_of(sample("unet"), target, options)
    checked = check_plan(engine, run, plan_file(engine, run, "belady"))
    assert checked.violations == ()
    assert checked.result == replace(analyze(sample("unet"), target, options).results[0], oscillations=())


def test_a_plan_of_a_smaller_memory_is_refused_where_it_was_tampered_with() -> None:
    engine, run = Engine(), run_of(sample("unet"), machine(TIGHT["unet"]), AnalyzeOptions())
    data = plan_file(engine, run, "lru")
    reloads = [t for t in data["transfers"] if t["kind"] == "reload"]
    data["transfers"].remove(reloads[0])
    checked = check_plan(engine, run, data)
    assert checked.violations
    assert checked.result is None


# --- strategies that cannot, and requests that cannot


TWO_INPUTS = graph(
    {"x": (100,), "z": (100,)}, ["Softmax x -> a", "Add a z -> y"], outputs="y", tensors={"a": (100,), "y": (100,)}
)
"""x, z, a and y are 400 bytes each. The first step needs x and a, the second a, z and y: 1200 bytes (800 in place)."""


def small(sram_bytes: int, *strategies: str, **planning: Any) -> Profile:
    options = AnalyzeOptions(
        strategies=strategies, planning=PlanningOptions(**planning), lowering=LoweringOptions(inplace=False)
    )
    return analyze(TWO_INPUTS, MACHINE.with_overrides(sram_bytes=sram_bytes), options)


def test_a_strategy_without_a_plan_is_a_result_with_a_reason() -> None:
    # Resident, x and z take 800: with a and y there is no way in 1500; on demand there is.
    profile = small(1500, "none", "lru", "interval", inputs=Inputs.RESIDENT)
    assert [(r.strategy, r.feasible) for r in profile.results] == [
        ("none", True), ("lru", False), ("interval", False),
    ]  # fmt: skip
    for r in profile.results[1:]:
        assert r.reason == "operator 'y' cannot fit even after spilling: 1.56 KiB (1,600 B) are needed at once"
        assert (r.spill_bytes, r.latency_s) == (0, 0.0)
    assert profile.suggestions == ()
    json.dumps(profile.to_json(events=True))
    assert profile.model.min_sram_bytes == 1600  # what stays counts; on demand it is 1200
    assert small(1600, "lru", inputs=Inputs.RESIDENT).results[0].feasible
    assert small(1600, "lru").model.min_sram_bytes == 1200


def test_a_cold_run_says_which_of_its_spill_bytes_infinite_memory_would_load_too() -> None:
    # v (400) and x (40) do not fit into 300 beside the product: v is tiled, and read once in a cold run anyway.
    g = graph(
        {"x": (1, 10)}, ["MatMul x v -> a", "Softmax a -> y"], outputs="y",
        tensors={"a": (1, 10), "y": (1, 10)}, weights={"v": (10, 10)},
    )  # fmt: skip
    said = {}
    for start in Start:
        options = AnalyzeOptions(
            strategies=("lru",), planning=PlanningOptions(start=start),
            lowering=LoweringOptions(weights=WeightsPolicy.CACHED),
        )  # fmt: skip
        profile = analyze(g, MACHINE.with_overrides(sram_bytes=300), options)
        assert profile.results[0].streamed_bytes == 400
        said[start] = [note for note in profile.model.notes if "cold" in note]
    assert said[Start.STEADY] == []
    assert said[Start.COLD] == [
        "400 B of cached weights are tiled through DRAM: they count as spilled, although infinite SRAM would load "
        "them once in a cold run too"
    ]


def test_no_plan_is_possible() -> None:
    profile = small(1500, *STRATEGIES, inputs=Inputs.RESIDENT)
    assert not any(r.feasible for r in profile.results)
    assert profile.ideal.latency_s > 0
    assert all(r.feasible for r in small(1600, *STRATEGIES, inputs=Inputs.RESIDENT).results)


def test_an_oversized_operator_is_an_error_on_request() -> None:
    options = AnalyzeOptions(lowering=LoweringOptions(oversized=Oversized.ERROR, inplace=False))
    with pytest.raises(CapacityError, match="operator 1 needs 1,200 B on-chip at once, SRAM is 1,199 B"):
        analyze(TWO_INPUTS, MACHINE.with_overrides(sram_bytes=1199), options)
    assert analyze(TWO_INPUTS, MACHINE.with_overrides(sram_bytes=1200), options).oversized == ()


def test_an_unknown_strategy_is_refused_before_anything_runs() -> None:
    with pytest.raises(UsageError, match="unknown strategy 'mru'"):
        small(1500, "lru", "mru")


# --- slots are simulations


def test_a_pinned_oscillation_does_what_it_says() -> None:
    case, sram_bytes = "residual_cnn", 3 << 20
    profile = analyze(sample(case), machine(sram_bytes), AnalyzeOptions(strategies=("lru", "interval")))
    strategy, tried = next((r.strategy, o) for r in profile.results for o in r.oscillations if o.pinned_latency_s)
    options = AnalyzeOptions(strategies=(strategy,), lowering=LoweringOptions(pin=(tried.buffer,)))
    (pinned,) = analyze(sample(case), machine(sram_bytes), options).results
    assert (pinned.spill_bytes, pinned.latency_s) == (tried.pinned_spill_bytes, tried.pinned_latency_s)
    assert pinned.energy_j == tried.pinned_energy_j
    assert tried.buffer not in {b.name for b in pinned.buffers}


def test_oscillations_are_the_buffers_that_left_and_came_back_three_times() -> None:
    for r in tight("residual_cnn").results:
        times = Counter(a.buffer for a in r.arcs if a.reloaded)
        assert {o.buffer: o.spill_count for o in r.oscillations} == {b: n for b, n in times.items() if n >= 3}
        assert [o.spill_bytes for o in r.oscillations] == sorted((o.spill_bytes for o in r.oscillations), reverse=True)


# --- random graphs


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    share=st.sampled_from([0.3, 0.5, 0.7, 0.9, 1.1]),
    weights=st.sampled_from([WeightsPolicy.STREAM, WeightsPolicy.CACHED]),
    planning=st.builds(
        PlanningOptions,
        inputs=st.sampled_from(Inputs),
        writeback=st.sampled_from(WriteBack),
        release=st.sampled_from(Release),
        dma=st.sampled_from(Dma),
    ),
)
def test_random_graphs_are_analysed_or_refused(
    seed: int, share: float, weights: WeightsPolicy, planning: PlanningOptions
) -> None:
    rng = np.random.default_rng(seed)
    names = ["x"]
    tensors, kept, ops = {}, {}, []
    shape = (64,)
    for i in range(int(rng.integers(1, 14))):
        name = f"t{i}"
        a, b = (names[int(rng.integers(max(0, len(names) - 5), len(names)))] for _ in range(2))
        kind = rng.choice(["Softmax", "Add", "Weighted"])
        if kind == "Weighted":
            kept[f"w{i}"] = shape
            ops.append(f"Mul {a} w{i} -> {name}")
        else:
            ops.append(f"Softmax {a} -> {name}" if kind == "Softmax" else f"Add {a} {b} -> {name}")
        tensors[name] = shape
        names.append(name)
    read = {word for op in ops for word in op.split(" -> ")[0].split()[1:]}
    outputs = " ".join(n for n in names[1:] if n not in read)
    g = graph({"x": shape}, ops, outputs=outputs, tensors=tensors, weights=kept)
    target = MACHINE.with_overrides(sram_bytes=int(256 * 6 * share))
    options = AnalyzeOptions(planning=planning, lowering=LoweringOptions(weights=weights))
    try:
        profile = analyze(g, target, options)
    except CapacityError:
        return
    for r in profile.results:
        if r.feasible:
            assert r.latency_s >= profile.ideal.latency_s
            assert r.peak_bytes <= target.sram_bytes
            assert r.kinds is not None
            k = r.kinds
            assert k.capacity_bytes + k.lifetime_bytes + k.fragmentation_bytes + k.oversized_bytes == r.spill_bytes
        else:
            assert planning.inputs is Inputs.RESIDENT
