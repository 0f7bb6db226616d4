"""A comparison as text that ``diff`` prints, at least 80 columns wide, and as a Markdown summary for comments."""

from collections.abc import Iterable, Iterator, Sequence

from spillprof.ir.metric import Metric
from spillprof.ir.units import format_size
from spillprof.report.diff.heads import (
    MAX_ALONE,
    MAX_DIFFERENCES,
    MAX_SOURCES,
    alone,
    both_run,
    buffers_title,
    operators_title,
    run_heads,
    source_parts,
    step_of,
    strategy_figures,
)
from spillprof.report.diff.wording import (
    OUTCOMES,
    buffer_reason,
    diff_verdict,
    difference_words,
    figure_rows,
    matching_sentence,
    operator_reason,
    shown_differences,
    source_sentence,
    strategy_title,
)
from spillprof.report.gate.wording import figures, growth
from spillprof.report.scales import Scale, size_scale, time_scale
from spillprof.report.table import Table
from spillprof.report.text import DEFAULT_WIDTH, code, count_of, label, plain, wrapped
from spillprof.studies.diff import BufferChange, Named, OperatorChange, ProfileDiff, StrategyChange

_MIN_WIDTH = 80


def render(comparison: ProfileDiff, *, top: int = 10, width: int | None = None) -> str:
    """Renders the page, newline at the end, with ``top`` operators and buffers. Deterministic."""
    page = max(_MIN_WIDTH, width or DEFAULT_WIDTH)
    lines: list[str] = []
    for part in _parts(comparison, top, page):
        lines += ["", *part] if lines and part else part
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _parts(comparison: ProfileDiff, top: int, width: int) -> Iterator[list[str]]:
    yield _runs(comparison)
    yield wrapped(diff_verdict(comparison), width, others="  ")
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


def _runs(comparison: ProfileDiff) -> list[str]:
    rows = [(head.which, head.name, head.sram, label(head.target, 16)) for head in run_heads(comparison, 36)]
    return Table(cells=rows, align="llll").lines()


def _figures(comparison: ProfileDiff, lead: StrategyChange) -> list[str]:
    heads = (strategy_title(lead), "before", "after", "change")
    return Table(heads=heads, cells=figure_rows(comparison, lead), align="lrrl").lines(indent=2)


def _strategies(comparison: ProfileDiff) -> list[str]:
    if len(comparison.strategies) < 2:
        return []
    spills = [_pair(s, "spill_bytes") for s in comparison.strategies]
    times = [_pair(s, "latency_s") for s in comparison.strategies]
    sizes = size_scale([round(value) for pair in spills for value in pair if value is not None])
    scale = time_scale([value for pair in times for value in pair])
    heads = ("all strategies", "spill bytes before", "after", "latency before", "after", "")
    rows = [
        (strategy_title(change), *map(sizes.text, spilled), *map(scale.text, latency), OUTCOMES[change.outcome])
        for change, spilled, latency in zip(comparison.strategies, spills, times, strict=True)
    ]
    return Table(heads=heads, cells=rows, align="lrrrrl").lines(indent=2)


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
    names = [f"#{step_of(c)} {label(c.name, room - len(str(step_of(c))) - 2)}" for c in rows]
    table = Table(
        heads=("", "before", "after", "change", "stall"),
        cells=[
            (name, *_sizes(sizes, change), _signed(times, change.delta_s))
            for name, change in zip(names, rows, strict=True)
        ],
        align="lrrrr",
    )
    lines = _with_reasons(table, [operator_reason(change) for change in rows], width)
    return [operators_title(lead), *lines, *_more(len(lead.operators) - len(rows), top)]


def _buffers(lead: StrategyChange, top: int, width: int) -> list[str]:
    if not lead.buffers:
        return []
    rows = lead.buffers[:top]
    sizes = _scale(rows)
    table = Table(
        heads=("", "before", "after", "change", "spills"),
        cells=[
            (
                label(c.name, _name_width(width)),
                *_sizes(sizes, c),
                f"{c.spill_count_before:,} → {c.spill_count_after:,}",
            )
            for c in rows
        ],
        align="lrrrr",
    )
    lines = _with_reasons(table, [buffer_reason(change) for change in rows], width)
    return [buffers_title(lead), *lines, *_more(len(lead.buffers) - len(rows), top)]


def _name_width(width: int) -> int:
    """Returns the width that four columns of figures leave for names."""
    return max(20, min(48, width - 58))


def _scale(rows: Sequence[OperatorChange | BufferChange]) -> Scale:
    return size_scale([nbytes for row in rows for nbytes in (row.spill_bytes_before, row.spill_bytes_after)])


def _sizes(scale: Scale, change: OperatorChange | BufferChange) -> tuple[str, str, str]:
    return (
        scale.text(change.spill_bytes_before),
        scale.text(change.spill_bytes_after),
        _signed(scale, change.delta_bytes),
    )


def _with_reasons(table: Table, reasons: Sequence[str], width: int) -> list[str]:
    """Lays out a table with a reason below each row."""
    lines = []
    for block, reason in zip(table.blocks(indent=2), ("", *reasons), strict=True):
        lines += [*block, *wrapped(reason, width, first=" " * 6, others=" " * 8)]
    return lines


def _alone(comparison: ProfileDiff, width: int) -> list[str]:
    lines = _wrapped(matching_sentence(comparison), width, indent="")
    for word, found in alone(comparison):
        names = ", ".join(f"#{n.step} {label(n.name, 40)} ({label(n.op_type, 20)})" for n in found[:MAX_ALONE])
        more = f" and {len(found) - MAX_ALONE:,} more" if len(found) > MAX_ALONE else ""
        lines += _wrapped(f"{word}: {names}{more}", width)
    return lines


def _differences(comparison: ProfileDiff, width: int) -> list[str]:
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


_TOP_OPERATORS = 10


def render_markdown(comparison: ProfileDiff) -> str:
    """The comparison as GitHub-flavoured Markdown, newline at the end. Names cannot break out of their cells."""
    return "\n".join(_summary(comparison)) + "\n"


def _summary(comparison: ProfileDiff) -> Iterable[str]:
    before, after = comparison.before, comparison.after
    yield f"### spill cost: {code(before.model)} → {code(after.model)}"
    yield ""
    yield plain(diff_verdict(comparison))
    yield ""
    if comparison.strategies:
        lead = comparison.strategies[0]
        if both_run(lead):
            heads = (strategy_title(lead), "before", "after", "change")
            yield from Table(heads=heads, cells=figure_rows(comparison, lead), align="lrrl").markdown()
            yield ""
        yield from _listed_sources(lead)
        yield from _operators_summary(lead)
        if len(comparison.strategies) > 1:
            yield from _strategies_summary(comparison)
    for word, named in alone(comparison):
        yield _listed_alone(word, named)
    found = shown_differences(comparison)
    for difference in found[:MAX_DIFFERENCES]:
        name, old, new = difference_words(difference)
        yield f"- {plain(name)}: {plain(old)} → {plain(new)}"
    if len(found) > MAX_DIFFERENCES:
        yield f"- and {len(found) - MAX_DIFFERENCES} more settings"
    for warning in comparison.warnings:
        yield f"- **warning:** {plain(warning)}"
    yield ""
    yield f"<sub>{plain(matching_sentence(comparison))}; spillprof {comparison.spillprof_version}</sub>"


def _listed_sources(lead: StrategyChange) -> Iterable[str]:
    for words, total, sources in source_parts(lead):
        yield f"{words} ({format_size(total)}):"
        yield ""
        for source in sources[:MAX_SOURCES]:
            yield f"- {format_size(source.share_bytes)}: {plain(source_sentence(source))}"
        yield ""


def _operators_summary(lead: StrategyChange) -> Iterable[str]:
    rows: tuple[OperatorChange, ...] = lead.operators[:_TOP_OPERATORS]
    if not rows:
        return
    heads = ("operator", "spill bytes before", "after", "change", "what")
    cells = [
        (
            f"#{step_of(change)} {code(change.name)}",
            *figures(Metric.SPILL_BYTES, change.spill_bytes_before, change.spill_bytes_after),
            growth(Metric.PEAK, change.spill_bytes_before, change.spill_bytes_after),
            plain(operator_reason(change)),
        )
        for change in rows
    ]
    yield from Table(heads=heads, cells=cells, align="lrrll").markdown()
    if len(lead.operators) > len(rows):
        yield ""
        yield f"{len(lead.operators) - len(rows):,} more operators moved."
    yield ""


def _strategies_summary(comparison: ProfileDiff) -> Iterable[str]:
    rows = []
    for change in comparison.strategies:
        pairs = strategy_figures(change) if both_run(change) else ()
        ends = [f"{before} → {after}" for before, after, _ in pairs] or ["-", "-"]
        rows.append((strategy_title(change), *ends, OUTCOMES[change.outcome]))
    yield from Table(heads=("strategy", "spill bytes", "latency", ""), cells=rows, align="llll").markdown()
    yield ""


def _listed_alone(word: str, found: Sequence[Named]) -> str:
    names = ", ".join(f"#{each.step} {code(each.name)}" for each in found[:MAX_ALONE])
    more = f" and {len(found) - MAX_ALONE:,} more" if len(found) > MAX_ALONE else ""
    return f"- {word}: {names}{more}"
