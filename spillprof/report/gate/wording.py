"""Sentences about a gate, the same in every format. Names in them are printable and short."""

from collections.abc import Iterable, Mapping

from spillprof.ir.metric import Metric
from spillprof.ir.units import format_energy, format_size, format_time
from spillprof.report.text import count_of, label
from spillprof.studies.gate.values import GateCheck, GateReport, MetricChange, Moved, Verdict

TOP_MOVED = 5
METRIC_NAMES = {
    Metric.SPILL_BYTES: "spill bytes",
    Metric.LATENCY: "latency",
    Metric.PEAK: "stored peak",
    Metric.ENERGY: "energy",
}
CAUSE_WORDS = {
    "capacity": "more is live than fits",
    "order": "another order of operators would avoid it",
    "policy": "another policy would avoid it",
    "late release": "dead buffers hold the space",
    "lifetime": "dead buffers hold the space",
    "fragmentation": "the free bytes are not in one piece",
    "oversized": "it cannot fit at all",
}


def figure(metric: Metric, value: int) -> str:
    """Formats a metric with its unit, rounded; JSON has the exact value."""
    match metric:
        case Metric.LATENCY:
            return format_time(value / 1e9)
        case Metric.ENERGY:
            return format_energy(value / 1e12)
        case _:
            return format_size(value)


def figures(metric: Metric, before: int, after: int) -> tuple[str, str]:
    """Formats both values, exactly where different values would print alike."""
    shown = figure(metric, before), figure(metric, after)
    if before == after or shown[0] != shown[1]:
        return shown
    unit = {Metric.LATENCY: "ns", Metric.ENERGY: "pJ"}.get(metric, "B")
    return f"{before:,} {unit}", f"{after:,} {unit}"


def growth(metric: Metric, before: int, after: int) -> str:
    """``+4.25 MiB (+20.7 %)``; from nothing there is no percentage: ``new spill``."""
    if before == after:
        return "0"
    sign = "+" if after > before else "−"
    amount = f"{sign}{figure(metric, abs(after - before))}"
    if before == 0:
        return f"{amount}, new spill" if metric is Metric.SPILL_BYTES else f"{amount}, from 0"
    share = 100 * abs(after - before) / before
    return f"{amount} ({sign}{share:.1f} %)" if share >= 0.05 else f"{amount} ({sign}<0.1 %)"


def change_sentence(change: MetricChange) -> str:
    """``spill bytes 20.5 MiB → 24.8 MiB, +4.25 MiB (+20.7 %); allowed +210 KiB``."""
    name = METRIC_NAMES[change.metric]
    if change.before is None:
        text = f"{name} {figure(change.metric, change.after)}"
    elif change.before == change.after:
        text = f"{name} {figure(change.metric, change.after)}, unchanged"
    else:
        before, after = figures(change.metric, change.before, change.after)
        text = f"{name} {before} → {after}, {growth(change.metric, change.before, change.after)}"
    if change.regressed and change.allowed:
        text += f"; allowed +{figure(change.metric, change.allowed)}"
    if change.over_budget and change.budget is not None:
        after, budget = figures(change.metric, change.after, change.budget)
        text += f"; over the budget of {budget}" if after == figure(change.metric, change.after) else (
            f"; {after} is over the budget of {budget}"
        )  # fmt: skip
    return text


def shown_changes(check: GateCheck) -> tuple[MetricChange, ...]:
    """Returns the changes to mention: those behind the verdict, else those that moved, else spill bytes."""
    loud = [c for c in check.changes if c.over_budget or c.regressed]
    if not loud and check.verdict is Verdict.IMPROVED:
        loud = [c for c in check.changes if c.improved]
    if not loud:
        loud = [c for c in check.changes if c.delta and c.allowed is not None]
    return tuple(loud or check.changes[:1])


def headline(check: GateCheck) -> str:
    """Describes a check in one line, without its name."""
    if check.failure is not None:
        return label(check.failure.message, 300)
    match check.verdict:
        case Verdict.INCOMPARABLE:
            return "the baseline was made with another configuration: " + ", ".join(
                label(text, 120) for text in check.mismatches[:4]
            )
        case Verdict.REMOVED:
            return "in the baseline, but no longer watched; 'spillprof gate --update' drops it"
        case Verdict.NEW:
            return f"not in the baseline: {change_sentence(check.changes[0])}"
        case Verdict.IMPROVED:
            text = "; ".join(map(change_sentence, shown_changes(check)))
            return text if check.accepted else f"{text}; 'spillprof gate --update' keeps the gain"
    return "; ".join(map(change_sentence, shown_changes(check)))


def reasons(check: GateCheck) -> list[str]:
    """Lists why the figures moved: operators, buffers, the peak, an unchanged model."""
    lines = []
    needed = {m.name: m.needed_by for m in check.moved if m.kind == "buffer" and m.needed_by}
    for kind in ("operator", "buffer"):
        rows = [m for m in check.moved if m.kind == kind]
        lines += [moved_sentence(m, needed) for m in rows[:TOP_MOVED]]
        if len(rows) > TOP_MOVED:
            lines.append(f"{count_of(len(rows) - TOP_MOVED, f'more {kind}')} moved less")
    if any(c.metric is Metric.PEAK and (c.regressed or c.over_budget) for c in check.changes) and check.peak_operator:
        lines.append(f"the peak of live bytes, as stored, is at {label(check.peak_operator, 60)}")
    moved = any(c.delta for c in check.changes)
    spilled = any(c.delta for c in check.changes if c.metric is Metric.SPILL_BYTES)
    if moved and not spilled and not check.moved:
        lines.append("no operator spills or waits more: the change is in compute, or in traffic that must be")
    if moved and check.model_changed is False:
        lines.append("the model file is the one of the baseline: spillprof itself gives other figures")
    return lines


def moved_sentence(moved: Moved, needed: Mapping[str, str | None]) -> str:
    """``operator /add (Add): 0 → 32 KiB, +32 KiB, new spill; capacity: more is live than fits; forces out r0``."""
    kind = f" ({label(moved.op_type, 24)})" if moved.op_type else ""
    stall = "stall " if moved.metric is Metric.LATENCY else ""
    text = f"{moved.kind} {label(moved.name, 60)}{kind}: {stall}"
    if moved.before is None:
        text += f"{figure(moved.metric, moved.after)}, was not among the dearest"
    else:
        before, after = figures(moved.metric, moved.before, moved.after)
        text += f"{before} → {after}, {growth(moved.metric, moved.before, moved.after)}"
    if moved.cause and moved.after:
        text += f"; {moved.cause}: {CAUSE_WORDS.get(moved.cause, '')}".rstrip(": ")
    if moved.victims:
        text += "; forces out " + ", ".join(_victim(name, needed) for name in moved.victims[:3])
        text += f" and {len(moved.victims) - 3} more" if len(moved.victims) > 3 else ""
    if moved.needed_by:
        text += f"; needed until {label(moved.needed_by, 60)}"
    return text


def summary(report: GateReport) -> str:
    """``2 of 3 passed: 1 regressed``."""
    bad = [c for c in report.checks if report.fails(c) or report.unjudged(c)]
    counts: dict[str, int] = {}
    for check in bad:
        word = str(check.verdict) if report.unjudged(check) or not check.over_budget else "over-budget"
        counts[word] = counts.get(word, 0) + 1
    details = ", ".join(f"{count} {word}" for word, count in counts.items())
    passed = f"{len(report.checks) - len(bad)} of {len(report.checks)} passed"
    return f"{passed}: {details}" if details else passed


def advice(report: GateReport) -> list[str]:
    """Suggests the next command, if any."""
    verdicts = {c.verdict for c in report.checks if not c.accepted}
    lines = []
    if Verdict.INCOMPARABLE in verdicts or Verdict.REGRESSED in verdicts:
        lines.append("if this is meant: spillprof gate --update, and commit the baseline")
    elif Verdict.NEW in verdicts or Verdict.IMPROVED in verdicts or Verdict.REMOVED in verdicts:
        lines.append("to take this into the baseline: spillprof gate --update, and commit it")
    return lines


def worst_first(checks: Iterable[GateCheck]) -> list[GateCheck]:
    """Sorts checks by verdict, in the order of Verdict."""
    order = list(Verdict)
    return sorted(checks, key=lambda check: order.index(check.verdict))


def _victim(name: str, needed: Mapping[str, str | None]) -> str:
    by = needed.get(name)
    return f"{label(name, 40)} (needed until {label(by, 40)})" if by else label(name, 40)
