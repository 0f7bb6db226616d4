"""Time by operator and stall, one profile a strategy and core, for speedscope (speedscope.app).

An operator's name is read as a path: ``/encoder/0/attn/MatMul`` lies in ``/encoder/0/attn``, which lies in
``/encoder/0``. What a step waited for lies in the step, under one name for each kind of transfer, so that the
"sandwich" view adds up all waiting for reloads.
"""

import json
from collections.abc import Iterator

from spillprof.ir.profile import Profile
from spillprof.report.exports.recorded import MAX_NAME, Recorded, all_runs
from spillprof.report.profile.verdict import lead_result, model_title
from spillprof.report.text import label

MAX_DEPTH = 12
_LEAST_S = 1e-13  # less between two moments is rounding
_IDLE = "(idle)"
_TAIL = "(transfers after the last step)"


def render(profile: Profile) -> str:
    """The profiles as JSON text. ``ProfileError`` if the profile was saved without events."""
    frames = _Frames()
    lead, active = lead_result(profile), 0
    profiles: list[dict[str, object]] = []
    stacks = [_stack(step.name, step.op_type, frames) for step in profile.steps]
    for run in all_runs(profile):
        if run.result is lead:
            active = len(profiles)
        cores = sorted(set(run.times.step_core))
        for core in cores:
            samples = list(_samples(run, core, stacks, frames))
            name = run.result.strategy if len(cores) == 1 else f"{run.result.strategy}, core {core}"
            profiles.append(
                {
                    "type": "sampled",
                    "name": name,
                    "unit": "seconds",
                    "startValue": 0,
                    "endValue": run.result.latency_s,
                    "samples": [stack for stack, _ in samples],
                    "weights": [weight for _, weight in samples],
                }
            )
    document = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": label(model_title(profile), MAX_NAME),
        "exporter": f"spillprof {profile.spillprof_version}",
        "activeProfileIndex": active,
        "shared": {"frames": [{"name": name} for name in frames.names]},
        "profiles": profiles,
    }
    return json.dumps(document, separators=(",", ":")) + "\n"


class _Frames:
    """Table of frame names without duplicates."""

    def __init__(self) -> None:
        self._index: dict[str, int] = {}

    def of(self, name: str) -> int:
        return self._index.setdefault(label(name, MAX_NAME), len(self._index))

    @property
    def names(self) -> list[str]:
        return list(self._index)


def _stack(name: str, op_type: str, frames: _Frames) -> list[int]:
    """Returns the scopes around an operator, then the operator."""
    parts = name[:10_000].split("/")
    ends = [k for k in range(1, len(parts)) if parts[k - 1]][: MAX_DEPTH - 1]
    scopes = [frames.of("/".join(parts[:k])) for k in ends]
    return [*scopes, frames.of(f"{op_type}  {label(name, MAX_NAME)}")]


def _samples(run: Recorded, core: int, stacks: list[list[int]], frames: _Frames) -> Iterator[tuple[list[int], float]]:
    """Yields (stack, seconds) in time order, covering the run."""
    times, now = run.times, 0.0
    own = [i for i, on in enumerate(times.step_core) if on == core]
    for i in sorted(own, key=lambda i: (times.step_start_s[i], i)):
        start, end = times.step_start_s[i], times.step_end_s[i]
        since = max(start - times.stall_s[i], now)
        yield from _weighed([frames.of(_IDLE)], since - now)
        position = times.stall_event[i]
        what = run.result.events[position].kind if position >= 0 else "other steps"
        yield from _weighed([*stacks[i], frames.of(f"stall: {what}")], start - since)
        yield from _weighed(stacks[i], end - start)
        now = max(now, end)
    last = max(times.step_end_s, default=0.0)
    yield from _weighed([frames.of(_IDLE)], last - now)
    yield from _weighed([frames.of(_TAIL)], run.result.latency_s - max(last, now))


def _weighed(stack: list[int], seconds: float) -> Iterator[tuple[list[int], float]]:
    if seconds > _LEAST_S:
        yield stack, seconds
