"""Sentences about a comparison of two runs, the same in every format. Names in them are printable and short."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from spillprof.ir.metric import Metric
from spillprof.ir.units import format_size, format_size_exact, format_time
from spillprof.report.gate.wording import CAUSE_WORDS, figures, growth
from spillprof.report.scales import field_text
from spillprof.report.text import count_of, label
from spillprof.studies.diff import (
    BufferChange,
    Difference,
    Fate,
    OperatorChange,
    PressureSource,
    ProfileDiff,
    StrategyChange,
    StrategyOutcome,
    Why,
)

OUTCOMES = {
    StrategyOutcome.SAME: "no difference",
    StrategyOutcome.BETTER: "better",
    StrategyOutcome.WORSE: "worse",
    StrategyOutcome.MIXED: "mixed",
    StrategyOutcome.RUNS_NOW: "runs now",
    StrategyOutcome.RUNS_NO_MORE: "runs no more",
    StrategyOutcome.RUNS_NEITHER: "runs in neither",
}
MUCH = 0.5
"""Share of a rise above which the verdict names its source."""
MAX_NAMED = 3

_ALIKE = {
    Why.ADDED: "are new",
    Why.REMOVED: "are gone",
    Why.NEW_READER: "have a new reader",
    Why.LOST_READER: "lost a reader",
    Why.LARGER: "are larger",
    Why.SMALLER: "are smaller",
    Why.LONGER: "are kept for longer",
    Why.SHORTER: "are kept for shorter",
}


def diff_verdict(comparison: ProfileDiff) -> str:
    """States the finding in one or two sentences."""
    if not comparison.strategies:
        return "Nothing to compare: one of the runs has no result."
    lead = comparison.strategies[0]
    found = _outcome_sentence(comparison, lead)
    reason = _reason(comparison, lead)
    return f"{found} {reason}" if reason else found


def path_labels(comparison: ProfileDiff, width: int) -> tuple[str, str]:
    """Names the two models by file name, or by path where only the folders differ."""
    paths = comparison.before.path, comparison.after.path
    names = tuple(re.split(r"[/\\]", path)[-1] for path in paths)
    shown = paths if names[0] == names[1] and paths[0] != paths[1] else names
    return label(shown[0], width), label(shown[1], width)


def strategy_title(change: StrategyChange) -> str:
    """``interval``, or ``lru → interval`` where the runs have no strategy in common."""
    before, after = label(change.before.strategy, 20), label(change.after.strategy, 20)
    return after if before == after else f"{before} → {after}"


def figure_rows(comparison: ProfileDiff, change: StrategyChange) -> list[tuple[str, str, str, str]]:
    """Returns (figure, before, after, change) of a strategy feasible in both runs."""
    old, new = change.before, change.after
    before, after = comparison.before, comparison.after
    rows: list[tuple[str, str, str, str]] = []

    def add(name: str, metric: Metric, first: float, second: float) -> None:
        ends = metric.whole(first), metric.whole(second)
        rows.append((name, *figures(metric, *ends), growth(metric, *ends)))

    add("spill bytes", Metric.SPILL_BYTES, old.spill_bytes, new.spill_bytes)
    if before.spill_bytes_lower is not None and after.spill_bytes_lower is not None:
        add("lower bound of them", Metric.PEAK, before.spill_bytes_lower, after.spill_bytes_lower)
    add("latency", Metric.LATENCY, old.latency_s, new.latency_s)
    add("spill time", Metric.LATENCY, old.spill_time_s, new.spill_time_s)
    add("ideal latency", Metric.LATENCY, before.ideal_latency_s, after.ideal_latency_s)
    add("energy", Metric.ENERGY, old.energy_j, new.energy_j)
    add("peak in use", Metric.PEAK, old.peak_bytes, new.peak_bytes)
    add("peak of live activations", Metric.PEAK, before.peak_live_bytes, after.peak_live_bytes)
    for name in ("spill", "reload"):
        counts = [int(getattr(totals, f"{name}_count")) for totals in (old, new)]
        delta = f"{counts[1] - counts[0]:+,}".replace("-", "−") if counts[0] != counts[1] else "0"
        rows.append((f"{name}s", f"{counts[0]:,}", f"{counts[1]:,}", delta))
    return rows


def changed(metric: Metric, before: float, after: float) -> str:
    """``20.5 MiB → 24.8 MiB, +4.25 MiB (+20.7 %)``; seconds, joules or bytes by the metric."""
    old, new = metric.whole(before), metric.whole(after)
    shown = figures(metric, old, new)
    return f"{shown[1]}, unchanged" if old == new else f"{shown[0]} → {shown[1]}, {growth(metric, old, new)}"


def source_sentence(source: PressureSource) -> str:
    """``/skip (new) reads skip_0 (4.80 MiB), which is kept for 54 more steps``."""
    buffer = f"{label(source.buffer, 48)} ({format_size(source.size_bytes)})"
    names = ", ".join(label(name, 48) for name in source.operators) or "no operator"
    steps, more = count_of(source.steps, "step"), count_of(source.steps, "more step")
    new = " (new)" if source.are_new else ""
    gone = " (removed)" if source.are_new else ""
    match source.why:
        case Why.NEW_READER:
            return f"{names}{new} reads {buffer}, which is kept for {more}"
        case Why.LOST_READER:
            return f"{names}{gone} no longer reads {buffer}, which was kept for {more}"
        case Why.ADDED:
            return f"{names}{new} writes {buffer}, held for {steps}" if source.operators else f"{buffer} is new"
        case Why.REMOVED:
            return (
                f"{names}{gone} no longer writes {buffer}, held for {steps}"
                if source.operators
                else f"{buffer} is gone"
            )
        case Why.LARGER:
            return f"{buffer} is larger than before"
        case Why.SMALLER:
            return f"{buffer} was larger than it is now"
        case Why.LONGER:
            return f"{buffer} is kept for {more}"
        case _:
            return f"{buffer} was kept for {more}"


def operator_reason(change: OperatorChange) -> str:
    """``new; forces out skip_0, skip_1; capacity: more is live than fits``; empty where there is nothing to say."""
    parts = []
    if change.fate is Fate.RENAMED:
        parts.append(f"was {label(change.name_before or '', 40)}")
    elif change.fate is not Fate.KEPT:
        parts.append("new" if change.fate is Fate.ADDED else "removed")
    if change.victims_gained:
        parts.append(f"forces out {_names(change.victims_gained)}")
    if change.victims_lost and change.fate is not Fate.REMOVED:
        parts.append(f"no longer {'' if change.victims_gained else 'forces out '}{_names(change.victims_lost)}")
    if change.cause_after and change.delta_bytes:
        was = f", was {change.cause_before}" if change.cause_before not in (None, change.cause_after) else ""
        parts.append(f"{change.cause_after}{was}: {CAUSE_WORDS.get(change.cause_after, '')}".rstrip(": "))
    elif change.cause_before and change.delta_bytes and not change.spill_bytes_after:
        parts.append(f"was {change.cause_before}: {CAUSE_WORDS.get(change.cause_before, '')}".rstrip(": "))
    return "; ".join(parts)


def buffer_reason(change: BufferChange) -> str:
    """Describes how the buffer changed."""
    names = _names(change.operators)
    match change.why:
        case Why.ADDED:
            text = f"new, written by {names}" if change.operators else "new"
        case Why.REMOVED:
            text = f"removed, was written by {names}" if change.operators else "removed"
        case Why.NEW_READER:
            text = f"now read by {names}"
        case Why.LOST_READER:
            text = f"no longer read by {names}"
        case Why.LARGER | Why.SMALLER:
            sizes = figures(Metric.SPILL_BYTES, change.size_bytes_before or 0, change.size_bytes_after or 0)
            text = f"{sizes[0]} before, {sizes[1]} now"
        case Why.LONGER | Why.SHORTER:
            text = f"{change.why}: {_length(change.steps_before)} before, {_length(change.steps_after)} now"
        case _:
            text = "the same buffer: what is around it differs"
    if change.fate is Fate.RENAMED:
        text = f"was {label(change.name_before or '', 40)}; {text}"
    return text


def matching_sentence(comparison: ProfileDiff) -> str:
    """States how operators were matched."""
    m = comparison.matching
    parts = [f"{m.by_name:,} of {count_of(comparison.after.steps, 'step')} matched by name"]
    if m.by_structure:
        parts.append(f"{m.by_structure:,} by structure")
    if m.added:
        parts.append(f"{len(m.added):,} added")
    if m.removed:
        parts.append(f"{len(m.removed):,} removed")
    return ", ".join(parts) + ("; in another order" if m.is_reordered else "")


def difference_words(difference: Difference) -> tuple[str, str, str]:
    """Returns (setting, value before, value after)."""
    name = difference.field if difference.where == "config" else f"{difference.where} {difference.field}"
    return label(name, 40), _value(difference, difference.before), _value(difference, difference.after)


def shown_differences(comparison: ProfileDiff) -> list[Difference]:
    """Returns the differences without path and hash of the model."""
    return [
        d for d in comparison.differences if d.where != "model" or d.field not in ("path", "sha256", "external_sha256")
    ]


def _outcome_sentence(comparison: ProfileDiff, lead: StrategyChange) -> str:
    under = f"under {strategy_title(lead)}"
    before, after = lead.before, lead.after
    match lead.outcome:
        case StrategyOutcome.SAME:
            also = [strategy_title(s) for s in comparison.strategies if s.outcome is not StrategyOutcome.SAME]
            others = f"; {', '.join(also)} {'differs' if len(also) == 1 else 'differ'}" if also else ""
            both = f"both runs spill {format_size(after.spill_bytes)} and take {format_time(after.latency_s)}"
            nearly = "" if before.latency_s == after.latency_s else " that counts"
            return f"No difference{nearly} {under}: {both}{others}."
        case StrategyOutcome.RUNS_NEITHER:
            return f"Neither run can be planned {under}: {label(after.reason or 'no reason given', 200)}."
        case StrategyOutcome.RUNS_NO_MORE:
            return f"Worse: it can no longer be planned {under}: {label(after.reason or 'no reason given', 200)}."
        case StrategyOutcome.RUNS_NOW:
            return f"Better: it can be planned now {under}; before: {label(before.reason or 'no reason given', 200)}."
    spilled = f"spill bytes {changed(Metric.SPILL_BYTES, before.spill_bytes, after.spill_bytes)}"
    latency = f"latency {changed(Metric.LATENCY, before.latency_s, after.latency_s)}"
    return f"{lead.outcome.capitalize()} {under}: {spilled}; {latency}."


def _reason(comparison: ProfileDiff, lead: StrategyChange) -> str:
    """Names the origin of the difference, if it is known."""
    if lead.outcome is StrategyOutcome.SAME and not lead.operators:
        settings = [d for d in shown_differences(comparison) if d.field != "strategies"]
        if not settings and comparison.is_same_model:
            return "Model and settings are the same."
        return f"What differs does not show: {_settings(settings)}." if settings else ""
    rises = lead.after.spill_bytes >= lead.before.spill_bytes
    total, sources = (lead.rise_bytes, lead.rise_sources) if rises else (lead.fall_bytes, lead.fall_sources)
    if sources and total:
        return _source_reason(sources, total)
    settings = [d for d in shown_differences(comparison) if d.field != "strategies"]
    if settings and comparison.is_same_model:
        return f"The model is the same; what differs: {_settings(settings)}."
    texts = [*_alone_texts(comparison), *([_settings(settings)] if settings else [])]
    return f"What differs: {', '.join(texts)}." if texts else ""


def _alone_texts(comparison: ProfileDiff) -> Iterator[str]:
    for word, found in (("added", comparison.matching.added), ("removed", comparison.matching.removed)):
        if found:
            named = _names([each.name for each in found])
            yield f"{count_of(len(found), 'operator')} {word} ({named})"


def _source_reason(sources: Sequence[PressureSource], total: int) -> str:
    worst = sources[0]
    if worst.share_bytes > MUCH * total:
        return f"Most of it goes back to this: {source_sentence(worst)}."
    alike: dict[Why, int] = {}
    for source in sources:
        alike[source.why] = alike.get(source.why, 0) + source.share_bytes
    why = max(alike, key=lambda each: alike[each])
    if alike[why] > MUCH * total:
        same = [source for source in sources if source.why is why]
        return (
            f"Most of it goes back to {len(same):,} buffers that {_ALIKE[why]}, above all: {source_sentence(same[0])}."
        )
    return f"It goes back to {len(sources):,} buffers, above all: {source_sentence(worst)}."


def _settings(found: Sequence[Difference]) -> str:
    texts = list(_setting_texts(found[:MAX_NAMED]))
    more = f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
    return ", ".join(texts) + more


def _setting_texts(found: Sequence[Difference]) -> Iterator[str]:
    for difference in found:
        name, before, after = difference_words(difference)
        yield f"{name} {label(before, 40)} → {label(after, 40)}"


def _value(difference: Difference, value: Any) -> str:
    if value is None:
        return "as in the file" if difference.field.endswith("dtype") else "none"
    if difference.field == "sram_bytes":
        return format_size_exact(value)
    if difference.field == "macs":
        return f"{value:,}"
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return label(", ".join(value), 200) if value else "none"
    return label(field_text(difference.field, value, size=format_size_exact), 200)


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(label(name, 40) for name in names[:MAX_NAMED]) + more


def _length(steps: tuple[int, int] | None) -> str:
    return "none" if steps is None else count_of(steps[1] - steps[0], "step")
