"""Data of the page's script beside figures and tables: names, step times, residencies, spills.

Columns travel as packed bytes, ``{"dtype": "i4", "bdata": base64}``, as plotly writes its own.
"""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spillprof.ir.arrays import Floats
from spillprof.ir.profile import Profile
from spillprof.ir.profile_facts import BufferFact
from spillprof.ir.result import Event, Residency, Result
from spillprof.report.scales import time_scale
from spillprof.report.text import label

MAX_STEPS = 20_000
"""Steps up to which the page holds the name and operands of each."""
MAX_RESIDENCIES = 40_000
"""Residencies in the page, of all strategies together; the strategy shown first takes its share first."""
MAX_SPILLS = 20_000
"""The same for spills."""
_MAX_MOMENTS = 10_000
"""Step times of a strategy in the page; between them it interpolates."""
MAX_WAITS = 1_200
_KINDS = ("activation", "input", "output", "weight")
_CAUSES = ("capacity", "lifetime", "fragmentation", "oversized")
_EVENT_WORDS = {
    "fetch": "first load", "drain": "output's write", "move": "compaction move", "stream-in": "streaming in",
    "stream-out": "streaming out",
}  # fmt: skip
_TICKS_PER_STEP = 3


def page_data(profile: Profile, results: Sequence[Result], lead: Result | None, named: Iterable[int]) -> dict[str, Any]:
    """Returns the page's data without figures and tables. ``named``: steps that charts name."""
    n_steps = len(profile.steps)
    buffers = _Buffers(profile.buffers if n_steps <= MAX_STEPS else ())
    rooms = {"residencies": MAX_RESIDENCIES, "spills": MAX_SPILLS, "streams": MAX_SPILLS}
    views: dict[int, dict[str, Any]] = {}
    for index in sorted(range(len(results)), key=lambda i: results[i] is not lead):
        views[index] = _view(results[index], buffers, rooms)
    shown = range(n_steps) if n_steps <= MAX_STEPS else sorted(set(named))
    scale = time_scale([result.latency_s for result in results])
    return {
        "n_steps": n_steps,
        "names": {step: label(profile.steps[step].name, 48) for step in shown},
        "types": {step: label(profile.steps[step].op_type, 24) for step in shown},
        "time_unit": {"unit": scale.unit, "factor": scale.factor},
        "capacity_bytes": profile.target.sram_bytes,
        "reserved_bytes": profile.reserved.reserved_bytes,
        "dataflow": _dataflow(profile.buffers) if has_graph(profile) else None,
        "views": [views[index] for index in sorted(views)],
        "buffers": buffers.to_json(),
        "strategies": [result.strategy for result in results],
    }


def has_graph(profile: Profile) -> bool:
    """Whether the page draws the graph of steps."""
    return 0 < len(profile.steps) <= MAX_STEPS and bool(profile.buffers)


def limits_note(profile: Profile, results: Sequence[Result]) -> str:
    """States what the page leaves out of a long run; empty if nothing."""
    notes = []
    if len(profile.steps) > MAX_STEPS:
        notes.append(
            f"runs of more than {MAX_STEPS:,} steps have no graph, and only charts and tables name their steps"
        )
    if sum(len(result.residencies) for result in results) > MAX_RESIDENCIES:
        notes.append(f"{MAX_RESIDENCIES:,} residencies, the largest of each strategy, are told apart at a step")
    if sum(len(result.arcs) for result in results) > MAX_SPILLS:
        notes.append(f"{MAX_SPILLS:,} spills, the largest of each strategy, are told apart at a step")
    return f"To stay small, this page leaves something out: {'; '.join(notes)}." if notes else ""


def packed(values: Iterable[int] | npt.NDArray[Any]) -> dict[str, str]:
    """Packs a column into the narrowest type: integers exactly, floats (given as an array) with 24 bits."""
    column = values if isinstance(values, np.ndarray) else np.array(list(values), dtype=np.int64)
    if column.dtype.kind == "f":
        kind = "f4"
    else:
        low, high = int(column.min(initial=0)), int(column.max(initial=0))
        kind = next((k for k in ("u1", "u2", "i4") if np.iinfo(k).min <= low and high <= np.iinfo(k).max), "f8")
    return {"dtype": kind, "bdata": b64encode(column.astype("<" + kind).tobytes()).decode("ascii")}


def step_moments(result: Result, n_steps: int) -> Floats | None:
    """Returns start times of steps, made monotonic, and the end of the run. Shape (n_steps + 1,), seconds."""
    if result.times is None or len(result.times.step_start_s) != n_steps:
        return None
    moments: Floats = np.maximum.accumulate(np.append(np.asarray(result.times.step_start_s), result.latency_s))
    return moments


class _Buffers:
    """Index of buffers (name, kind, size): in program order, then by first use."""

    def __init__(self, facts: Sequence[BufferFact]) -> None:
        self._index: dict[str, int] = {}
        self._kinds: list[int] = []
        self._sizes: list[int] = []
        for fact in facts:
            self._index[fact.name] = len(self._kinds)
            self._kinds.append(_KINDS.index(fact.kind))
            self._sizes.append(fact.size_bytes)

    def index(self, name: str, kind: str, size_bytes: int) -> int:
        if name not in self._index:
            self._index[name] = len(self._kinds)
            self._kinds.append(_KINDS.index(kind))
            self._sizes.append(size_bytes)
        return self._index[name]

    def to_json(self) -> dict[str, Any]:
        names = [""] * len(self._kinds)
        for name, i in self._index.items():
            names[i] = label(name, 48)
        return {"names": names, "kinds": packed(self._kinds), "sizes": packed(self._sizes), "kind_names": _KINDS}


def _view(result: Result, buffers: _Buffers, rooms: dict[str, int]) -> dict[str, Any]:
    """Returns residencies, spills and stalls of one strategy; deducts them from ``rooms``."""
    kept = _largest(result.residencies, rooms["residencies"])
    arcs = sorted(result.arcs, key=lambda a: -a.size_bytes)[: rooms["spills"]]
    rooms["residencies"] -= len(kept)
    rooms["spills"] -= len(arcs)
    n_steps = len(result.in_use_bytes)
    moments = step_moments(result, n_steps)
    streams = [e for e in result.events if e.kind in ("stream-in", "stream-out")][: rooms["streams"]]
    rooms["streams"] -= len(streams)
    view: dict[str, Any] = {
        "residencies": {
            "buffer": packed(buffers.index(r.buffer, r.kind, r.size_bytes) for r in kept),
            "start": packed(round(_TICKS_PER_STEP * r.start_step) for r in kept),
            "end": packed(round(_TICKS_PER_STEP * r.end_step) for r in kept),
            "total": len(result.residencies),
        },
        "spills": {
            "buffer": packed(buffers.index(a.buffer, "activation", a.size_bytes) for a in arcs),
            "last": packed(a.last_use_step for a in arcs),
            "evict": packed(a.evict_step for a in arcs),
            "needed": packed(a.needed_step for a in arcs),
            "moved": packed(a.written + 2 * a.reloaded + 4 * (not a.evicted) for a in arcs),
            "cause": packed(_CAUSES.index(a.cause) if a.cause in _CAUSES else 0 for a in arcs),
            "wait": packed(np.array([a.wait_s for a in arcs])),
            "total": len(result.arcs),
        },
        "streams": {
            "buffer": packed(buffers.index(e.buffer, "activation", e.size_bytes) for e in streams),
            "step": packed(e.step for e in streams),
            "size": packed(e.size_bytes for e in streams),
            "out": packed(e.kind == "stream-out" for e in streams),
        },
        "causes": _CAUSES,
        "waits": [(wait.step, wait.seconds, wait.words) for wait in waits(result)],
    }
    if moments is not None:
        stride = max(1, -(-n_steps // _MAX_MOMENTS))
        view["times"] = {"stride": stride, "at": packed(np.append(moments[:-1:stride], moments[-1]))}
    return view


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A stall of the compute unit before a step."""

    step: int
    seconds: float
    kind: str  # as in Event; empty: for something that is not listed
    words: str  # for what


def waits(result: Result) -> list[Wait]:
    """Returns the longest stalls, longest first."""
    if result.times is None:
        return []
    stalls = np.asarray(result.times.stall_s)
    longest = np.argsort(-stalls, kind="stable")[:MAX_WAITS]
    found = []
    for step in longest[stalls[longest] > 0].tolist():
        position = result.times.stall_event[step]
        event = result.events[position] if 0 <= position < len(result.events) else None
        kind, words = ("", "something that is not a transfer") if event is None else (event.kind, _words(event))
        found.append(Wait(step=step, seconds=float(stalls[step]), kind=kind, words=words))
    return found


def _words(event: Event) -> str:
    """``the reload of skip_0``."""
    if event.kind == "weights":
        return "its streamed weights"
    return f"the {_EVENT_WORDS.get(event.kind, event.kind)} of {label(event.buffer, 32)}"


def _largest(residencies: Sequence[Residency], most: int) -> list[Residency]:
    if len(residencies) <= most:
        return list(residencies)
    return sorted(residencies, key=lambda r: -r.size_bytes * (r.end_step - r.start_step))[:most]


def _dataflow(buffers: Sequence[BufferFact]) -> dict[str, Any]:
    """Returns the writing step of each buffer (-1: none) and its readers: those of buffer b end at ``ends[b]``."""
    return {
        "writer": packed(-1 if b.written_by is None else b.written_by for b in buffers),
        "readers": packed(step for b in buffers for step in b.read_by),
        "ends": packed(np.cumsum([len(b.read_by) for b in buffers], dtype=np.int64)),
    }
