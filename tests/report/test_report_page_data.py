"""Data of the page's script: packed columns, times of steps, waits, and what long runs omit."""

import base64
from dataclasses import replace

import numpy as np
import pytest
from profiles import STEP_S, make_profile, without_spills

from spillprof.ir.result import Event, RunTimes
from spillprof.report.profile import page_data as page
from spillprof.report.profile import time_figures
from spillprof.report.profile.verdict import lead_result


def _column(packed: dict[str, str]) -> list[float]:
    return np.frombuffer(base64.b64decode(packed["bdata"]), packed["dtype"]).tolist()


def _event(kind: str, issued_s: float | None, start_s: float | None) -> Event:
    return Event(kind=kind, buffer="b", size_bytes=64, step=0, needed_step=1, address=0, start_s=start_s,
                 end_s=None if start_s is None else start_s + 1, issued_s=issued_s)  # fmt: skip


@pytest.mark.parametrize(
    ("values", "dtype"),
    [([], "u1"), ([0, 255], "u1"), ([256], "u2"), ([-1], "i4"), ([70_000], "i4"), ([1 << 40], "f8")],
)
def test_integers_travel_exactly_in_the_narrowest_column(values, dtype):
    packed = page.packed(values)
    assert packed["dtype"] == dtype
    assert _column(packed) == values


def test_page_knows_every_residency_spill_and_operand():
    profile = make_profile(60)
    lead = lead_result(profile)
    results = [result for result in profile.results if result.feasible]
    data = page.page_data(profile, results, lead, ())
    view = data["views"][results.index(lead)]
    names = data["buffers"]["names"]
    first = lead.residencies[7]
    assert names[int(_column(view["residencies"]["buffer"])[7])] == first.buffer
    assert _column(view["residencies"]["start"])[7] == round(3 * first.start_step)
    assert len(_column(view["residencies"]["end"])) == view["residencies"]["total"] == len(lead.residencies)
    assert sorted(_column(view["spills"]["evict"])) == sorted(arc.evict_step for arc in lead.arcs)
    flow = data["dataflow"]
    ends = [int(e) for e in _column(flow["ends"])]
    readers = _column(flow["readers"])
    for b, fact in enumerate(profile.buffers):
        assert tuple(readers[ends[b - 1] if b else 0 : ends[b]]) == fact.read_by
        assert _column(flow["writer"])[b] == (-1 if fact.written_by is None else fact.written_by)
    assert page.limits_note(profile, results) == ""


def test_long_run_leaves_out_names_and_graph_and_says_so():
    profile = make_profile(page.MAX_STEPS + 1)
    lead = lead_result(profile)
    data = page.page_data(profile, [lead], lead, named=(3, 5))
    assert data["dataflow"] is None
    assert sorted(data["names"]) == [3, 5]
    moments = _column(data["views"][0]["times"]["at"])
    assert len(moments) <= page._MAX_MOMENTS + 2
    assert moments[-1] == pytest.approx(lead.latency_s)
    assert moments[1] == pytest.approx(data["views"][0]["times"]["stride"] * STEP_S)
    assert "have no graph" in page.limits_note(profile, [lead])


def test_room_for_residencies_goes_to_the_lead_first(monkeypatch):
    profile = make_profile(60)
    lead = lead_result(profile)
    results = [result for result in profile.results if result.feasible]
    monkeypatch.setattr(page, "MAX_RESIDENCIES", len(lead.residencies) + 3)
    data = page.page_data(profile, results, lead, ())
    kept = {r.strategy: len(_column(v["residencies"]["start"])) for r, v in zip(results, data["views"], strict=True)}
    assert kept.pop(lead.strategy) == len(lead.residencies)
    assert sum(kept.values()) == 3
    assert "residencies, the largest" in page.limits_note(profile, results)


def test_steps_of_several_cores_never_run_backwards_on_the_time_axis():
    result = make_profile(40, hostile=False).results[0]
    times = replace(result.times, step_start_s=(0.0, 3.0, 1.0, 2.0, 5.0, 4.0))
    moments = page.step_moments(replace(result, times=times, latency_s=6.0), 6)
    assert moments.tolist() == [0, 3, 3, 3, 5, 5, 6]
    assert page.step_moments(replace(result, times=None), 6) is None


def test_queue_counts_transfers_from_issue_to_channel():
    events = [_event("reload", 0.0, 2.0), _event("drain", 1.0, 3.0), _event("fetch", 1.0, 1.0),
              _event("move", 0.0, 9.0), _event("evict-clean", None, None)]  # fmt: skip
    moments, waiting = time_figures.queue(events)
    assert list(zip(moments.tolist(), waiting.tolist(), strict=True)) == [(0, 1), (1, 2), (2, 1), (3, 0)]
    assert len(time_figures.queue([])[0]) == 0


def test_thinned_bus_keeps_its_bytes_and_thinned_queue_its_peak():
    moments = np.arange(10_000) / 10_000
    values = np.where(np.arange(10_000) % 7 == 0, 3.0, 0.0)
    x, mean = time_figures._thinned_mean(moments, values, 1.0)
    assert len(x) <= time_figures._MAX_MOMENTS
    assert (np.diff(x) * mean[:-1]).sum() == pytest.approx(values.sum() / 10_000)
    values[4321] = 9
    x, most = time_figures._thinned_greatest(moments, values, 1.0)
    assert most.max() == 9
    assert x[int(most.argmax())] <= 0.4321 < x[int(most.argmax()) + 1]


def test_bus_and_waits_say_in_words_what_they_draw():
    profile = make_profile(40, hostile=False)
    times = RunTimes(
        step_start_s=(0.0, 1.0, 3.0, 4.0), step_end_s=(1.0, 2.0, 4.0, 5.0), step_core=(0,) * 4,
        stall_s=(0.0, 0.0, 1.0, 0.0), stall_event=(-1, -1, 0, -1), bus_time_s=(0.0, 1.0, 3.0),
        bus_read_bytes_per_s=(0.0, 6e9, 0.0), bus_write_bytes_per_s=(0.0,) * 3, bus_background_bytes_per_s=(0.0,) * 3,
    )  # fmt: skip
    result = replace(profile.results[0], times=times, latency_s=5.0, events=(_event("reload", 1.0, 2.0),))
    assert time_figures.bus_summary(profile, result) == (
        "Something is on the bus in 40 % of the run: 11.2 GiB read and 0 written use 4.0 % of the read bandwidth and "
        "0 % of the write bandwidth. Up to 1 transfer at once had to queue."
    )
    assert time_figures.waits_summary(profile, result).startswith(
        "The compute unit waits 1 s (20 % of the run), mostly for a reload (1 s). "
        "The longest wait, 1 s, is before step 2"
    )
    assert [r[3] for r in time_figures.bus_table(result).rows] == [0] * 20
    assert sum(r[2] for r in time_figures.bus_table(result).rows) == pytest.approx(12_000_000_000, abs=20)
    assert time_figures.waits_table(profile, result).rows == ((2, profile.steps[2].name, 1.0, "the reload of b"),)


def test_figures_without_times_are_left_out():
    profile = without_spills(make_profile(40, hostile=False))
    assert time_figures.time_figures(profile, profile.results[0]) == ()
