"""Tables of the HTML report: the first rows are written as HTML, the rest travel as JSON and are shown by pages."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any

from spillprof.ir.profile import Profile
from spillprof.ir.result import OperatorCost, Result
from spillprof.ir.story import Absence
from spillprof.report.profile.demand import wanted_bytes
from spillprof.report.profile.step_figures import MAX_LIVE, largest_residencies
from spillprof.report.profile.story import COLUMNS as ABSENCE_COLUMNS
from spillprof.report.profile.story import absence_row
from spillprof.report.profile.verdict import shown_cause
from spillprof.report.scales import MISSING, Scale, energy_scale, size_scale, time_scale
from spillprof.report.text import label

HTML_ROWS = 100
"""Rows that are real HTML: they show without JavaScript and in print."""
MAX_ROWS = 500
"""Rows of an interactive table at most; what is left out is said, and is in the JSON and CSV output."""
BRIEF_ROWS = 20
"""Rows of the table view of a figure."""


class Kind(StrEnum):
    """How a column's values are written and sorted."""

    TEXT = "text"
    COUNT = "count"
    SIZE = "size"  # bytes
    TIME = "time"  # seconds
    ENERGY = "energy"  # joules


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column; ``scale`` is that of sizes, times and energies."""

    title: str
    kind: Kind
    scale: Scale | None

    @property
    def is_name(self) -> bool:
        """Whether the cells are names of operators or buffers, which want room."""
        return self.title in ("operator", "buffer")

    def text(self, value: Any) -> str:
        """The cell as shown."""
        if value is None:
            return MISSING
        if self.scale is not None:
            return self.scale.text(value)
        return f"{value:,}" if self.kind is Kind.COUNT else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTable:
    """Rows of raw values: names made printable, sizes in bytes, times in seconds, energies in joules."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    total: int  # rows before the cut

    def to_json(self) -> dict[str, Any]:
        """Columns and all rows, for the page's script."""
        columns = [
            {"title": c.title, "kind": str(c.kind), "name": c.is_name}
            | ({"unit": c.scale.unit, "factor": c.scale.factor, "decimals": c.scale.decimals} if c.scale else {})
            for c in self.columns
        ]
        return {"columns": columns, "rows": self.rows}


def operators_table(result: Result) -> DataTable:
    """Steps that cost something, dearest first."""
    return make_table(
        f"Operators by spill bytes under {result.strategy}",
        (("step", Kind.COUNT), ("operator", Kind.TEXT), ("type", Kind.TEXT), ("spill bytes", Kind.SIZE),
         ("written", Kind.SIZE), ("reloaded", Kind.SIZE), ("streamed", Kind.SIZE), ("stall", Kind.TIME),
         ("waits for", Kind.TEXT), ("bound by", Kind.TEXT), ("cause", Kind.TEXT), ("victims", Kind.TEXT)),
        result.operators,
        lambda o: (o.step, label(o.name, 64), label(o.op_type, 24), spill_bytes(o), o.spill_write_bytes,
                   o.spill_read_bytes, o.streamed_bytes, o.stall_s,
                   None if o.stall_buffer is None else label(o.stall_buffer, 32), o.bound, shown_cause(o),
                   _names(o.victims)),
    )  # fmt: skip


def buffers_table(result: Result) -> DataTable:
    """Buffers that were spilled or streamed, dearest first."""
    oscillating = {o.buffer for o in result.oscillations}
    return make_table(
        f"Buffers by spill bytes under {result.strategy}",
        (("buffer", Kind.TEXT), ("kind", Kind.TEXT), ("size", Kind.SIZE), ("first step", Kind.COUNT),
         ("last step", Kind.COUNT), ("uses", Kind.COUNT), ("spills", Kind.COUNT), ("spill bytes", Kind.SIZE),
         ("oscillates", Kind.TEXT)),
        result.buffers,
        lambda b: (label(b.name, 64), b.kind, b.size_bytes, b.start, b.end, len(b.uses), b.spill_count, b.spill_bytes,
                   "yes" if b.name in oscillating else None),
    )  # fmt: skip


def oscillations_table(result: Result) -> DataTable:
    """Buffers that come and go, and what a dedicated slot would change in the whole run."""
    return make_table(
        f"Oscillating buffers under {result.strategy}",
        (("buffer", Kind.TEXT), ("size", Kind.SIZE), ("spills", Kind.COUNT), ("its spill bytes", Kind.SIZE),
         ("all spill bytes if pinned", Kind.SIZE), ("latency if pinned", Kind.TIME), ("change", Kind.TIME),
         ("dedicated slot", Kind.TEXT)),
        result.oscillations,
        lambda o: (label(o.buffer, 64), o.size_bytes, o.spill_count, o.spill_bytes, o.pinned_spill_bytes,
                   o.pinned_latency_s, None if o.pinned_latency_s is None else o.pinned_latency_s - result.latency_s,
                   "not tried" if not o.tried else "does not fit" if o.pinned_latency_s is None else "re-simulated"),
    )  # fmt: skip


def memory_table(profile: Profile, result: Result) -> DataTable:
    """The greatest values in equal stretches of steps."""
    n, live = len(result.in_use_bytes), wanted_bytes(profile)
    edges = sorted({i * n // BRIEF_ROWS for i in range(BRIEF_ROWS + 1)})
    return make_table(
        "Greatest memory use by stretch of steps",
        (("from step", Kind.COUNT), ("to step", Kind.COUNT), ("in use", Kind.SIZE), ("live", Kind.SIZE)),
        tuple(pairwise(edges)),
        lambda stretch: (stretch[0], stretch[1] - 1, max(result.in_use_bytes[slice(*stretch)]),
                         max(live[slice(*stretch)], default=None)),
    )  # fmt: skip


def spills_table(result: Result) -> DataTable:
    """The dearest steps."""
    return make_table(
        "The dearest steps",
        (("step", Kind.COUNT), ("operator", Kind.TEXT), ("written", Kind.SIZE), ("reloaded", Kind.SIZE),
         ("streamed", Kind.SIZE)),
        result.operators,
        lambda o: (o.step, label(o.name, 48), o.spill_write_bytes, o.spill_read_bytes, o.streamed_bytes),
        limit=BRIEF_ROWS,
    )  # fmt: skip


def arcs_table(result: Result) -> DataTable:
    """Every spill and stretch off-chip after a streamed use, those first that keep most bytes away for longest."""
    heaviest = sorted(result.arcs, key=lambda a: -a.size_bytes * (a.needed_step - a.evict_step + 1))
    return make_table(
        f"Spills from eviction to reload under {result.strategy}",
        (("buffer", Kind.TEXT), ("size", Kind.SIZE), ("evicted at step", Kind.COUNT), ("needed at step", Kind.COUNT),
         ("steps between", Kind.COUNT), ("idle", Kind.TIME), ("waited", Kind.TIME), ("cause", Kind.TEXT),
         ("written back", Kind.TEXT)),
        heaviest,
        lambda a: (label(a.buffer, 48), a.size_bytes, a.evict_step, a.needed_step,
                   max(a.needed_step - a.evict_step - 1, 0), a.idle_s, a.wait_s, a.cause,
                   ("yes" if a.written else "no") if a.evicted else "streamed"),
    )  # fmt: skip


def addresses_table(result: Result) -> DataTable:
    """The residencies that hold most bytes for longest."""
    largest = sorted(largest_residencies(result), key=lambda r: -r.size_bytes * (r.end_step - r.start_step))
    return make_table(
        "The largest residencies (bytes x steps)",
        (("buffer", Kind.TEXT), ("kind", Kind.TEXT), ("from step", Kind.COUNT), ("to step", Kind.COUNT),
         ("address", Kind.COUNT), ("size", Kind.SIZE)),
        largest,
        lambda r: (label(r.buffer, 48), r.kind, int(r.start_step), int(r.end_step), r.address, r.size_bytes),
        limit=BRIEF_ROWS, total=len(result.residencies),
    )  # fmt: skip


def live_table(profile: Profile) -> DataTable:
    """What is live at the peak step."""
    return make_table(
        "Buffers live at the peak",
        (("buffer", Kind.TEXT), ("kind", Kind.TEXT), ("size", Kind.SIZE), ("first step", Kind.COUNT),
         ("last step", Kind.COUNT), ("at the peak", Kind.TEXT)),
        profile.peak_buffers,
        lambda b: (label(b.name, 48), b.kind, b.size_bytes, b.start, b.end, "used" if b.used_here else "waits"),
        limit=MAX_LIVE,
    )  # fmt: skip


def oversized_table(profile: Profile) -> DataTable:
    """Operators that cannot fit, largest demand first."""
    return make_table(
        "Operators too large for the memory",
        (("step", Kind.COUNT), ("operator", Kind.TEXT), ("needs at once", Kind.SIZE), ("streamed", Kind.SIZE),
         ("tiling could remove", Kind.SIZE)),
        sorted(profile.oversized, key=lambda o: -o.demand_bytes),
        lambda o: (o.step, label(o.name, 64), o.demand_bytes, o.streamed_bytes, o.tiling_could_remove_bytes),
        limit=HTML_ROWS,
    )  # fmt: skip


def recomputed_table(profile: Profile) -> DataTable:
    """Operators that run twice, in program order."""
    return make_table(
        "Operators that run twice",
        (("step", Kind.COUNT), ("makes again", Kind.TEXT), ("MACs", Kind.COUNT), ("computes", Kind.TIME),
         ("weights again", Kind.SIZE), ("transfers saved", Kind.SIZE)),
        profile.recomputed,
        lambda r: (r.step, label(r.buffer, 64), r.macs, r.compute_s, r.weight_bytes, r.saves_bytes + r.weight_bytes),
        limit=HTML_ROWS,
    )  # fmt: skip


def suggestions_table(profile: Profile) -> DataTable:
    """Re-simulated changes."""
    return make_table(
        "What would help most (each re-simulated)",
        (("change", Kind.TEXT), ("saves", Kind.TIME), ("latency", Kind.TIME), ("spill bytes", Kind.SIZE),
         ("saves bytes", Kind.SIZE), ("saves energy", Kind.ENERGY), ("under", Kind.TEXT), ("costs", Kind.TEXT)),
        profile.suggestions,
        lambda s: (label(s.argument, 400), s.saves_s, s.latency_s, s.spill_bytes, s.saves_bytes,
                   s.saves_j, s.strategy, label(s.costs, 80)),
        limit=HTML_ROWS,
    )  # fmt: skip


def absences_table(title: str, absences: Sequence[Absence]) -> DataTable:
    """Where a buffer was off-chip, or whom an operator pushed out."""
    return make_table(
        title,
        tuple((name, Kind.TEXT) for name in ("buffer", *ABSENCE_COLUMNS)),
        absences,
        lambda a: (label(a.buffer, 64), *absence_row(a, with_buffer=False)),
        limit=HTML_ROWS,
    )


def spill_bytes(operator: OperatorCost) -> int:
    """Write-backs, reloads and streamed bytes that a step is charged with."""
    return operator.spill_bytes


def make_table(
    caption: str,
    columns: Sequence[tuple[str, Kind]],
    items: Sequence[Any],
    row: Callable[[Any], tuple[Any, ...]],
    *,
    limit: int = MAX_ROWS,
    total: int | None = None,
) -> DataTable:
    """A table of one row an item, at most ``limit``, each column of sizes or times in one unit."""
    rows = tuple(row(item) for item in items[:limit])
    scales = {Kind.SIZE: size_scale, Kind.TIME: time_scale, Kind.ENERGY: energy_scale}
    described = tuple(
        Column(title=title, kind=kind, scale=scales[kind]([r[i] for r in rows]) if kind in scales else None)
        for i, (title, kind) in enumerate(columns)
    )
    return DataTable(caption=caption, columns=described, rows=rows, total=len(items) if total is None else total)


def _names(names: Sequence[str]) -> str:
    """The first three names, and how many more."""
    more = f" +{len(names) - 3}" if len(names) > 3 else ""
    return ", ".join(label(name, 32) for name in names[:3]) + more
