"""Renders a layout as text, as CSV in the format of google/minimalloc, and as JSON."""

import csv
from collections import Counter
from io import StringIO
from typing import Any

from spillprof.frontends.minimalloc import IGNORED_COLUMNS, PROBLEM_COLUMNS
from spillprof.ir.layout_problem import Layout, LayoutBuffer, LayoutProblem
from spillprof.ir.plan import COMPLETE
from spillprof.ir.profile import Profile
from spillprof.ir.program import PHASES_PER_STEP
from spillprof.ir.units import format_size_exact
from spillprof.report.exports.recorded import leading_run
from spillprof.report.table import Table
from spillprof.report.text import label


def render_csv(problem: LayoutProblem, layout: Layout | None) -> str:
    """``id,lower,upper,size``, and ``offset`` where there is a layout, in the problem's order."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(PROBLEM_COLUMNS if layout is None else (*PROBLEM_COLUMNS, *IGNORED_COLUMNS))
    for k, b in enumerate(problem.buffers):
        row = (b.name, b.lower, b.upper, b.size_bytes)
        writer.writerow(row if layout is None else (*row, layout.offsets[k]))
    return text.getvalue()


def render_residencies(profile: Profile) -> str:
    """Writes the residencies of the leading strategy as a problem for other allocators. Time is in ticks.

    ``ProfileError`` if the profile was saved without events.
    """
    run = leading_run(profile)
    seen: Counter[str] = Counter()
    buffers = []
    for residency in run.result.residencies if run is not None else ():
        lower, upper = (round(PHASES_PER_STEP * step) for step in (residency.start_step, residency.end_step))
        name = f"{residency.buffer}@{lower}"
        seen[name] += 1
        buffers.append(
            LayoutBuffer(
                name=name if seen[name] == 1 else f"{name}#{seen[name]}",
                lower=lower,
                upper=upper,
                size_bytes=residency.size_bytes,
            )
        )
    return render_csv(LayoutProblem(buffers=tuple(buffers)), None)


def render(problem: LayoutProblem, layout: Layout, *, name: str, sram_bytes: int | None) -> str:
    """Summarises peak, lower bound, and whether the layout fits."""
    over = layout.peak_bytes - layout.lower_bound_bytes
    share = f" ({over / layout.lower_bound_bytes:+.1%} of the bound)" if over else " (as low as can be)"
    if sram_bytes is not None and layout.lower_bound_bytes < layout.peak_bytes <= sram_bytes:
        share = ""  # the search stopped when it fit
    facts = [
        ("peak", f"{format_size_exact(layout.peak_bytes)}{share}"),
        ("lower bound", f"{format_size_exact(layout.lower_bound_bytes)}   most bytes live at once"),
        ("found by", f"{layout.found_by}{'' if layout.search == COMPLETE else f'; the search: {layout.search}'}"),
    ]
    if sram_bytes is not None:
        facts.insert(1, ("SRAM", f"{format_size_exact(sram_bytes)}   {_fits(layout, sram_bytes)}"))
    head = f"{label(name)}   {len(problem.buffers):,} buffers, align {problem.alignment_bytes} B"
    return "\n".join([head, *Table(cells=facts, align="ll").lines(indent=2)]) + "\n"


def to_json(problem: LayoutProblem, layout: Layout, *, sram_bytes: int | None) -> dict[str, Any]:
    """Returns the layout as JSON values; ``fits`` is null without a memory size."""
    return {
        "schema": "spillprof-layout/1",
        "alignment_bytes": problem.alignment_bytes,
        "sram_bytes": sram_bytes,
        "peak_bytes": layout.peak_bytes,
        "lower_bound_bytes": layout.lower_bound_bytes,
        "fits": None if sram_bytes is None else layout.peak_bytes <= sram_bytes,
        "found_by": layout.found_by,
        "cut_off": layout.search != COMPLETE,
        "search": layout.search,
        "buffers": [
            {"id": b.name, "lower": b.lower, "upper": b.upper, "size_bytes": b.size_bytes, "offset": offset}
            for b, offset in zip(problem.buffers, layout.offsets, strict=True)
        ],
    }


def _fits(layout: Layout, sram_bytes: int) -> str:
    if layout.peak_bytes <= sram_bytes:
        return "it fits"
    if layout.lower_bound_bytes > sram_bytes:
        return "it cannot fit: more is live at once"
    return "it does not fit as found"
