"""A comparison as a short Markdown summary, for job summaries and comments."""

from collections.abc import Iterable

from spillprof.config_keys import Metric
from spillprof.diff import Comparison, Named, OperatorChange, Source, StrategyChange
from spillprof.report.diff_words import (
    OUTCOMES,
    difference_words,
    figure_rows,
    matching_sentence,
    operator_reason,
    shown_differences,
    source_sentence,
    strategy_title,
    verdict,
    whole,
)
from spillprof.report.gate.wording import figures, growth
from spillprof.report.markdown import code, plain
from spillprof.units import format_size

TOP_OPERATORS = 10
MAX_SOURCES = 3
MAX_DIFFERENCES = 20
MAX_ALONE = 5


def render(comparison: Comparison) -> str:
    """The comparison as GitHub-flavoured Markdown, newline at the end. Names cannot break out of their cells."""
    return "\n".join(_lines(comparison)) + "\n"


def _lines(comparison: Comparison) -> Iterable[str]:
    before, after = comparison.before, comparison.after
    yield f"### spill cost: {code(before.model)} → {code(after.model)}"
    yield ""
    yield plain(verdict(comparison))
    yield ""
    if comparison.strategies:
        lead = comparison.strategies[0]
        if lead.before.feasible and lead.after.feasible:
            yield f"| {strategy_title(lead)} | before | after | change |"
            yield "| --- | --: | --: | --- |"
            yield from (f"| {' | '.join(row)} |" for row in figure_rows(comparison, lead))
            yield ""
        yield from _sources(lead)
        yield from _operators(lead)
        if len(comparison.strategies) > 1:
            yield from _strategies(comparison)
    yield from _alone("added", comparison.matching.added)
    yield from _alone("removed", comparison.matching.removed)
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
    sides: tuple[tuple[tuple[Source, ...], int, str], ...] = (
        (lead.rise_sources, lead.rise_bytes, "Held besides where operators force out more"),
        (lead.fall_sources, lead.fall_bytes, "No longer held where operators force out less"),
    )
    for sources, total, words in sides:
        if sources:
            yield f"{words} ({format_size(total)}):"
            yield ""
            for source in sources[:MAX_SOURCES]:
                yield f"- {format_size(source.share_bytes)}: {plain(source_sentence(source))}"
            yield ""


def _operators(lead: StrategyChange) -> Iterable[str]:
    rows: tuple[OperatorChange, ...] = lead.operators[:TOP_OPERATORS]
    if not rows:
        return
    yield "| operator | spill bytes before | after | change | what |"
    yield "| --- | --: | --: | --- | --- |"
    for change in rows:
        ends = change.spill_bytes_before, change.spill_bytes_after
        old, new = figures(Metric.SPILL_BYTES, *ends)
        step = change.step_before if change.step_after is None else change.step_after
        cells = (f"#{step} {code(change.name)}", old, new, growth(Metric.PEAK, *ends), plain(operator_reason(change)))
        yield f"| {' | '.join(cells)} |"
    if len(lead.operators) > len(rows):
        yield ""
        yield f"{len(lead.operators) - len(rows):,} more operators moved."
    yield ""


def _strategies(comparison: Comparison) -> Iterable[str]:
    yield "| strategy | spill bytes | latency | |"
    yield "| --- | --- | --- | --- |"
    for change in comparison.strategies:
        spilled = figures(Metric.SPILL_BYTES, change.before.spill_bytes, change.after.spill_bytes)
        times = [whole(Metric.LATENCY, each.latency_s) for each in (change.before, change.after)]
        latency = figures(Metric.LATENCY, times[0], times[1])
        both = change.before.feasible and change.after.feasible
        cells = (f"{spilled[0]} → {spilled[1]}", f"{latency[0]} → {latency[1]}") if both else ("-", "-")
        yield f"| {strategy_title(change)} | {cells[0]} | {cells[1]} | {OUTCOMES[change.outcome]} |"
    yield ""


def _alone(word: str, found: tuple[Named, ...]) -> Iterable[str]:
    if found:
        names = ", ".join(f"#{each.step} {code(each.name)}" for each in found[:MAX_ALONE])
        more = f" and {len(found) - MAX_ALONE:,} more" if len(found) > MAX_ALONE else ""
        yield f"- {word}: {names}{more}"
