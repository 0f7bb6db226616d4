"""Tables of a profile as pandas DataFrames, and as CSV that is safe to open in a spreadsheet."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pandas as pd

from spillprof.ir.profile import Profile
from spillprof.report.exports.recorded import all_runs
from spillprof.report.profile.verdict import shown_cause
from spillprof.report.text import printable, spreadsheet_safe

_Row = tuple[Any, ...]

_OPERATOR_COLUMNS = (
    "strategy", "rank", "step", "name", "op_type", "spill_bytes", "spill_write_bytes", "spill_read_bytes",
    "streamed_bytes", "stall_s", "stall_buffer", "cause", "victims", "dram_bytes", "bound",
)  # fmt: skip
_BUFFER_COLUMNS = (
    "strategy", "rank", "name", "kind", "size_bytes", "start", "end", "uses", "spill_count", "spill_bytes",
)  # fmt: skip
_SPILL_COLUMNS = (
    "strategy", "buffer", "size_bytes", "last_use_step", "evict_step", "needed_step", "written", "reloaded", "cause",
    "idle_s", "wait_s",
)  # fmt: skip
_EVENT_COLUMNS = (
    "strategy", "kind", "buffer", "size_bytes", "step", "needed_step", "address", "issued_s", "start_s", "end_s",
)  # fmt: skip
_STEP_COLUMNS = (
    "strategy", "step", "name", "op_type", "core", "start_s", "end_s", "stall_s", "in_use_bytes", "live_bytes",
)  # fmt: skip
_SUGGESTION_COLUMNS = (
    "change", "argument", "strategy", "spill_bytes", "latency_s", "energy_j", "saves_s", "saves_bytes", "saves_j",
    "costs",
)  # fmt: skip
_SIZE_COLUMNS = ("sram_bytes", "strategy", "spill_bytes", "spill_bytes_lower", "latency_s", "reason")
_RESULT_COLUMNS = (
    "strategy", "feasible", "reason", "spill_bytes", "spill_write_bytes", "spill_read_bytes", "streamed_bytes",
    "spill_count", "reload_count", "clean_eviction_count", "fragmentation_spill_bytes", "compaction_count",
    "compaction_bytes", "peak_bytes", "latency_s", "spill_time_s", "serial_cost_s", "hidden_share", "energy_j",
)  # fmt: skip


def _operators(profile: Profile) -> Iterable[_Row]:
    """One row for each operator with a figure under each strategy, dearest first."""
    for result in profile.results:
        for rank, o in enumerate(result.operators, start=1):
            yield _row(o, _OPERATOR_COLUMNS, strategy=result.strategy, rank=rank, cause=shown_cause(o))


def _buffers(profile: Profile) -> Iterable[_Row]:
    """One row for each buffer that was spilled or streamed under each strategy, dearest first."""
    for result in profile.results:
        for rank, b in enumerate(result.buffers, start=1):
            yield _row(b, _BUFFER_COLUMNS, strategy=result.strategy, rank=rank)


def _spills(profile: Profile) -> Iterable[_Row]:
    """One row for each spill of a buffer that comes back, in the order in which they leave."""
    return (_row(a, _SPILL_COLUMNS, strategy=r.strategy) for r in profile.results for a in r.spills)


def _events(profile: Profile) -> Iterable[_Row]:
    """One row for each transfer, move and clean eviction. ``ProfileError`` if the profile was saved without them."""
    runs = all_runs(profile)
    return (_row(e, _EVENT_COLUMNS, strategy=run.result.strategy) for run in runs for e in run.result.events)


def _steps(profile: Profile) -> Iterable[_Row]:
    """One row a step: when it ran, and how full the memory was. ``ProfileError`` if that was not saved."""
    return (
        (
            run.result.strategy, i, printable(step.name), printable(step.op_type), run.times.step_core[i],
            run.times.step_start_s[i], run.times.step_end_s[i], run.times.stall_s[i], run.result.in_use_bytes[i],
            profile.live_bytes[i],
        )
        for run in all_runs(profile)
        for i, step in enumerate(profile.steps)
    )  # fmt: skip


def _suggestions(profile: Profile) -> Iterable[_Row]:
    """One row for each change that was simulated, best first."""
    return (_row(s, _SUGGESTION_COLUMNS) for s in profile.suggestions)


def _sizes(profile: Profile) -> Iterable[_Row]:
    """One row for each size of SRAM and strategy that was tried, by size; none where none was."""
    return (_row(point, _SIZE_COLUMNS) for point in (profile.size_curve.points if profile.size_curve else ()))


def _results(profile: Profile) -> Iterable[_Row]:
    """One row a strategy, in the order asked for."""
    return (_row(result, _RESULT_COLUMNS) for result in profile.results)


TABLES: Mapping[str, tuple[tuple[str, ...], Callable[[Profile], Iterable[_Row]]]] = {
    "operators": (_OPERATOR_COLUMNS, _operators),
    "buffers": (_BUFFER_COLUMNS, _buffers),
    "spills": (_SPILL_COLUMNS, _spills),
    "steps": (_STEP_COLUMNS, _steps),
    "events": (_EVENT_COLUMNS, _events),
    "suggestions": (_SUGGESTION_COLUMNS, _suggestions),
    "sizes": (_SIZE_COLUMNS, _sizes),
    "results": (_RESULT_COLUMNS, _results),
}
"""Columns and rows of each table, by name."""


def frame(profile: Profile, table: str) -> pd.DataFrame:
    """A table with printable names; ``ProfileError`` if it needs events and the profile was saved without them."""
    columns, rows = TABLES[table]
    # Object columns: integers stay exact, and a missing name stays None.
    return pd.DataFrame(list(rows(profile)), columns=list(columns), dtype=object)


def render(profile: Profile, *, table: str) -> str:
    """A table as CSV: bytes as integers, seconds as floats, every text cell on one line.

    Cells that a spreadsheet would run as a formula begin with an apostrophe.
    """
    made = frame(profile, table)
    for column in made.columns:
        cells = [spreadsheet_safe(value) if isinstance(value, str) else value for value in made[column]]
        made[column] = pd.Series(cells, dtype=object)  # integers stay integers beside a missing one
    text: str = made.to_csv(index=False, lineterminator="\n")
    return text


def _row(record: Any, columns: tuple[str, ...], **own: Any) -> _Row:
    """Cells of ``columns``: values of ``own``, else fields of the record. Sequences are joined by blanks."""
    return tuple(_cell(own[column] if column in own else getattr(record, column)) for column in columns)


def _cell(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return " ".join(printable(str(item)) for item in value)
    return printable(value) if isinstance(value, str) else value
