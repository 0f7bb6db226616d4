"""The curve of a Profile over the size of the SRAM: rows, figures, table, sentences, and the sweep that shows more."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import log10
from typing import Any

from spillprof.ir.profile import Profile
from spillprof.ir.units import format_size, format_size_exact, format_size_pair, format_time, size_word
from spillprof.report.page import DataTable, make_table
from spillprof.report.profile.step_figures import MIB, Figure
from spillprof.report.sweep.figures import curve_figure
from spillprof.report.text import count_of, label
from spillprof.studies.sweep.curves import Cliff, Knee, cliffs, knees
from spillprof.studies.sweep.rows import OK, Row

_TALLEST = 8
"""The y axis ends at this multiple of the spill bytes at the present size."""


_NOISE = 0.01
"""Smallest relative rise of latency that counts as a cliff; the ideal latency of each size is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeSection:
    """Figures, sentences and table about other sizes of memory. Without figures, ``sentences`` says why."""

    figures: tuple[tuple[Figure, str, str], ...]  # with title and sentence
    sentences: tuple[str, ...]
    table: DataTable


def size_section(profile: Profile) -> SizeSection:
    """Draws spill bytes and latency over the size of the SRAM."""
    rows = size_rows(profile)
    if not rows:
        return SizeSection(figures=(), sentences=(_absent(profile),), table=_table(()))
    falls = [fall for fall in cliffs(rows) if fall.metric != "latency_s" or fall.rise > _NOISE]
    found = knees(rows), falls
    words = _spill_words(rows, found[0]), _latency_words(profile, rows, found[0])
    figures = (
        (_spill_figure(profile, rows, *found), "Spill bytes over the size of the memory", words[0]),
        (_latency_figure(profile, rows, *found), "Latency over the size of the memory", words[1]),
    )
    return SizeSection(figures=figures, sentences=tuple(_answers(profile, rows, found[1])), table=_table(rows))


def size_rows(profile: Profile) -> tuple[Row, ...]:
    """Converts the points to rows of a sweep. A run that spills nothing gets spill time 0."""
    if profile.size_curve is None:
        return ()
    points = profile.size_curve.points
    fastest = min((p.latency_s for p in points if p.latency_s is not None), default=0.0)
    return tuple(
        Row(
            model=profile.model.path,
            target=profile.target.name,
            strategy=point.strategy,
            placement=str(profile.config.get("placement", "")),
            sram_bytes=point.sram_bytes,
            spill_bytes=point.spill_bytes,
            latency_s=point.latency_s,
            spill_time_s=None if point.latency_s is None else point.latency_s - fastest if point.spill_bytes else 0.0,
            spill_bytes_lower=point.spill_bytes_lower,
            status=OK if point.reason is None else point.reason,
        )
        for point in points
    )


def _absent(profile: Profile) -> str:
    curve = profile.size_curve
    if curve is None:
        return "Other sizes of memory were not tried (--what-if off)."
    return f"Other sizes of memory were not tried: {label(curve.left_out, 200) or 'none was asked for'}."


def _spill_figure(profile: Profile, rows: Sequence[Row], found: Sequence[Knee], falls: Sequence[Cliff]) -> Figure:
    drawn = curve_figure(profile.model.min_sram_bytes, rows, "spill_bytes", found, falls)
    drawn = _marked(drawn, profile.target.sram_bytes)
    here = max((r.spill_bytes or 0 for r in rows if r.sram_bytes == profile.target.sram_bytes), default=0)
    most = max((r.spill_bytes or 0 for r in rows), default=0)
    notes = [drawn.note] if drawn.note else []
    if 0 < _TALLEST * here < most:
        drawn.layout["yaxis"]["range"] = [0, _TALLEST * here / MIB]
        notes.append(f"Values above {format_size(_TALLEST * here)} leave the drawing; they are in the table.")
    proven = next((r.spill_bytes_lower for r in rows if r.sram_bytes == profile.target.sram_bytes), None)
    if proven is not None and profile.bounds is not None and proven < profile.bounds.spill_bytes_lower:
        exact = format_size_pair(profile.bounds.spill_bytes_lower, proven)
        notes.append(
            f"The bound drawn is proven by quick methods: {exact[1]} in this memory; all methods prove {exact[0]}."
        )
    return replace(drawn, note=" ".join(notes))


def _latency_figure(profile: Profile, rows: Sequence[Row], found: Sequence[Knee], falls: Sequence[Cliff]) -> Figure:
    without_ideal = [replace(row, spill_time_s=None) for row in rows]  # which was not run in each size
    drawn = curve_figure(profile.model.min_sram_bytes, without_ideal, "latency_s", found, falls)
    return _marked(drawn, profile.target.sram_bytes)


def _marked(figure: Figure, here: int) -> Figure:
    """Adds a vertical line at the size of this run."""
    line = {"type": "line", "xref": "x", "yref": "paper", "x0": here, "x1": here, "y0": 0, "y1": 1,
            "line": {"color": "#8b929c", "width": 1.2, "dash": "dot"}}  # fmt: skip
    words = {"xref": "x", "yref": "paper", "x": log10(here), "y": 1, "text": "this run", "showarrow": False,
             "xanchor": "left", "xshift": 3, "yanchor": "top"}  # fmt: skip
    layout: dict[str, Any] = {**figure.layout, "annotations": [*figure.layout.get("annotations", ()), words]}
    layout["shapes"] = [*figure.layout["shapes"], line]
    return replace(figure, key=f"sizes-{figure.key}", layout=layout)


def _answers(profile: Profile, rows: Sequence[Row], falls: Sequence[Cliff]) -> list[str]:
    """States which size suffices, which are too small, and where more memory spills more."""
    told = [_enough(profile, rows), _too_little(profile, rows)]
    steps = [fall for fall in falls if fall.metric == "spill_bytes"]
    if steps:
        worst = steps[0]
        low, high = format_size_pair(worst.sram_bytes, worst.larger_sram_bytes)
        before, after = format_size_pair(int(worst.value), int(worst.larger_value))
        more = f"; {count_of(len(steps) - 1, 'smaller cliff')} beside it" if len(steps) > 1 else ""
        told.append(
            f"More memory is not always better: in {high}, {after} spill under {worst.strategy}, in {low} only "
            f"{before}{more}."
        )
    return [sentence for sentence in told if sentence]


def _enough(profile: Profile, rows: Sequence[Row]) -> str:
    """States the smallest size from which on nothing spills, under the first strategy drawn."""
    own = [row for row in rows if row.strategy == rows[0].strategy]
    first = _first_enough(own)
    if first is None:
        spilled = "it cannot run" if own[-1].spill_bytes is None else f"{format_size(own[-1].spill_bytes)} spill"
        return f"No size that was tried is enough: in {format_size(own[-1].sram_bytes)}, the largest, {spilled}."
    sram_bytes, here = own[first].sram_bytes, profile.target.sram_bytes
    if first == 0:
        return f"Nothing spills under {own[0].strategy} in any size tried: {format_size(sram_bytes)} are enough."
    beside = "this memory" if sram_bytes == here else f"{sram_bytes / here:.2f} × this memory"
    below = own[first - 1]
    less = "it cannot run" if below.spill_bytes is None else f"{format_size(below.spill_bytes)} spill"
    return (
        f"Nothing spills under {below.strategy} from {format_size(sram_bytes)} on ({beside}); in "
        f"{format_size(below.sram_bytes)}, {less}."
    )


def enough(profile: Profile) -> tuple[int, str] | None:
    """Returns (bytes, strategy) of the smallest tried size from which on nothing spills, or None."""
    rows = size_rows(profile)
    own = [row for row in rows if row.strategy == rows[0].strategy]
    first = _first_enough(own)
    return None if first is None else (own[first].sram_bytes, own[first].strategy)


def _first_enough(own: Sequence[Row]) -> int | None:
    """Position of the first row after the last that spills or fails, by size."""
    first = max((k + 1 for k, row in enumerate(own) if row.spill_bytes != 0), default=0)
    return first if first < len(own) else None


def _too_little(profile: Profile, rows: Sequence[Row]) -> str:
    """States below which size nothing runs, and below which operators are tiled."""
    runs = [row.sram_bytes for row in rows if row.ok]
    tiles_below = profile.model.min_sram_bytes
    if not runs:
        return "It runs in none of the sizes tried."
    least = min(runs)
    failed = [row for row in rows if not row.ok and row.sram_bytes < least]
    if failed:
        largest = max(failed, key=lambda row: row.sram_bytes)
        exact = format_size_exact(least) if least == tiles_below else format_size(least)
        return f"It does not run in less than {exact}, grey: {label(largest.status, 200)}."
    if least < tiles_below:
        return f"In less than {format_size_exact(tiles_below)}, shaded, at least one operator is tiled through DRAM."
    return ""


def _spill_words(rows: Sequence[Row], found: Sequence[Knee]) -> str:
    """Describes the knee, and what a byte of memory saves on either side of it."""
    own = _drawn_first(rows)
    if not own:
        return "It runs in none of these sizes."
    least, most = own[0], own[-1]
    ends = format_size_pair(least.spill_bytes or 0, most.spill_bytes or 0)
    text = (
        f"Under {least.strategy} {ends[0]} spill in {format_size(least.sram_bytes)}, "
        f"{ends[1]} in {format_size(most.sram_bytes)}."
    )
    knee = next((k for k in found if k.metric == "spill_bytes" and k.strategy == least.strategy), None)
    if knee is None:
        return f"{text} No size stands out at which more memory stops paying."
    before = ((least.spill_bytes or 0) - knee.value) / (knee.sram_bytes - least.sram_bytes)
    after = (knee.value - (most.spill_bytes or 0)) / (most.sram_bytes - knee.sram_bytes)
    spilled = f"{format_size(int(knee.value))} spill" if knee.value else "nothing spills"
    saved = format_size(int(before * MIB)), format_size(max(int(after * MIB), 0))
    return (
        f"{text} The knee is at {format_size(knee.sram_bytes)}, where {spilled}: up to there each "
        f"MiB of memory saves {saved[0]}, from there on {saved[1] if after > 0 else 'nothing'}."
    )


def _latency_words(profile: Profile, rows: Sequence[Row], found: Sequence[Knee]) -> str:
    own = _drawn_first(rows)
    if not own:
        return "It runs in none of these sizes."
    fastest = min(own, key=lambda row: (row.latency_s or 0.0, row.sram_bytes))
    slowest = max(own, key=lambda row: row.latency_s or 0.0)
    here = next((row for row in own if row.sram_bytes == profile.target.sram_bytes), None)
    now = "" if here is None else f"{format_time(here.latency_s or 0.0)} in this memory under {here.strategy}; "
    knee = next((k for k in found if k.metric == "latency_s" and k.strategy == own[0].strategy), None)
    bend = "" if knee is None else f" The knee is at {format_size(knee.sram_bytes)}, {format_time(knee.value)}."
    return (
        f"{now}at best {format_time(fastest.latency_s or 0.0)} in {format_size(fastest.sram_bytes)}, at worst "
        f"{format_time(slowest.latency_s or 0.0)} in {format_size(slowest.sram_bytes)}.{bend}"
    )


def _drawn_first(rows: Sequence[Row]) -> list[Row]:
    """Returns the feasible rows of the first strategy drawn."""
    return [row for row in rows if row.ok and row.strategy == rows[0].strategy]


def _table(rows: Sequence[Row]) -> DataTable:
    return make_table(
        "Sizes of memory that were tried",
        "SRAM:size, strategy, spill bytes:size, lower bound:size, latency:time, why not",
        rows,
        lambda r: (r.sram_bytes, r.strategy, r.spill_bytes, r.spill_bytes_lower, r.latency_s,
                   None if r.ok else label(r.status, 120)),
    )  # fmt: skip


_WITH_VALUE = ("-o", "--output", "--sram", "--what-if", "--why", "--plan", "--save-order", "--top")
_FLAGS = ("--json", "--events", "--no-report")
"""Options of ``analyze`` that a sweep does not take, or that are set anew."""


def sweep_command(profile: Profile) -> str:
    """Turns the command line of ``analyze`` into one of ``sweep``; without one, uses the model alone."""
    sizes = ("--sram", _range(profile))
    try:
        words = shlex.split(profile.command)
        at = words.index("analyze")
    except ValueError:  # no command, or one with quotes that only some shells know
        return shlex.join(["spillprof", "sweep", profile.model.path, *sizes])
    settings = [f"{name}={shlex.quote(value)}" for name, _, value in (word.partition("=") for word in words[: at - 1])]
    return " ".join([*settings, "spillprof", shlex.join(["sweep", *_kept(words[at + 1 :]), *sizes])])


def _kept(words: Sequence[str]) -> Iterator[str]:
    rest = iter(words)
    for word in rest:
        if word in _WITH_VALUE:
            next(rest, None)
        elif word not in _FLAGS and word.partition("=")[0] not in _WITH_VALUE and not word.startswith("-o"):
            yield word


def _range(profile: Profile) -> str:
    """Returns the sizes to sweep: ``auto``, or from half the present size where operators are tiled."""
    here = profile.target.sram_bytes
    if here >= profile.model.min_sram_bytes:
        return "auto"
    return f"{size_word(max(here // 2, profile.target.alignment_bytes))}..{size_word(4 * here)}"
