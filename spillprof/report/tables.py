"""Tables of a Profile as pandas DataFrames, and as CSV that is safe to open in a spreadsheet."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from spillprof.model.profile import Profile
from spillprof.report.text import printable
from spillprof.report.verdict import shown_cause

OPERATOR_COLUMNS = (
    "strategy", "rank", "step", "name", "op_type", "spill_bytes", "spill_write_bytes", "spill_read_bytes",
    "streamed_bytes", "stall_s", "stall_buffer", "cause", "victims", "dram_bytes", "bound",
)  # fmt: skip
BUFFER_COLUMNS = (
    "strategy", "rank", "name", "kind", "size_bytes", "start", "end", "uses", "spill_count", "spill_bytes",
)  # fmt: skip
RESULT_COLUMNS = (
    "strategy", "feasible", "reason", "spill_bytes", "spill_write_bytes", "spill_read_bytes", "streamed_bytes",
    "spill_count", "reload_count", "clean_eviction_count", "fragmentation_spill_bytes", "compaction_count",
    "compaction_bytes", "peak_bytes", "latency_s", "spill_time_s", "serial_cost_s", "hidden_share", "energy_j",
)  # fmt: skip
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def render_csv(profile: Profile) -> str:
    """The operators table as CSV: bytes as integers, seconds as floats, every text cell on one line.

    Cells that a spreadsheet would run as a formula begin with an apostrophe.
    """
    table = operators_table(profile)
    for column in ("strategy", "name", "op_type", "stall_buffer", "cause", "victims"):
        table[column] = [None if value is None else _spreadsheet_safe(value) for value in table[column]]
    text: str = table.to_csv(index=False, lineterminator="\n")
    return text


def operators_table(profile: Profile) -> pd.DataFrame:
    """One row for each operator with a figure under each strategy, dearest first. Names are made printable."""
    return _frame(
        OPERATOR_COLUMNS,
        (
            (
                result.strategy, rank, o.step, printable(o.name), printable(o.op_type),
                o.spill_write_bytes + o.spill_read_bytes + o.streamed_bytes, o.spill_write_bytes, o.spill_read_bytes,
                o.streamed_bytes, o.stall_s, None if o.stall_buffer is None else printable(o.stall_buffer),
                shown_cause(o),
                " ".join(printable(victim) for victim in o.victims), o.dram_bytes, o.bound,
            )
            for result in profile.results
            for rank, o in enumerate(result.operators, start=1)
        ),
    )  # fmt: skip


def buffers_table(profile: Profile) -> pd.DataFrame:
    """One row for each buffer that was spilled or streamed under each strategy, dearest first."""
    return _frame(
        BUFFER_COLUMNS,
        (
            (
                result.strategy, rank, printable(b.name), b.kind, b.size_bytes, b.start, b.end,
                " ".join(map(str, b.uses)), b.spill_count, b.spill_bytes,
            )
            for result in profile.results
            for rank, b in enumerate(result.buffers, start=1)
        ),
    )  # fmt: skip


def results_table(profile: Profile) -> pd.DataFrame:
    """One row a strategy, in the order asked for."""
    return _frame(RESULT_COLUMNS, ([getattr(result, key) for key in RESULT_COLUMNS] for result in profile.results))


def _frame(columns: tuple[str, ...], rows: Iterable[Any]) -> pd.DataFrame:
    # Object columns: integers stay exact, and a missing name stays None.
    return pd.DataFrame(list(rows), columns=list(columns), dtype=object)


def _spreadsheet_safe(cell: str) -> str:
    return f"'{cell}" if cell.startswith(_FORMULA_STARTS) else cell
