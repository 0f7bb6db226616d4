"""The rules of the JSON trace event format that our traces use."""

import math
from collections import defaultdict
from typing import Any

_TIMED = {"B", "E", "C", "b", "e", "s", "t", "f"}


def check_trace(document: dict[str, Any]) -> None:
    """Fail where a viewer would drop an event, draw it elsewhere, or leave an arrow without an end."""
    events = document["traceEvents"]
    assert all(isinstance(value, str) for value in document["otherData"].values())
    for e in events:
        assert e["ph"] in _TIMED | {"M"}
        assert isinstance(e["pid"], int)
        assert isinstance(e["tid"], int)
        assert isinstance(e["name"], str)
        assert e["name"]
        assert e["name"].isprintable()
        assert len(e["name"]) < 300
        assert math.isfinite(e["ts"])
        assert e["ts"] >= 0
    timed = [e for e in events if e["ph"] != "M"]
    assert timed == sorted(timed, key=lambda e: e["ts"])
    assert events[: len(events) - len(timed)] == [e for e in events if e["ph"] == "M"]
    slices = _check_threads(events, timed)
    _check_spans(timed)
    _check_flows(timed, slices)
    for e in timed:
        if e["ph"] == "C":
            assert len(e["args"]) == 1
            assert all(isinstance(v, int | float) and v >= 0 for v in e["args"].values())


def _check_threads(events: list[Any], timed: list[Any]) -> dict[tuple[int, int], list[Any]]:
    """Slices of a thread do not overlap; threads and processes have names."""
    processes = {e["pid"] for e in events if e["name"] == "process_name"}
    threads = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    assert {e["pid"] for e in timed} <= processes
    slices: defaultdict[tuple[int, int], list[Any]] = defaultdict(list)
    begun: dict[tuple[int, int], list[Any]] = defaultdict(list)
    for e in timed:
        if e["ph"] == "B":
            begun[e["pid"], e["tid"]].append(e)
            slices[e["pid"], e["tid"]].append(e)
        elif e["ph"] == "E":
            begin = begun[e["pid"], e["tid"]].pop()
            assert (begin["name"], begin["cat"]) == (e["name"], e["cat"])
            begin["dur"] = e["ts"] - begin["ts"]
    assert not any(begun.values())
    assert set(slices) == threads
    for own in slices.values():
        end = 0.0
        for e in own:
            assert e["ts"] >= end - 1e-6 or e["dur"] == 0
            end = max(end, e["ts"] + e["dur"])
    return slices


def _check_spans(timed: list[Any]) -> None:
    """Asynchronous spans of one id begin and end in turn."""
    open_spans: dict[tuple[int, str, str], Any] = {}  # an id is local to its process
    for e in timed:
        if e["ph"] == "b":
            assert (e["pid"], e["cat"], e["id2"]["local"]) not in open_spans
            open_spans[e["pid"], e["cat"], e["id2"]["local"]] = e
        elif e["ph"] == "e":
            begun = open_spans.pop((e["pid"], e["cat"], e["id2"]["local"]))
            assert begun["name"] == e["name"]
    assert not open_spans


def _check_flows(timed: list[Any], slices: dict[tuple[int, int], list[Any]]) -> None:
    """Every arrow has one start, one end that binds to the slice around it, and a slice at each of its points."""
    flows: defaultdict[int, list[Any]] = defaultdict(list)
    for e in timed:
        if e["ph"] in "stf":
            flows[e["id"]].append(e)
            own = slices[e["pid"], e["tid"]]
            assert sum(s["ts"] <= e["ts"] < s["ts"] + s["dur"] for s in own) == 1
    for own in flows.values():
        assert [e["ph"] for e in own] in (["s", "f"], ["s", "t", "f"])
        assert own[-1]["bp"] == "e"
