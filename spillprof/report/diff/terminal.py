"""The page that ``diff`` prints: verdict, figures, what moved and why, what differs. Fits 80 columns."""

from collections.abc import Iterator, Sequence

from spillprof.ir.metric import Metric
from spillprof.ir.units import format_size
from spillprof.report.diff.heads import (
    alone,
    both_run,
    buffers_title,
    operators_title,
    run_heads,
    source_parts,
    step_of,
)
from spillprof.report.diff.wording import (
    OUTCOMES,
    buffer_reason,
    difference_words,
    figure_rows,
    matching_sentence,
    operator_reason,
    shown_differences,
    source_sentence,
    strategy_title,
    verdict,
)
from spillprof.report.gate.wording import growth
from spillprof.report.narrow import wrapped
from spillprof.report.scales import Scale, size_scale, time_scale
from spillprof.report.text import cells, count_of, label, ljust, rjust
from spillprof.studies.diff import BufferChange, Comparison, OperatorChange, StrategyChange

DEFAULT_WIDTH = 100
MIN_WIDTH = 80
MAX_SOURCES = 3
MAX_DIFFERENCES = 20
MAX_ALONE = 5


def render(comparison: Comparison, *, top: int = 10, width: int | None = None) -> str:
    """The page as text, newline at the end, with ``top`` operators and buffers. Deterministic."""
    page = max(MIN_WIDTH, width or DEFAULT_WIDTH)
    lines: list[str] = []
    for part in _parts(comparison, top, page):
        lines += ["", *part] if lines and part else part
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _parts(comparison: Comparison, top: int, width: int) -> Iterator[list[str]]:
    yield _runs(comparison)
    yield wrapped(verdict(comparison), width, others="  ")
    if not comparison.strategies:
        return
    lead = comparison.strategies[0]
    if both_run(lead):
        yield _figures(comparison, lead)
    yield _strategies(comparison)
    yield _causes(lead, width)
    yield _sources(lead, width)
    yield _operators(lead, top, width)
    yield _buffers(lead, top, width)
    yield _alone(comparison, width)
    yield _differences(comparison, width)
    yield [line for text in comparison.warnings for line in _wrapped(f"warning: {text}", width)]


def _runs(comparison: Comparison) -> list[str]:
    rows = [(head.which, head.name, head.sram, label(head.target, 16)) for head in run_heads(comparison, 36)]
    widths = [max(cells(row[k]) for row in rows) for k in range(4)]
    return ["  ".join(ljust(cell, width) for cell, width in zip(row, widths, strict=True)) for row in rows]


def _figures(comparison: Comparison, lead: StrategyChange) -> list[str]:
    rows = [(strategy_title(lead), "before", "after", "change"), *figure_rows(comparison, lead)]
    widths = [max(len(row[k]) for row in rows) for k in range(3)]
    return [f"  {a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}  {d}" for a, b, c, d in rows]


def _strategies(comparison: Comparison) -> list[str]:
    if len(comparison.strategies) < 2:
        return []
    spills = [_pair(s, "spill_bytes") for s in comparison.strategies]
    times = [_pair(s, "latency_s") for s in comparison.strategies]
    sizes = size_scale([round(value) for pair in spills for value in pair if value is not None])
    scale = time_scale([value for pair in times for value in pair])
    rows = [("all strategies", "spill bytes before", "after", "latency before", "after", "")]
    for change, spilled, latency in zip(comparison.strategies, spills, times, strict=True):
        cells = [sizes.text(value) for value in spilled] + [scale.text(value) for value in latency]
        rows.append((strategy_title(change), cells[0], cells[1], cells[2], cells[3], OUTCOMES[change.outcome]))
    widths = [max(len(row[k]) for row in rows) for k in range(6)]
    return [
        "  " + "  ".join([row[0].ljust(widths[0]), *(row[k].rjust(widths[k]) for k in range(1, 5)), row[5]])
        for row in rows
    ]


def _pair(change: StrategyChange, field: str) -> tuple[float | None, float | None]:
    return (
        getattr(change.before, field) if change.before.feasible else None,
        getattr(change.after, field) if change.after.feasible else None,
    )


def _causes(lead: StrategyChange, width: int) -> list[str]:
    parts = [f"{c.cause} {growth(Metric.PEAK, c.before_bytes, c.after_bytes)}" for c in lead.causes if c.delta_bytes]
    return _wrapped("why: " + " · ".join(part.replace(", from 0", "") for part in parts), width) if parts else []


def _sources(lead: StrategyChange, width: int) -> list[str]:
    lines = []
    for words, total, sources in source_parts(lead):
        lines.append(f"{words} ({format_size(total)})")
        for source in sources[:MAX_SOURCES]:
            share = f"{format_size(source.share_bytes)} of it"
            lines += _wrapped(f"{share}: {source_sentence(source)}", width)
        if len(sources) > MAX_SOURCES:
            lines.append(f"  ... {len(sources) - MAX_SOURCES:,} more with smaller parts")
    return lines


def _operators(lead: StrategyChange, top: int, width: int) -> list[str]:
    if not lead.operators:
        return []
    rows = lead.operators[:top]
    sizes = _scale(rows)
    times = time_scale([change.delta_s for change in rows])
    room = _name_width(width)
    table = [("", "before", "after", "change", "stall")]
    for change in rows:
        step = step_of(change)
        name = f"#{step} {label(change.name, room - len(str(step)) - 2)}"
        table.append((name, *_sizes(sizes, change), _signed(times, change.delta_s)))
    lines = _table(table, [operator_reason(change) for change in rows], width)
    return [operators_title(lead), *lines, *_more(len(lead.operators) - len(rows), top)]


def _buffers(lead: StrategyChange, top: int, width: int) -> list[str]:
    if not lead.buffers:
        return []
    rows = lead.buffers[:top]
    sizes = _scale(rows)
    table = [("", "before", "after", "change", "spills")]
    for change in rows:
        spills = f"{change.spill_count_before:,} → {change.spill_count_after:,}"
        table.append((label(change.name, _name_width(width)), *_sizes(sizes, change), spills))
    lines = _table(table, [buffer_reason(change) for change in rows], width)
    return [buffers_title(lead), *lines, *_more(len(lead.buffers) - len(rows), top)]


def _name_width(width: int) -> int:
    """What four columns of figures leave for names."""
    return max(20, min(48, width - 58))


def _scale(rows: Sequence[OperatorChange | BufferChange]) -> Scale:
    return size_scale([nbytes for row in rows for nbytes in (row.spill_bytes_before, row.spill_bytes_after)])


def _sizes(scale: Scale, change: OperatorChange | BufferChange) -> tuple[str, str, str]:
    return (
        scale.text(change.spill_bytes_before),
        scale.text(change.spill_bytes_after),
        _signed(scale, change.delta_bytes),
    )


def _table(rows: Sequence[tuple[str, ...]], reasons: Sequence[str], width: int) -> list[str]:
    widths = [max(cells(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = []
    for row, reason in zip(rows, ("", *reasons), strict=True):
        placed = [ljust(row[0], widths[0]), *(rjust(cell, w) for cell, w in zip(row[1:], widths[1:], strict=True))]
        lines.append("  " + "  ".join(placed))
        if reason:
            lines += wrapped(reason, width, first=" " * 6, others=" " * 8)
    return lines


def _alone(comparison: Comparison, width: int) -> list[str]:
    lines = _wrapped(matching_sentence(comparison), width, indent="")
    for word, found in alone(comparison):
        names = ", ".join(f"#{n.step} {label(n.name, 40)} ({label(n.op_type, 20)})" for n in found[:MAX_ALONE])
        more = f" and {len(found) - MAX_ALONE:,} more" if len(found) > MAX_ALONE else ""
        lines += _wrapped(f"{word}: {names}{more}", width)
    return lines


def _differences(comparison: Comparison, width: int) -> list[str]:
    found = shown_differences(comparison)
    if not found:
        return []
    lines = ["What differs"]
    for name, before, after in map(difference_words, found[:MAX_DIFFERENCES]):
        lines += _wrapped(f"{name}: {before} → {after}", width)
    if len(found) > MAX_DIFFERENCES:
        lines.append(f"  ... {count_of(len(found) - MAX_DIFFERENCES, 'more setting')}: see -o FILE.json")
    return lines


def _signed(scale: Scale, delta: float) -> str:
    return f"{'−' if delta < 0 else '+'}{scale.text(abs(delta))}" if delta else "0"


def _more(hidden: int, top: int) -> list[str]:
    return [f"    ... {hidden:,} more (--top {top + hidden})"] if hidden > 0 else []


def _wrapped(text: str, width: int, *, indent: str = "  ") -> list[str]:
    return wrapped(text, width, first=indent, others=f"{indent}  ")
