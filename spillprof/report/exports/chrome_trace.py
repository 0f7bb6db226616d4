"""The leading strategy's timeline in the JSON trace event format, for Perfetto (ui.perfetto.dev) and chrome://tracing.

One process a part of the machine: compute units (a thread each, stalls included), DMA (a thread a channel), bus and
SRAM (counters), buffers (a row each, those that spill first). Arrows lead from a spill over its reload to the step that
needed it. Times are microseconds, rounded to nanoseconds; the same Profile gives the same text.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any

from spillprof.ir.profile import Profile
from spillprof.ir.result import Event, OperatorCost, Residency
from spillprof.ir.units import format_size
from spillprof.report.exports.recorded import MAX_NAME, Recorded, leading_run
from spillprof.report.profile.verdict import model_title, shown_cause
from spillprof.report.text import label

_COMPUTE, _DMA, _BUS, _SRAM, _SPILLED, _OTHERS = range(1, 7)
_PROCESSES = {
    _COMPUTE: "compute", _DMA: "DMA", _BUS: "DRAM bus", _SRAM: "SRAM", _SPILLED: "buffers that spill",
    _OTHERS: "other buffers",
}  # fmt: skip
_READS = ("fetch", "reload", "stream-in", "weights")
_WRITES = ("write-back", "drain", "stream-out")

_TraceEvent = dict[str, Any]


def render(profile: Profile) -> str:
    """The trace as JSON text, one event a line. ``ProfileError`` if the profile was saved without events."""
    run = leading_run(profile)
    events = [] if run is None else _events(profile, run)
    header = json.dumps({"displayTimeUnit": "ms", "otherData": _about(profile, run)})
    lines = ",\n".join(json.dumps(event) for event in events)
    return f'{header[:-1]}, "traceEvents": [\n{lines}\n]}}\n'


def _about(profile: Profile, run: Recorded | None) -> dict[str, str]:
    return {
        "producer": f"spillprof {profile.spillprof_version}",
        "model": label(model_title(profile), MAX_NAME),
        "model_sha256": profile.model.sha256,
        "target": label(profile.target.name, MAX_NAME),
        "sram": format_size(profile.target.sram_bytes),
        "strategy": "none is feasible" if run is None else run.result.strategy,
        "command": label(profile.command, 1000),
    }


def _events(profile: Profile, run: Recorded) -> list[_TraceEvent]:
    steps, on_cores = _step_slices(profile, run)
    transfers, on_channels = _transfer_slices(profile, run.result.events)
    timed = [*on_cores, *on_channels, *_counters(profile, run), *_buffer_spans(run), *_flows(run, steps, transfers)]
    timed.sort(key=lambda event: event["ts"])  # stable: what was put in order at one moment stays so
    return [*_names(profile, run, transfers), *timed]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slice:
    """Position of a slice: process, thread, start and end."""

    pid: int
    tid: int
    start_ns: int
    end_ns: int


def _step_slices(profile: Profile, run: Recorded) -> tuple[list[_Slice | None], list[_TraceEvent]]:
    """Returns the slice of each step on its core, and the trace events of slices and stalls."""
    times, events = run.times, run.result.events
    costs = {cost.step: cost for cost in run.result.operators}
    free_ns: dict[int, int] = {}  # by core: the end of what it did last
    slices: list[_Slice | None] = [None] * len(profile.steps)
    drawn: list[_TraceEvent] = []
    for i in sorted(range(len(slices)), key=lambda i: (times.step_start_s[i], i)):
        tid, fact = times.step_core[i] + 1, profile.steps[i]
        start, end = _ns(times.step_start_s[i]), _ns(times.step_end_s[i])
        place = _Slice(pid=_COMPUTE, tid=tid, start_ns=start, end_ns=end)
        since = max(_ns(times.step_start_s[i] - times.stall_s[i]), free_ns.get(tid, 0))
        if since < start:
            waited_for = times.stall_event[i]
            what = _event_name(events[waited_for]) if waited_for >= 0 else "other steps"
            drawn += _drawn(replace(place, start_ns=since, end_ns=start), f"stall: {what}", "stall", {"step": i})
        arguments = {"step": i, "op_type": label(fact.op_type, MAX_NAME), **_cost(costs.get(i))}
        drawn += _drawn(place, label(fact.name, MAX_NAME), "step", arguments)
        slices[i] = place
        free_ns[tid] = end
    return slices, drawn


def _cost(cost: OperatorCost | None) -> dict[str, Any]:
    if cost is None:
        return {}
    return {
        "spill_write_bytes": cost.spill_write_bytes,
        "spill_read_bytes": cost.spill_read_bytes,
        "streamed_bytes": cost.streamed_bytes,
        "cause": shown_cause(cost) or "",
        "victims": ", ".join(label(victim) for victim in cost.victims),
    }


def _transfer_slices(profile: Profile, events: Sequence[Event]) -> tuple[list[_Slice | None], list[_TraceEvent]]:
    """Returns the slice of each transfer on the lowest free channel (else None), and the trace events."""
    shared = profile.target.dma_shared_channels > 0
    busy: dict[str, list[tuple[int, int]]] = {}  # by group: (end, channel) of the channels in use
    free: dict[str, list[int]] = {}
    slices: list[_Slice | None] = [None] * len(events)
    drawn: list[_TraceEvent] = []
    timed = [k for k, e in enumerate(events) if e.start_s is not None and e.end_s is not None]
    for k in sorted(timed, key=lambda k: (events[k].start_s, events[k].end_s, k)):
        e = events[k]
        start, end = _ns(e.start_s or 0.0), _ns(e.end_s or 0.0)
        group = "move" if e.kind == "move" else "both" if shared else "read" if e.kind in _READS else "write"
        in_use, unused = busy.setdefault(group, []), free.setdefault(group, [])
        while in_use and in_use[0][0] <= start:
            heappush(unused, heappop(in_use)[1])
        if start < end:
            channel = heappop(unused) if unused else len(in_use)
            heappush(in_use, (end, channel))
        else:  # no bytes, no channel
            channel = 0
        tid = _TID_OF_GROUP[group] + channel
        arguments: dict[str, Any] = {
            "buffer": label(e.buffer, MAX_NAME), "bytes": e.size_bytes, "issued_at_step": e.step,
            "needed_by_step": e.needed_step, "address": e.address,
        }  # fmt: skip
        if e.issued_s is not None:
            arguments["queued_us"] = _us(max(start - _ns(e.issued_s), 0))
        shown = {key: value for key, value in arguments.items() if value is not None}
        slices[k] = place = _Slice(pid=_DMA, tid=tid, start_ns=start, end_ns=end)
        drawn += _drawn(place, _event_name(e), e.kind, shown)
    return slices, drawn


_TID_OF_GROUP = {"read": 1, "both": 1, "write": 100_001, "move": 200_001}


def _counters(profile: Profile, run: Recorded) -> Iterator[_TraceEvent]:
    times, target = run.times, profile.target
    order = sorted(range(len(profile.steps)), key=lambda i: (times.step_start_s[i], i))
    moments = [times.step_start_s[i] for i in order]
    end_s = run.result.latency_s
    bus = target.dram_bus_bytes_per_s
    curves: list[tuple[int, str, str, Sequence[float], Sequence[float]]] = [
        (_SRAM, "in use", "bytes", moments, [run.result.in_use_bytes[i] for i in order]),
        (_SRAM, "live", "bytes", moments, [profile.live_bytes[i] for i in order]),
        (_BUS, "read", "% of bandwidth", times.bus_time_s,
         _share(times.bus_read_bytes_per_s, min(target.dram_read_bytes_per_s, bus or float("inf")))),
        (_BUS, "write", "% of bandwidth", times.bus_time_s,
         _share(times.bus_write_bytes_per_s, min(target.dram_write_bytes_per_s, bus or float("inf")))),
    ]  # fmt: skip
    if bus and target.background_bytes_per_s:
        share = _share(times.bus_background_bytes_per_s, bus)
        curves.append((_BUS, "background", "% of bandwidth", times.bus_time_s, share))
    for pid, name, unit, at_s, values in curves:
        last: float | None = None
        for moment, value in zip([*at_s, end_s], [*values, 0], strict=True):
            if value != last:
                yield {"ph": "C", "name": name, "pid": pid, "tid": 0, "ts": _us(_ns(moment)), "args": {unit: value}}
                last = value


def _share(rates: Sequence[float], full: float) -> list[float]:
    return [round(100 * rate / full, 3) if full > 0 else 0.0 for rate in rates]


def _buffer_spans(run: Recorded) -> Iterator[_TraceEvent]:
    """Yields residencies as asynchronous spans, one row a buffer; gaps are time in DRAM."""
    spilled = {arc.buffer for arc in run.result.arcs}
    rows: dict[str, list[list[int]]] = {}  # by name: [row, end] of those buffers (names may repeat)
    count = 0
    timed = [r for r in run.result.residencies if r.start_s is not None and r.end_s is not None]
    for r in sorted(timed, key=lambda r: (r.start_s, r.end_s, r.address)):
        start, end = _ns(r.start_s or 0.0), _ns(r.end_s or 0.0)
        own = rows.setdefault(r.buffer, [])
        row = next((row for row in own if row[1] <= start), None)
        if row is None:
            count += 1
            row = [count, end]
            own.append(row)
        row[1] = end
        common = {
            "cat": "residency", "id2": {"local": f"0x{row[0]:x}"}, "name": label(r.buffer, MAX_NAME),
            "pid": _SPILLED if r.buffer in spilled else _OTHERS, "tid": 0,
        }  # fmt: skip
        yield {"ph": "b", **common, "ts": _us(start), "args": _residency_arguments(r)}
        yield {"ph": "e", **common, "ts": _us(end)}


def _residency_arguments(r: Residency) -> dict[str, Any]:
    return {"kind": r.kind, "bytes": r.size_bytes, "address": r.address, "from_step": r.start_step, "to": r.end_step}


def _flows(run: Recorded, steps: Sequence[_Slice | None], transfers: Sequence[_Slice | None]) -> Iterator[_TraceEvent]:
    """Yields an arrow for each spill: write-back (or evicting step, if clean), reload, reader."""
    of_event: dict[tuple[str, str, int | None], int] = {}
    for k, e in enumerate(run.result.events):
        of_event.setdefault((e.kind, e.buffer, e.needed_step), k)
    number = 0
    for arc in run.result.arcs:
        written = of_event.get(("write-back", arc.buffer, arc.evict_step)) if arc.written else None
        reload = of_event.get(("reload", arc.buffer, arc.needed_step))
        source = steps[arc.evict_step] if written is None else transfers[written]
        path = [source, None if reload is None else transfers[reload], steps[arc.needed_step]]
        places = [place for place in path if place is not None and place.start_ns < place.end_ns]
        if len(places) < 2 or any(a.start_ns > b.start_ns for a, b in pairwise(places)):
            continue
        number += 1
        for position, place in enumerate(places):
            phase = "s" if position == 0 else "f" if position == len(places) - 1 else "t"
            yield {
                "ph": phase, "cat": "spill", "name": "spill", "id": number, "pid": place.pid, "tid": place.tid,
                "ts": _us((place.start_ns + place.end_ns) // 2), **({"bp": "e"} if phase == "f" else {}),
            }  # fmt: skip


def _names(profile: Profile, run: Recorded, transfers: Sequence[_Slice | None]) -> Iterator[_TraceEvent]:
    """Names of processes and threads."""
    model = (
        f"{label(model_title(profile), 60)}, {run.result.strategy}, {format_size(profile.target.sram_bytes)} of SRAM"
    )
    for pid, name in _PROCESSES.items():
        yield _metadata("process_name", pid, 0, name=name)
        yield _metadata("process_labels", pid, 0, labels=model)
        yield _metadata("process_sort_index", pid, 0, sort_index=pid)
    for core in sorted(set(run.times.step_core)):
        yield _metadata("thread_name", _COMPUTE, core + 1, name=f"core {core}")
    named = {first: group for group, first in _TID_OF_GROUP.items() if group != "both"}
    shared = profile.target.dma_shared_channels > 0
    for tid in sorted({part.tid for part in transfers if part is not None}):
        first = max(start for start in named if start <= tid)
        group = "channel" if shared and first == 1 else "inside SRAM" if named[first] == "move" else named[first]
        yield _metadata("thread_name", _DMA, tid, name=f"{group} {tid - first}")
        yield _metadata("thread_sort_index", _DMA, tid, sort_index=tid)


def _metadata(what: str, pid: int, tid: int, **arguments: Any) -> _TraceEvent:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": arguments}


def _drawn(place: _Slice, name: str, category: str, arguments: dict[str, Any]) -> tuple[_TraceEvent, _TraceEvent]:
    """Returns begin and end events; viewers would round start + duration past the next slice's start."""
    common = {"name": name, "cat": category, "pid": place.pid, "tid": place.tid}
    begin = {"ph": "B", **common, "ts": _us(place.start_ns), "args": arguments}
    return begin, {"ph": "E", **common, "ts": _us(place.end_ns)}


def _event_name(event: Event) -> str:
    return event.kind if event.kind == "weights" else f"{event.kind} {label(event.buffer, MAX_NAME)}"


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


def _us(nanoseconds: int) -> float:
    return nanoseconds / 1000
