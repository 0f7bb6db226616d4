"""Compares an entry with the baseline: which metrics, operators and buffers changed, and the verdict."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from spillprof.ir.metric import Budgets, Metric
from spillprof.studies.fingerprint import default_setting, without_defaults
from spillprof.studies.gate.baseline import TOP_ROWS
from spillprof.studies.gate.values import BufferRow, Entry, MetricChange, Moved, OperatorRow, Rules, Verdict

_Row = TypeVar("_Row", OperatorRow, BufferRow)

MOVED_KEPT = 20
"""Most operators, and most buffers, that a check lists."""


def changes(entry: Entry, before: Entry | None, budgets: Budgets, rules: Rules) -> tuple[MetricChange, ...]:
    """Each metric, before and after. Only metrics of the rules are judged against the baseline."""
    limits = {
        Metric.SPILL_BYTES: budgets.spill_bytes,
        Metric.LATENCY: None if budgets.latency_s is None else Metric.LATENCY.whole(budgets.latency_s),
        Metric.PEAK: budgets.peak_bytes,
        Metric.ENERGY: None if budgets.energy_j is None else Metric.ENERGY.whole(budgets.energy_j),
    }
    found = []
    for metric in Metric:
        old = None if before is None else before.totals.of(metric)
        judged = old is not None and metric in rules.metrics
        found.append(
            MetricChange(
                metric=metric,
                before=old,
                after=entry.totals.of(metric),
                allowed=rules.allowed(metric, old) if judged and old is not None else None,
                budget=limits[metric],
            )
        )
    return tuple(found)


def mismatches(entry: Entry, before: Entry) -> tuple[str, ...]:
    """``strategy: baseline 'lru', now 'interval'`` for each setting that differs. Absent means default."""
    now, then = without_defaults(entry.config), without_defaults(before.config)
    keys = sorted(now.keys() | then.keys(), key=lambda key: (key != "simulator", key))
    return tuple(
        f"{key}: baseline {_shown(then, key)}, now {_shown(now, key)}"
        for key in keys
        if then.get(key, "default") != now.get(key, "default")
    )


def judge(found: Sequence[MetricChange], before: Entry | None, differing: Sequence[str]) -> Verdict:
    """The verdict on a model that was evaluated: the worst that applies."""
    if differing:
        return Verdict.INCOMPARABLE
    if any(change.over_budget for change in found):
        return Verdict.OVER_BUDGET
    if before is None:
        return Verdict.NEW
    if any(change.regressed for change in found):
        return Verdict.REGRESSED
    if any(change.improved for change in found):
        return Verdict.IMPROVED
    return Verdict.OK if any(change.delta for change in found) else Verdict.UNCHANGED


def moved(entry: Entry, before: Entry) -> tuple[Moved, ...]:
    """Operators, then buffers, whose spill bytes differ; operators whose stall differs if no bytes do."""
    buffers = _moved_buffers(entry.buffers, before.buffers)
    for metric in (Metric.SPILL_BYTES, Metric.LATENCY):
        operators = _moved_operators(entry.operators, before.operators, metric)
        if operators:
            return (*operators, *buffers)
    return buffers


def _moved_operators(now: Sequence[OperatorRow], before: Sequence[OperatorRow], metric: Metric) -> tuple[Moved, ...]:
    def figure(row: OperatorRow) -> int:
        return row.spill_bytes if metric is Metric.SPILL_BYTES else row.stall_ns

    new, old = _numbered(now), _numbered(before)
    renamed = _same_under_another_name(new, old)
    complete = len(before) < TOP_ROWS
    found = [
        Moved(
            kind="operator",
            name=row.name,
            op_type=row.op_type,
            metric=metric,
            before=figure(old[key]) if key in old else 0 if complete else None,
            after=figure(row),
            cause=row.cause,
            victims=row.victims,
        )
        for key, row in new.items()
        if key not in renamed and (figure(row) != figure(old[key]) if key in old else figure(row))
        and (key in old or complete or figure(row) > figure(before[-1]))
    ]  # fmt: skip
    found += [
        Moved(kind="operator", name=row.name, op_type=row.op_type, metric=metric, before=figure(row), after=0)
        for key, row in old.items()
        if key not in new and key not in renamed and figure(row)
    ]
    return _largest(found)


def _moved_buffers(now: Sequence[BufferRow], before: Sequence[BufferRow]) -> tuple[Moved, ...]:
    new, old = _numbered(now), _numbered(before)
    complete = len(before) < TOP_ROWS
    found = [
        Moved(
            kind="buffer",
            name=row.name,
            metric=Metric.SPILL_BYTES,
            before=old[key].spill_bytes if key in old else 0 if complete else None,
            after=row.spill_bytes,
            needed_by=row.needed_by,
        )
        for key, row in new.items()
        if (key in old and old[key].spill_bytes != row.spill_bytes)
        or (key not in old and (complete or row.spill_bytes > before[-1].spill_bytes))
    ]
    found += [
        Moved(kind="buffer", name=row.name, metric=Metric.SPILL_BYTES, before=row.spill_bytes, after=0)
        for key, row in old.items()
        if key not in new
    ]
    return _largest(found)


def _largest(found: Iterable[Moved]) -> tuple[Moved, ...]:
    return tuple(sorted(found, key=lambda m: (-abs(m.delta), m.name))[:MOVED_KEPT])


def _numbered(rows: Iterable[_Row]) -> dict[tuple[str, int], _Row]:
    """Rows by (name, number of earlier rows of that name)."""
    seen: defaultdict[str, int] = defaultdict(int)
    found: dict[tuple[str, int], _Row] = {}
    for row in rows:
        found[row.name, seen[row.name]] = row
        seen[row.name] += 1
    return found


def _same_under_another_name(
    new: Mapping[tuple[str, int], OperatorRow], old: Mapping[tuple[str, int], OperatorRow]
) -> set[tuple[str, int]]:
    """Keys of operators that have a partner of the same type and figures under another name.

    Nameless operators are named by position: inserting one renames all later ones.
    """
    waiting: defaultdict[tuple[str, int, int], list[tuple[str, int]]] = defaultdict(list)
    for key, row in old.items():
        if key not in new:
            waiting[row.op_type, row.spill_bytes, row.stall_ns].append(key)
    paired: set[tuple[str, int]] = set()
    for key, row in new.items():
        if key not in old and (others := waiting[row.op_type, row.spill_bytes, row.stall_ns]):
            paired |= {key, others.pop()}
    return paired


def _shown(config: Mapping[str, str | int | bool | None], key: str) -> str:
    return repr(config[key] if key in config else default_setting(key, otherwise="absent"))
