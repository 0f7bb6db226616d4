"""The JSON profile of ONNX Runtime: one event for each kernel that ran, in microseconds."""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

from spillprof.ir.errors import UsageError
from spillprof.ir.op_times import OpTimes
from spillprof.ir.side_files.json_text import parse_json
from spillprof.ir.side_files.kinds import TIMES

_KERNEL = "_kernel_time"


def read_profile(text: str, path: str) -> OpTimes:
    """Seconds of each node: what its kernel takes in one run, the median over the runs.

    A node in the body of a loop has several events a run, which are added up.
    """
    document = parse_json(text, TIMES, path, hint="a profile is complete only after end_profiling()")
    events = document.get("traceEvents") if isinstance(document, dict) else document
    if not isinstance(events, list):
        raise UsageError("the times are no profile of ONNX Runtime", where=(path,), hint="it is a list of events")
    known = [event for event in events if isinstance(event, dict)]
    starts = sorted(
        _microseconds(event, "ts", path)
        for event in known
        if event.get("cat") == "Session" and event.get("name") == "model_run"
    )
    by_run: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for name, event in _kernels(known):
        run = bisect_right(starts, _microseconds(event, "ts", path)) if starts else len(by_run[name])
        by_run[name][run] += _microseconds(event, "dur", path) * 1e-6
    if not by_run:
        raise UsageError(
            "the profile has no event of a node",
            where=(path,),
            hint="set enable_profiling of the session, and run the model at least once",
        )
    return OpTimes(source=path, times=tuple((name, median(runs.values())) for name, runs in by_run.items()))


def _kernels(events: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    for event in events:
        name = event.get("name")
        if event.get("cat") == "Node" and isinstance(name, str) and name.endswith(_KERNEL):
            yield name.removesuffix(_KERNEL), event


def _microseconds(event: Mapping[str, Any], key: str, path: str) -> float:
    value = event.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise UsageError(f"an event of '{event.get('name')}' has {key} = {value!r}", where=(path,))
    return float(value)
