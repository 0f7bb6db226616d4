"""Reads a saved Profile and checks that its parts agree.

The types of the dataclass fields are the format. Target fields that the JSON does not hold take their default.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from spillprof.ir.errors import ProfileError, UsageError
from spillprof.ir.json_values import MalformedError, reader_of, shown
from spillprof.ir.profile import PROFILE_SCHEMA, Profile
from spillprof.ir.profile_facts import BufferFact, LiveBuffer
from spillprof.ir.program import BufferKind
from spillprof.ir.result import BufferCost, Residency, Result, RunTimes
from spillprof.ir.target import PROFILE_FIELDS

_KINDS = frozenset(map(str, BufferKind))


def profile_from_json(data: object) -> Profile:
    """The Profile that JSON values describe: ``to_json`` gives the same values again. ``ProfileError`` if it cannot be.

    In a file without events, ``Result.times`` is None, and events and residencies are empty.
    """
    schema = data.get("schema") if isinstance(data, Mapping) else None
    if schema != PROFILE_SCHEMA or not isinstance(data, Mapping):
        found = "it has no schema" if schema is None else f"its schema is {shown(schema)}"
        raise ProfileError(
            "this is no profile that can be read here",
            where=(f"{found}, not '{PROFILE_SCHEMA}'",),
            hint="'spillprof analyze MODEL -o FILE.json' writes one",
        )
    try:
        profile: Profile = reader_of(Profile)(_with_reserved(data))
    except UsageError as error:
        raise ProfileError(f"the profile contradicts itself: {error.message}", hint=error.hint) from None
    except MalformedError as error:
        if error.what is None:
            raise ProfileError(
                f"the profile lacks '{error.place}'", hint="was it saved by another version, or cut off? analyze again"
            ) from None
        place = error.place.replace("reserved.", "target.", 1) if error.place.startswith("reserved.") else error.place
        raise ProfileError(f"a profile cannot hold {error.what}", where=(place,)) from None
    fault = next(_faults(profile), None)
    if fault is not None:
        raise ProfileError(f"the profile contradicts itself: {fault}", hint="was the file changed, or cut off?")
    return profile


def _with_reserved(data: Mapping[str, Any]) -> dict[str, Any]:
    """The values with ``reserved`` split off from ``target``."""
    machine = data.get("target")
    if not isinstance(machine, dict):
        return {**data}
    target = {name: machine[name] for name in PROFILE_FIELDS if name in machine}
    if isinstance(share := target.get("utilisation"), int | float):  # of earlier versions: one for all kinds
        target["utilisation"] = {"default": share}
    if "runtime_bytes" in machine:
        target["reserved_bytes"] = machine["runtime_bytes"]
    return {**data, "target": target, "reserved": machine}


def _faults(profile: Profile) -> Iterator[str]:
    """Contradictions in a profile, one phrase each; none in one that ``analyze`` made."""
    n, model = len(profile.steps), profile.model
    last = max(n - 1, 0)
    yield from _same("model.steps", model.steps, n)
    yield from _same("values in live_bytes", len(profile.live_bytes), n)
    yield from _within("model.peak_step", [model.peak_step, model.min_sram_step], last)
    for name in (
        "sram_bytes",
        "alignment_bytes",
        "sram_bytes_per_s",
        "dram_read_bytes_per_s",
        "dram_write_bytes_per_s",
    ):
        yield from _positive(f"target.{name}", [getattr(profile.target, name)])
    for column in fields(profile.reserved):
        yield from _within(f"target.{column.name}", [getattr(profile.reserved, column.name)])
    yield from _within("live_bytes", profile.live_bytes)
    yield from _within("step of an oversized operator", (o.step for o in profile.oversized), n - 1)
    yield from _within("size of an oversized operator", (o.streamed_bytes for o in profile.oversized))
    yield from _within("writer of a buffer", (b.written_by for b in profile.buffers), n - 1)
    yield from _within("reader of a buffer", (i for b in profile.buffers for i in b.read_by), n - 1)
    yield from _within("size of a buffer", (b.size_bytes for b in profile.buffers))
    yield from _within("size of a buffer", (b.size_bytes for b in profile.peak_buffers))
    yield from _known_kinds((*profile.buffers, *profile.peak_buffers))
    if profile.size_curve is not None:
        yield from _positive("sram_bytes of a point", (p.sram_bytes for p in profile.size_curve.points))
        yield from _within("spill_bytes of a point", (p.spill_bytes for p in profile.size_curve.points))
        yield from _within("spill_bytes_lower of a point", (p.spill_bytes_lower for p in profile.size_curve.points))
    for result in profile.results:
        yield from (f"{fault} under {result.strategy[:40]}" for fault in _result_faults(result, n))


def _result_faults(result: Result, n: int) -> Iterator[str]:
    if result.feasible:
        yield from _same("values in in_use_bytes", len(result.in_use_bytes), n)
    yield from _within("in_use_bytes", result.in_use_bytes)
    yield from _within("step of an operator", (o.step for o in result.operators), n - 1)
    yield from _within("bytes of an operator", (o.spill_write_bytes for o in result.operators))
    yield from _within("bytes of an operator", (o.spill_read_bytes for o in result.operators))
    yield from _within("bytes of an operator", (o.streamed_bytes for o in result.operators))
    yield from _within("life of a buffer", (step for b in result.buffers for step in (b.start, b.end)), n)
    yield from _within("bytes of a buffer", (v for b in result.buffers for v in (b.size_bytes, b.spill_bytes)))
    yield from _known_kinds((*result.buffers, *result.residencies))
    for arc in result.arcs:
        yield from _within("size of a spill", [arc.size_bytes])
        if not 0 <= arc.last_use_step <= arc.evict_step <= arc.needed_step < n:
            yield f"a spill from step {arc.evict_step} to {arc.needed_step} of {n} steps"
    for r in result.residencies:
        yield from _within("place of a residency", [r.address, r.size_bytes])
        if not 0 <= r.start_step <= r.end_step <= n:
            yield f"a residency from step {r.start_step} to {r.end_step} of {n} steps"
        if not 0 <= (r.start_s or 0.0) <= (r.start_s or 0.0 if r.end_s is None else r.end_s):
            yield "a residency that ends before it starts"
    for e in result.events:
        yield from _within("step of an event", [e.step, 0 if e.needed_step is None else e.needed_step], 2 * n)
        yield from _within("size of an event", [e.size_bytes])
        if not 0 <= (e.start_s or 0.0) <= (e.start_s or 0.0 if e.end_s is None else e.end_s):
            yield "an event that ends before it starts"
    if result.times is not None:
        yield from _time_faults(result.times, n, len(result.events))


def _time_faults(times: RunTimes, n: int, n_events: int) -> Iterator[str]:
    for name in ("step_start_s", "step_end_s", "step_core", "stall_s", "stall_event"):
        yield from _same(f"values in times.{name}", len(getattr(times, name)), n)
    for name in ("bus_read_bytes_per_s", "bus_write_bytes_per_s", "bus_background_bytes_per_s"):
        yield from _same(f"values in times.{name}", len(getattr(times, name)), len(times.bus_time_s))
    yield from _within("event that is waited for", (k + 1 for k in times.stall_event), n_events)
    yield from _within("core", times.step_core, n)
    if any(not 0 <= a <= b for a, b in zip(times.step_start_s, times.step_end_s, strict=False)):
        yield "a step that ends before it starts"
    if any(s < 0 for s in times.stall_s):
        yield "a stall of less than no time"


def _same(what: str, found: int, expected: int) -> Iterator[str]:
    if found != expected:
        yield f"{found:,} {what}, where {expected:,} belong"


def _within(what: str, values: Iterable[int | None], largest: int | None = None) -> Iterator[str]:
    for value in values:
        if value is not None and (value < 0 or (largest is not None and value > largest)):
            yield f"{what} is {value:,}"


def _known_kinds(buffers: Iterable[BufferFact | LiveBuffer | BufferCost | Residency]) -> Iterator[str]:
    for buffer in buffers:
        if buffer.kind not in _KINDS:
            yield f"a buffer of kind '{buffer.kind[:40]}'"


def _positive(what: str, values: Iterable[float]) -> Iterator[str]:
    yield from (f"{what} is {value:,}" for value in values if value <= 0)
