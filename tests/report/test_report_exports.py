"""Traces, flame graphs and side-cars follow their formats' rules and agree with the profile."""

import json
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from corpus_models import graph_of
from profiles import make_profile, without_spills
from trace_rules import check_trace

from spillprof.explain.analyze import analyze
from spillprof.explain.options import AnalyzeOptions
from spillprof.frontends import read_model
from spillprof.frontends.minimalloc import read_minimalloc
from spillprof.ir.errors import ProfileError
from spillprof.ir.profile import Profile
from spillprof.ir.profile_facts import StepFact
from spillprof.ir.result import Event, Residency, Result, RunTimes
from spillprof.ir.target import load_target
from spillprof.lowering.options import LoweringOptions, WeightsPolicy
from spillprof.report import packing
from spillprof.report.exports import chrome_trace, netron, speedscope, tables

SAMPLES = Path(__file__).parents[2] / "sample_models"
MACHINES: dict[str, dict[str, Any]] = {
    "one core": {},
    "two cores, three channels each way": {"cores": 2, "dma_read_channels": 3, "dma_write_channels": 3},
    "shared channels": {"dma_shared_channels": 2, "dram_bus_bytes_per_s": 70e9, "background_bytes_per_s": 5e9},
}


@pytest.fixture(scope="module", params=MACHINES)
def unet(request: pytest.FixtureRequest) -> Profile:
    target = load_target("generic-npu").with_overrides(sram_bytes=12 << 20, **MACHINES[request.param])
    graph = read_model(SAMPLES / "unet.onnx")
    return analyze(graph, target, AnalyzeOptions(strategies=("lru", "belady")), command="spillprof analyze")


@pytest.fixture(scope="module")
def residual() -> Profile:
    target = load_target("generic-npu").with_overrides(sram_bytes=32 << 20)
    return analyze(read_model(SAMPLES / "residual_cnn.onnx"), target, AnalyzeOptions(strategies=("interval",)))


def trace_of(profile: Profile) -> list[dict[str, Any]]:
    document = json.loads(chrome_trace.render(profile))
    check_trace(document)
    return document["traceEvents"]


def spilling() -> Profile:
    """Two steps: the first writes x, which leaves for DRAM and comes back for the second; y stays."""
    brief = Result(
        strategy="lru", feasible=True, spill_bytes=8, spill_write_bytes=4, spill_read_bytes=4, latency_s=60e-6,
        in_use_bytes=(8, 6),
        arcs=(replace(make_profile().results[0].arcs[0], buffer="x", last_use_step=0, evict_step=1, needed_step=1,
                      written=True, reloaded=True),),
        events=(
            Event(kind="reload", buffer="x", size_bytes=4, step=1, needed_step=1, address=4, start_s=30e-6,
                  end_s=40e-6, issued_s=25e-6),
            Event(kind="write-back", buffer="x", size_bytes=4, step=1, needed_step=1, address=0, start_s=10e-6,
                  end_s=20e-6, issued_s=10e-6),
        ),
        residencies=(
            Residency(buffer="x", kind="activation", start_step=1 / 3, end_step=1.0, address=0, size_bytes=4,
                      start_s=0.0, end_s=20e-6),
            Residency(buffer="x", kind="activation", start_step=1.0, end_step=5 / 3, address=4, size_bytes=4,
                      start_s=30e-6, end_s=60e-6),
            Residency(buffer="y", kind="output", start_step=1 / 3, end_step=2.0, address=8, size_bytes=2,
                      start_s=0.0, end_s=60e-6),
        ),
        times=RunTimes(
            step_start_s=(0.0, 40e-6), step_end_s=(10e-6, 60e-6), step_core=(0, 0), stall_s=(0.0, 30e-6),
            stall_event=(-1, 0), bus_time_s=(0.0, 10e-6, 20e-6, 30e-6, 40e-6),
            bus_read_bytes_per_s=(0.0, 0.0, 0.0, 30e9, 0.0), bus_write_bytes_per_s=(0.0, 60e9, 0.0, 0.0, 0.0),
            bus_background_bytes_per_s=(0.0,) * 5,
        ),
    )  # fmt: skip
    steps = (StepFact(name="a/b/make", op_type="Conv"), StepFact(name="a/b/use", op_type="Add"))
    return replace(make_profile(), steps=steps, live_bytes=(6, 6), results=(brief,))


def test_trace_of_one_spill_reads_as_it_happened() -> None:
    events = trace_of(spilling())
    drawn = [(e["name"], e["ts"], e["dur"]) for e in events if e["ph"] == "B"]  # the check has put the lengths in
    assert drawn == [
        ("a/b/make", 0, 10),
        ("stall: reload x", 10, 30),
        ("write-back x", 10, 10),
        ("reload x", 30, 10),
        ("a/b/use", 40, 20),
    ]
    assert [(e["ph"], e["ts"]) for e in events if e["ph"] in "stf"] == [("s", 15), ("t", 35), ("f", 50)]
    x = [(e["ph"], e["id2"]["local"], e["ts"]) for e in events if e["ph"] in "be" and e["name"] == "x"]
    assert x == [("b", "0x1", 0), ("e", "0x1", 20), ("b", "0x1", 30), ("e", "0x1", 60)]
    read = [(e["ts"], e["args"]["% of bandwidth"]) for e in events if e["ph"] == "C" and e["name"] == "read"]
    assert read == [(0, 0), (30, 50), (40, 0)]
    assert [(e["ts"], e["args"]["bytes"]) for e in events if e["ph"] == "C" and e["name"] == "in use"] == [
        (0, 8), (40, 6), (60, 0),
    ]  # fmt: skip
    queued = {e["name"]: e["args"]["queued_us"] for e in events if e["ph"] == "B" and "queued_us" in e["args"]}
    assert queued == {"reload x": 5, "write-back x": 0}


def test_trace_of_a_model_has_every_step_transfer_and_residency(unet: Profile) -> None:
    lead = min(unet.results, key=lambda r: r.spill_time_s)
    events = trace_of(unet)
    assert lead.times is not None
    assert [e["args"]["step"] for e in events if e["ph"] == "B" and e["cat"] == "step"] == sorted(
        range(len(unet.steps)), key=lambda i: (round(lead.times.step_start_s[i] * 1e9), i)
    )
    happened = Counter(e.kind for e in lead.events if e.kind != "evict-clean")
    assert Counter(e["cat"] for e in events if e["ph"] == "B" and e["pid"] == 2) == happened
    assert sum(e["ph"] == "b" for e in events) == len(lead.residencies)
    channels = {e["args"]["name"] for e in events if e["name"] == "thread_name" and e["pid"] == 2}
    target = unet.target
    if target.dma_shared_channels:
        assert channels <= {f"channel {k}" for k in range(target.dma_shared_channels)}
    else:
        reads = {f"read {k}" for k in range(target.dma_read_channels)}
        assert channels <= reads | {f"write {k}" for k in range(target.dma_write_channels)}
    cores = {e["args"]["name"] for e in events if e["name"] == "thread_name" and e["pid"] == 1}
    assert cores == {f"core {k}" for k in range(target.cores)}


def test_arrows_of_a_model_lead_from_every_spill_to_its_reader(residual: Profile) -> None:
    result = residual.results[0]
    events = trace_of(residual)
    assert len(result.arcs) > 50
    assert sum(e["ph"] == "s" for e in events) == sum(e["ph"] == "f" for e in events) == len(result.arcs)
    assert sum(e["ph"] == "t" for e in events) == sum(arc.reloaded for arc in result.arcs)
    spilled = {e["name"] for e in events if e["ph"] == "b" and e["pid"] == 5}
    assert spilled == {arc.buffer for arc in result.arcs}


@pytest.mark.parametrize("profile", [make_profile(), without_spills(make_profile())], ids=["hostile", "no spill"])
def test_hostile_names_and_runs_without_spills_keep_the_rules(profile: Profile) -> None:
    results = tuple(replace(r, times=r.times or make_profile().results[0].times) for r in profile.results)
    profile = replace(profile, results=results)
    trace_of(profile)
    flames(profile)
    assert chrome_trace.render(profile) == chrome_trace.render(profile)
    assert chrome_trace.render(profile).isascii()
    assert speedscope.render(profile).isascii()
    assert netron.render(profile).isascii()


def test_two_buffers_of_one_name_have_a_row_each() -> None:
    profile = spilling()
    result = profile.results[0]
    twins = tuple(replace(r, buffer="x") for r in result.residencies)
    events = trace_of(replace(profile, results=(replace(result, residencies=twins),)))
    assert Counter(e["id2"]["local"] for e in events if e["ph"] == "b") == {"0x1": 2, "0x2": 1}


def test_trace_where_no_strategy_works_says_so() -> None:
    profile = replace(make_profile(), results=(Result(strategy="lru", feasible=False, reason="too small"),))
    document = json.loads(chrome_trace.render(profile))
    assert document["traceEvents"] == []
    assert document["otherData"]["strategy"] == "none is feasible"
    assert json.loads(speedscope.render(profile))["profiles"] == []


@pytest.mark.parametrize(
    "render",
    [
        chrome_trace.render,
        speedscope.render,
        packing.render_residencies,
        partial(tables.render, table="events"),
        partial(tables.render, table="steps"),
    ],
)
def test_what_needs_events_refuses_a_profile_without(render: Any) -> None:
    profile = make_profile()
    brief = replace(profile, results=tuple(replace(r, events=(), residencies=(), times=None) for r in profile.results))
    with pytest.raises(ProfileError, match="holds no events") as caught:
        render(brief)
    assert caught.value.hint is not None
    assert "--events" in caught.value.hint


def flames(profile: Profile) -> dict[str, Any]:
    """The document, checked: stacks name frames, and weights fill the time of the run."""
    document = json.loads(speedscope.render(profile))
    frames = document["shared"]["frames"]
    assert len({f["name"] for f in frames}) == len(frames)
    for p in document["profiles"]:
        assert len(p["samples"]) == len(p["weights"])
        assert all(0 <= frame < len(frames) for stack in p["samples"] for frame in stack)
        assert all(len(stack) <= speedscope.MAX_DEPTH + 1 for stack in p["samples"])
        assert all(w > 0 for w in p["weights"])
        assert sum(p["weights"]) == pytest.approx(p["endValue"] - p["startValue"])
    assert 0 <= document["activeProfileIndex"] < max(len(document["profiles"]), 1)
    return document


def test_flame_graph_of_one_spill_shows_the_stall_inside_the_operator() -> None:
    document = flames(spilling())
    names = [f["name"] for f in document["shared"]["frames"]]
    (profile,) = document["profiles"]
    assert [([names[f] for f in s], round(w * 1e6, 6)) for s, w in
            zip(profile["samples"], profile["weights"], strict=True)] == [
        (["a", "a/b", "Conv  a/b/make"], 10),
        (["a", "a/b", "Add  a/b/use", "stall: reload"], 30),
        (["a", "a/b", "Add  a/b/use"], 20),
    ]  # fmt: skip


def test_flame_graph_adds_up_to_the_stalls_of_every_strategy(unet: Profile) -> None:
    document = flames(unet)
    names = [f["name"] for f in document["shared"]["frames"]]
    for result in unet.results:
        own = [p for p in document["profiles"] if p["name"].split(",")[0] == result.strategy]
        assert len(own) == unet.target.cores
        assert result.times is not None
        stalled = sum(
            w
            for p in own
            for stack, w in zip(p["samples"], p["weights"], strict=True)
            if names[stack[-1]].startswith("stall: ")
        )
        assert stalled == pytest.approx(sum(result.times.stall_s))
    lead = min(unet.results, key=lambda r: r.spill_time_s)
    assert document["profiles"][document["activeProfileIndex"]]["name"].startswith(lead.strategy)


def test_name_of_a_thousand_scopes_stays_shallow() -> None:
    profile = spilling()
    deep = replace(profile, steps=(StepFact(name="s/" * 1000 + "x", op_type="Conv"), profile.steps[1]))
    assert max(len(stack) for p in flames(deep)["profiles"] for stack in p["samples"]) == speedscope.MAX_DEPTH


def test_side_car_names_operators_and_tensors_of_the_model(unet: Profile) -> None:
    document = json.loads(netron.render(unet))
    assert document["signature"] == "netron:attachment"
    entries = document["metrics"]
    assert len({(e["kind"], e["target"], e["name"]) for e in entries}) == len(entries)
    graph = read_model(SAMPLES / "unet.onnx")
    known = {"node": {op.name for op in graph.operators}, "value": set(graph.tensors), "model": {""}}
    assert all(e["target"] in known[e["kind"]] for e in entries)
    assert {e["kind"] for e in entries} == set(known)
    lead = min(unet.results, key=lambda r: r.spill_time_s)
    assert {e["target"] for e in entries if e["kind"] == "node"} == {o.name for o in lead.operators}
    worst = [e["value"] for e in entries if e["target"] == lead.operators[0].name]
    assert any("B)" in value for value in worst)


def test_tables_have_a_row_for_each_thing(unet: Profile) -> None:
    for table, expected in (
        ("events", sum(len(r.events) for r in unet.results)),
        ("spills", sum(len(r.spills) for r in unet.results)),
        ("steps", len(unet.steps) * len(unet.results)),
        ("suggestions", len(unet.suggestions)),
    ):
        text = tables.render(unet, table=table)
        assert len(text.splitlines()) == 1 + expected
    addresses = [row.split(",")[6] for row in tables.render(unet, table="events").splitlines()[1:]]
    assert all(a == "" or a.isdigit() for a in addresses)


REAL = {  # model: SRAM, weights
    "densenet121_legacy": (4 << 20, WeightsPolicy.STREAM),
    "mobilenet_v2_legacy": (8 << 20, WeightsPolicy.CACHED),
    "llama_2l_bf16_dynamo": (256 << 10, WeightsPolicy.STREAM),
    "script_if_loop_legacy": (1 << 20, WeightsPolicy.CACHED),
}


@pytest.mark.parametrize("name", REAL)
def test_exports_of_real_networks_keep_the_rules_of_their_formats(name: str, corpus: Path, tmp_path: Path) -> None:
    sram_bytes, weights = REAL[name]
    graph = graph_of(f"{name}.onnx")
    target = load_target("generic-npu").with_overrides(sram_bytes=sram_bytes)
    options = AnalyzeOptions(strategies=("lru", "interval"), lowering=LoweringOptions(weights=weights))
    profile = analyze(graph, target, options)
    assert len([e for e in trace_of(profile) if e["ph"] == "B" and e["cat"] == "step"]) == len(profile.steps)
    assert len(flames(profile)["profiles"]) == len(profile.results)
    entries = json.loads(netron.render(profile))["metrics"]
    assert {e["target"] for e in entries if e["kind"] == "node"} <= {op.name for op in graph.operators}
    (tmp_path / "x.minimalloc.csv").write_text(packing.render_residencies(profile), encoding="utf-8")
    buffers = read_minimalloc(tmp_path / "x.minimalloc.csv").buffers
    live_at = [sum(b.size_bytes for b in buffers if b.lower <= start < b.upper) for start in {b.lower for b in buffers}]
    assert max(live_at) <= sram_bytes
