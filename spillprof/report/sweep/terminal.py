"""The page that ``sweep`` prints: one line a size, one column a strategy, and what follows from the curves."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from spillprof.ir.units import format_size_exact, format_time
from spillprof.report.scales import size_scale, time_scale
from spillprof.report.sweep.wording import (
    answer_sentence,
    by_place,
    cliff_sentence,
    knee_words,
    size_labels,
    title_of,
    unfinished,
)
from spillprof.report.table import Table
from spillprof.report.text import DEFAULT_WIDTH, count_of, label, wrapped
from spillprof.studies.sweep.result import CaseFacts, Sweep
from spillprof.studies.sweep.rows import Row

_MIN_WIDTH = 60
_MAX_CASES = 8
_MAX_SIZES = 40
_MAX_CLIFFS = 5
_MAX_FAILURES = 5
_MAX_CHOICES = 12
_BAR_WIDTH = 14
_MOST_BARS = 2
_TILED = "operators are tiled"


def render(sweep: Sweep, *, width: int | None = None) -> str:
    """Renders the page, at most ``width`` columns wide where its tables can be, and never more than DEFAULT_WIDTH."""
    width = max(_MIN_WIDTH, min(width or DEFAULT_WIDTH, DEFAULT_WIDTH))
    lines: list[str] = []
    for case in sweep.cases[:_MAX_CASES]:
        lines += [*_case(sweep, case, width), ""]
    hidden = len(sweep.cases) - _MAX_CASES
    if hidden > 0:
        lines += [f"... {count_of(hidden, 'more curve set')}: see -o FILE.csv or -o FILE.html", ""]
    lines += [*_for_all(sweep, width), *_cliffs(sweep, width), *_pareto(sweep), *_failures(sweep)]
    if not sweep.complete:
        lines += [f"{unfinished(sweep)}."]
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(line.rstrip() for line in lines) + "\n"


def rows_of(sweep: Sweep, case: CaseFacts) -> list[Row]:
    """Returns the rows of one case."""
    key = (case.model, tuple(case.dims.items()), tuple(case.settings.items()))
    return [r for r in sweep.rows if (r.model, tuple(r.dims.items()), tuple(r.settings.items())) == key]


def _case(sweep: Sweep, case: CaseFacts, width: int) -> Iterator[str]:
    rows = rows_of(sweep, case)
    yield f"{title_of(case.model, case.dims, case.settings)}   target {label(str(sweep.target['name']), 30)}"
    if case.min_sram_bytes is not None and case.ideal_peak_bytes is not None:
        yield from _wrapped(
            f"no operator is tiled from {format_size_exact(case.min_sram_bytes)} on; "
            f"the ideal run uses {format_size_exact(case.ideal_peak_bytes)}",
            width,
        )
    if not any(row.ok for row in rows):
        yield f"  no point could be simulated: {label(rows[0].status, 200)}" if rows else "  no point was finished"
        return
    yield from ["", *(f"  {line}" for line in _table(case, rows, width - 2))]
    marks = knee_words([k for k in sweep.knees if (k.model, k.dims, k.settings) == _group(case)])
    answers = [a for a in sweep.smallest if (a.model, a.dims, a.settings) == _group(case)]
    yield ""
    for answer in answers:
        yield from _wrapped(answer_sentence(answer), width)
    if marks:
        yield from _wrapped(f"knee: {marks}", width)


def _group(case: CaseFacts) -> tuple[object, ...]:
    return case.model, case.dims, case.settings


def _table(case: CaseFacts, rows: Sequence[Row], width: int) -> Iterator[str]:
    pairs = list(dict.fromkeys((row.strategy, row.placement) for row in rows))
    several = len({placement for _, placement in pairs}) > 1
    at = {(row.sram_bytes, row.strategy, row.placement): row for row in rows}
    sizes = sorted({row.sram_bytes for row in rows})
    shown = sizes[:_MAX_SIZES]
    spilled = size_scale([nbytes for row in rows for nbytes in (row.spill_bytes, row.spill_bytes_lower)])
    times = time_scale([row.latency_s for row in rows])
    most = max((row.spill_bytes or 0 for row in rows), default=0)
    heads = ("SRAM", *(f"{s}/{p}" if several else s for s, p in pairs), "lower bound", "fastest", "", "")
    lines, filled = [], []
    for sram_bytes, size in zip(shown, size_labels(shown), strict=True):
        cells = [size]
        own = [at[sram_bytes, *pair] for pair in pairs if (sram_bytes, *pair) in at]
        for pair in pairs:
            row = at.get((sram_bytes, *pair))
            cells.append("-" if row is None else spilled.text(row.spill_bytes) if row.ok else "failed")
        cells.append(spilled.text(max((row.spill_bytes_lower or 0 for row in own if row.ok), default=None)))
        real = [row for row in own if row.latency_s is not None]
        best = min(real, key=lambda row: row.latency_s or 0.0, default=None)
        cells += ["-", ""] if best is None else [times.text(best.latency_s), f"{best.strategy}"]
        tiled = case.min_sram_bytes is not None and sram_bytes < case.min_sram_bytes
        cells.append(_TILED if tiled and real else "")
        lines.append(cells)
        spilled_bytes = [(row and row.spill_bytes) or 0 for row in (at.get((sram_bytes, *pair)) for pair in pairs)]
        filled.append([round(_BAR_WIDTH * nbytes / most) if most else 0 for nbytes in spilled_bytes])
    long = Table(heads=heads, cells=lines, align="r" * (len(pairs) + 3) + "ll")
    short = replace(long, cells=[[*line[:-1], line[-1].replace(_TILED, "tiled")] for line in lines])
    choices = [long, short]
    if len(pairs) <= _MOST_BARS:
        choices = [_with_bars(long, filled), _with_bars(short, filled), short]
    yield from next((table for table in choices if table.width() <= width), short).lines(width=width)
    if len(sizes) > len(shown):
        yield f"... {count_of(len(sizes) - len(shown), 'more size')}: see -o FILE.csv or -o FILE.html"


def _with_bars(table: Table, filled: Sequence[Sequence[int]]) -> Table:
    """Inserts a column of bars after each strategy's column."""

    def widened(line: Sequence[str], bars: Sequence[int]) -> list[str]:
        figures = zip(line[1:], bars, strict=False)
        drawn = [cell for figure, bar in figures for cell in (figure, ("#" * bar).ljust(_BAR_WIDTH))]
        return [line[0], *drawn, *line[1 + len(bars) :]]

    count = len(filled[0])
    return Table(
        heads=widened(table.heads, [0] * count),
        cells=[widened(line, bars) for line, bars in zip(table.cells, filled, strict=True)],
        align="r" + "rl" * count + table.align[1 + count :],
    )


def _wrapped(sentence: str, width: int) -> list[str]:
    return wrapped(sentence, width, first="  ", others="    ")


def _for_all(sweep: Sweep, width: int) -> Iterator[str]:
    answers = [answer for answer in sweep.smallest if answer.model is None]
    if not answers:
        return
    yield "For all models"
    for answer in answers:
        where = title_of("", answer.dims, answer.settings)
        yield from _wrapped(f"{where}: {answer_sentence(answer)}" if where else answer_sentence(answer), width)
    yield ""


def _cliffs(sweep: Sweep, width: int) -> Iterator[str]:
    if not sweep.cliffs:
        return
    places = by_place(sweep.cliffs)
    yield f"{count_of(len(places), 'cliff')}: more memory, worse result"
    for cliff, others in places[:_MAX_CLIFFS]:
        yield from _wrapped(cliff_sentence(cliff, others), width)
    if len(places) > _MAX_CLIFFS:
        yield f"  ... {len(places) - _MAX_CLIFFS:,} more: see -o FILE.json or -o FILE.html"
    yield ""


def _pareto(sweep: Sweep) -> Iterator[str]:
    if len({case.model for case in sweep.cases}) < 2 and not any(case.settings for case in sweep.cases):
        return
    if not sweep.pareto:
        return
    what = "of all models together" if len({case.model for case in sweep.cases}) > 1 else "of size, latency and energy"
    yield f"Choices that no other beats, {what}"
    for choice in sweep.pareto[:_MAX_CHOICES]:
        size, where = format_size_exact(choice.sram_bytes), title_of("", choice.dims, choice.settings)
        yield (
            f"  {size}  {choice.strategy} {choice.placement}  {format_time(choice.latency_s)}  "
            f"{1e3 * choice.energy_j:.3g} mJ  {where}"
        )
    if len(sweep.pareto) > _MAX_CHOICES:
        yield f"  ... {len(sweep.pareto) - _MAX_CHOICES:,} more: see -o FILE.json or -o FILE.html"
    yield ""


def _failures(sweep: Sweep) -> Iterator[str]:
    failed = [row for row in sweep.rows if not row.ok]
    if not failed:
        return
    reasons: dict[tuple[str, str], int] = {}
    for row in failed:
        reasons[row.model, row.status] = reasons.get((row.model, row.status), 0) + 1
    yield f"{count_of(len(failed), 'point')} failed"
    for (model, status), count in list(reasons.items())[:_MAX_FAILURES]:
        yield f"  {count:,} of {label(model, 40)}: {label(status, 200)}"
    if len(reasons) > _MAX_FAILURES:
        yield f"  ... {len(reasons) - _MAX_FAILURES:,} more reasons: see -o FILE.csv"
    yield ""
