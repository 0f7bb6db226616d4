"""A comparison as a short Markdown summary, for job summaries and comments."""

from collections.abc import Iterable, Sequence

from spillprof.ir.metric import Metric
from spillprof.ir.units import format_size
from spillprof.report.diff.heads import (
    MAX_ALONE,
    MAX_DIFFERENCES,
    MAX_SOURCES,
    alone,
    both_run,
    source_parts,
    step_of,
    strategy_figures,
)
from spillprof.report.diff.wording import (
    OUTCOMES,
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
from spillprof.report.markdown import code, plain
from spillprof.report.table import Table
from spillprof.studies.diff import Named, OperatorChange, ProfileDiff, StrategyChange

_TOP_OPERATORS = 10


def render(comparison: ProfileDiff) -> str:
    """The comparison as GitHub-flavoured Markdown, newline at the end. Names cannot break out of their cells."""
    return "\n".join(_lines(comparison)) + "\n"


def _lines(comparison: ProfileDiff) -> Iterable[str]:
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
        yield from _sources(lead)
        yield from _operators(lead)
        if len(comparison.strategies) > 1:
            yield from _strategies(comparison)
    for word, named in alone(comparison):
        yield _alone(word, named)
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


def _sources(lead: StrategyChange) -> Iterable[str]:
    for words, total, sources in source_parts(lead):
        yield f"{words} ({format_size(total)}):"
        yield ""
        for source in sources[:MAX_SOURCES]:
            yield f"- {format_size(source.share_bytes)}: {plain(source_sentence(source))}"
        yield ""


def _operators(lead: StrategyChange) -> Iterable[str]:
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


def _strategies(comparison: ProfileDiff) -> Iterable[str]:
    rows = []
    for change in comparison.strategies:
        pairs = strategy_figures(change) if both_run(change) else ()
        ends = [f"{before} → {after}" for before, after, _ in pairs] or ["-", "-"]
        rows.append((strategy_title(change), *ends, OUTCOMES[change.outcome]))
    yield from Table(heads=("strategy", "spill bytes", "latency", ""), cells=rows, align="llll").markdown()
    yield ""


def _alone(word: str, found: Sequence[Named]) -> str:
    names = ", ".join(f"#{each.step} {code(each.name)}" for each in found[:MAX_ALONE])
    more = f" and {len(found) - MAX_ALONE:,} more" if len(found) > MAX_ALONE else ""
    return f"- {word}: {names}{more}"
