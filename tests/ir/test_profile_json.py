"""A saved profile read back: nothing lost, contradictions refused."""

import contextlib
import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from profiles import make_profile, without_spills

from spillprof.explain.analyze import analyze
from spillprof.explain.options import AnalyzeOptions
from spillprof.frontends import read_model
from spillprof.ir.errors import ProfileError, SpillprofError
from spillprof.ir.profile import Profile
from spillprof.ir.profile_json import profile_from_json
from spillprof.ir.target import load_target
from spillprof.report import packing
from spillprof.report.exports import chrome_trace, netron, speedscope
from spillprof.report.json_text import profile_json
from spillprof.report.profile import html, markdown, terminal

SAMPLES = Path(__file__).parents[2] / "sample_models"
DATA = json.loads(profile_json(make_profile(40), events=True))


def read_back(profile: Profile, *, events: bool) -> Profile:
    return profile_from_json(json.loads(profile_json(profile, events=events)))


@pytest.mark.parametrize("profile", [make_profile(), without_spills(make_profile(40))])
def test_profile_with_events_comes_back_whole(profile: Profile) -> None:
    assert read_back(profile, events=True) == profile


def test_analysed_model_comes_back_whole() -> None:
    target = load_target("generic-npu").with_overrides(sram_bytes=12 << 20)
    graph = read_model(SAMPLES / "unet.onnx")
    profile = analyze(graph, target, AnalyzeOptions(strategies=("lru", "none")), command="spillprof")
    again = read_back(profile, events=True)
    for name in Profile.__dataclass_fields__:
        assert getattr(again, name) == getattr(profile, name), name
    assert profile_json(again, events=True) == profile_json(profile, events=True)
    assert html.render(again) == html.render(profile)


def test_profile_without_events_lacks_them_and_nothing_else() -> None:
    profile = make_profile()
    again = read_back(profile, events=False)
    brief = [replace(r, events=(), residencies=(), times=None) for r in profile.results]
    assert again == replace(profile, results=tuple(brief))
    assert profile_json(again, events=False) == profile_json(profile, events=False)


def test_keys_of_a_later_version_are_read_over_and_new_keys_may_lack() -> None:
    data = copy.deepcopy(DATA)
    data["later"] = data["model"]["later"] = data["results"][0]["later"] = {"a": [1]}
    del data["buffers"], data["model"]["control_flow"]
    assert profile_from_json(data) == replace(profile_from_json(DATA), buffers=())


@pytest.mark.parametrize(
    ("path", "value", "message", "where"),
    [
        (("schema",), "spillprof-profile/2", "no profile", "its schema is 'spillprof-profile/2'"),
        (("schema",), None, "no profile", "it has no schema"),
        (("model",), 3, "3 where an object belongs", "model"),
        (("model", "macs"), 1.5, "1.5 where a whole number belongs", "model.macs"),
        (("model", "macs"), True, "true where a whole number belongs", "model.macs"),
        (("model", "macs"), 10**500, "more than 64 bits", "model.macs"),
        (("model", "name"), None, "null where a text belongs", "model.name"),
        (("model", "notes"), "x", "'x' where a list belongs", "model.notes"),
        (("steps", 4, "name"), [], "a list where a text belongs", "steps[4].name"),
        (("results", 0, "feasible"), 1, "1 where true or false belongs", "results[0].feasible"),
        (("results", 0, "latency_s"), float("inf"), "inf where a number belongs", "results[0].latency_s"),
        (("results", 0, "events", 2, "end_s"), "1", "'1' where a number belongs", "results[0].events[2].end_s"),
        (("config", "pin"), [[1]], "a list where a number belongs", "config"),
        (("target", "dram_write_curve"), [[1]], "a list where 2 values belong", "target.dram_write_curve[0]"),
        (("results", 0, "arcs", 0, "wait_s"), 1e300, "a number as large as 1e+300", "results[0].arcs[0].wait_s"),
        (("target", "sram_bytes"), 0, "target.sram_bytes is 0", None),
        (("target", "reserved_bytes"), -1, "target.reserved_bytes is -1", None),
        (("target", "runtime_bytes"), "x", "'x' where a whole number belongs", "target.runtime_bytes"),
        (("target", "macs_per_s"), {}, "contradicts itself", None),
        (("target", "sram_bytes_per_s"), 0.0, "target.sram_bytes_per_s is 0", None),
        (("buffers", 0, "kind"), "", "a buffer of kind ''", None),
        (("results", 0, "residencies", 0, "kind"), "x", "a buffer of kind 'x'", None),
        (("live_bytes",), [1], "1 values in live_bytes, where 40 belong", None),
        (("model", "peak_step"), 40, "model.peak_step is 40", None),
        (("results", 0, "arcs", 0, "needed_step"), 40, "a spill from step", None),
        (("results", 0, "times", "stall_event", 3), 4000, "event that is waited for", None),
        (("results", 0, "residencies", 0, "end_step"), 41, "a residency from step", None),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(
    path: tuple[Any, ...], value: Any, message: str, where: str | None
) -> None:
    data = copy.deepcopy(DATA)
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(ProfileError) as caught:
        profile_from_json(data)
    assert message in caught.value.message
    assert where is None or where in caught.value.where[0]


def test_a_key_that_lacks_is_named() -> None:
    data = copy.deepcopy(DATA)
    del data["results"][1]["arcs"][2]["written"]
    with pytest.raises(ProfileError, match=r"lacks 'results\[1\].arcs\[2\].written'"):
        profile_from_json(data)


@pytest.mark.parametrize("data", [None, [], "x", 3, {}, {"schema": "spillprof-plan/1"}])
def test_other_json_is_no_profile(data: object) -> None:
    with pytest.raises(ProfileError, match="no profile"):
        profile_from_json(data)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in leaves(item, (*path, key))]
    if isinstance(value, list):
        return [leaf for k, item in enumerate(value[:3]) for leaf in leaves(item, (*path, k))]
    return [path]


LEAVES = leaves(DATA)
ODD = st.sampled_from(
    [None, True, 0, -1, 1, 7, 2**31, 2**63 - 1, -(2**63) + 1, 0.0, -0.5, 1e-300, 1e300, "", "\ud800", "x\x1b", [], {}]
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(changes=st.lists(st.tuples(st.sampled_from(LEAVES), ODD), min_size=1, max_size=3))
def test_changed_profile_is_refused_or_rendered(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    data = copy.deepcopy(DATA)
    for path, value in changes:
        inner = data
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
    try:
        profile = profile_from_json(data)
    except SpillprofError:
        return
    profile_json(profile, events=True)
    markdown.render(profile)
    terminal.render(profile, top=5, width=80, color=False)
    html.render(profile)
    for render in (chrome_trace.render, speedscope.render, netron.render, packing.render_residencies):
        with contextlib.suppress(ProfileError):  # the change took the events away
            render(profile)
