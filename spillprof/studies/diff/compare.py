"""Compares two Profiles: a pure function, linear in steps and buffers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isclose
from typing import Any

from spillprof import __version__
from spillprof.analysis.main_result import bytes_by_cause, main_result
from spillprof.ir.profile import Profile
from spillprof.ir.result import OperatorCost, Result
from spillprof.studies.diff.buffers import buffer_changes, fate, pressure
from spillprof.studies.diff.matching import Pairing, match
from spillprof.studies.diff.values import (
    CauseChange,
    Difference,
    Matching,
    Named,
    OperatorChange,
    ProfileDiff,
    RunSummary,
    StrategyChange,
    StrategyOutcome,
    Why,
)

_LEAST_SHARE = 1e-3
"""Share of a latency: smaller differences count as none."""

_LEAST_STALL = 1e-5
"""Share of the latency: operators whose stall differs by less are not listed for it."""

_GONE = {
    Why.ADDED: Why.REMOVED,
    Why.NEW_READER: Why.LOST_READER,
    Why.LONGER: Why.SHORTER,
    Why.LARGER: Why.SMALLER,
}
"""Reasons, seen from the other run."""


def compare(before: Profile, after: Profile, *, command: str = "") -> ProfileDiff:
    """The difference of two runs: figures by strategy, operators, buffers, settings.

    Without a common strategy, the results that their reports show first are compared.
    """
    pairs = match(before, after)
    found = tuple(differences(before, after))
    matching = _matching(before, after, pairs)
    return ProfileDiff(
        spillprof_version=__version__,
        command=command,
        before=_run(before),
        after=_run(after),
        is_same_model=bool(before.model.sha256) and before.model.fingerprint == after.model.fingerprint,
        differences=found,
        warnings=tuple(warnings(found, before, after)),
        matching=matching,
        strategies=tuple(
            _strategy(_Both(before, after, old, new, pairs), matching.is_reordered)
            for old, new in _common(before.results, after.results)
        ),
    )


@dataclass(frozen=True, slots=True)
class _Both:
    """One strategy in both runs."""

    before: Profile
    after: Profile
    old: Result
    new: Result
    pairs: Pairing


def _common(before: Sequence[Result], after: Sequence[Result]) -> list[tuple[Result, Result]]:
    """Pairs of results under one strategy, the leading one first; or the two leading results."""
    old = {result.strategy: result for result in before}
    pairs = [(old[result.strategy], result) for result in after if result.strategy in old]
    leads = main_result(before), main_result(after)
    if not pairs:
        return [(leads[0] or before[0], leads[1] or after[0])] if before and after else []
    runs = [pair for pair in pairs if pair[0].feasible and pair[1].feasible] or pairs
    names = [lead.strategy for lead in reversed(leads) if lead is not None]
    first = next((pair for name in names for pair in runs if pair[1].strategy == name), runs[0])
    return [first, *(pair for pair in pairs if pair is not first)]


def _strategy(both: _Both, is_reordered: bool) -> StrategyChange:
    costs = _Costs(both)
    rise, fall = costs.rises()
    return StrategyChange(
        before=both.old,
        after=both.new,
        outcome=_outcome(both.old, both.new),
        causes=_causes(both.old, both.new),
        rise_bytes=sum(rise),
        fall_bytes=sum(fall),
        rise_sources=pressure(both.before, both.after, both.pairs, rise, is_reordered=is_reordered),
        fall_sources=tuple(
            replace(source, why=_GONE[source.why])
            for source in pressure(both.after, both.before, _swapped(both.pairs), fall, is_reordered=is_reordered)
        ),
        operators=costs.changes(),
        buffers=buffer_changes(both.before, both.after, both.old, both.new, both.pairs),
    )


def _outcome(old: Result, new: Result) -> StrategyOutcome:
    if not old.feasible or not new.feasible:
        return (
            StrategyOutcome.RUNS_NOW
            if new.feasible
            else StrategyOutcome.RUNS_NO_MORE
            if old.feasible
            else StrategyOutcome.RUNS_NEITHER
        )
    later = new.latency_s - old.latency_s if not isclose(old.latency_s, new.latency_s, rel_tol=_LEAST_SHARE) else 0
    signs = {(delta > 0) - (delta < 0) for delta in (new.spill_bytes - old.spill_bytes, later)} - {0}
    if not signs:
        return StrategyOutcome.SAME
    return (
        StrategyOutcome.MIXED if len(signs) > 1 else StrategyOutcome.WORSE if signs == {1} else StrategyOutcome.BETTER
    )


def _causes(old: Result, new: Result) -> tuple[CauseChange, ...]:
    """By cause if both runs have causes, by kind if neither has, else nothing."""
    if (old.causes is None) != (new.causes is None):
        return ()
    parts = dict(bytes_by_cause(old)), dict(bytes_by_cause(new))
    return tuple(
        CauseChange(cause=cause, before_bytes=parts[0].get(cause, 0), after_bytes=parts[1].get(cause, 0))
        for cause in dict.fromkeys([*parts[0], *parts[1]])
    )


class _Costs:
    """Operators of one strategy by step, in both runs."""

    def __init__(self, both: _Both) -> None:
        self.both = both
        self.old = {cost.step: cost for cost in both.old.operators}
        self.new = {cost.step: cost for cost in both.new.operators}
        self.names = {  # of buffers after, by those before
            buffer.name: both.after.buffers[partner].name
            for buffer, partner in zip(both.before.buffers, both.pairs.after_of_buffer, strict=True)
            if partner is not None
        }

    def rises(self) -> tuple[list[int], list[int]]:
        """Spill bytes that each step forces beyond its partner: by step of ``after``, and by step of ``before``."""
        pairs = self.both.pairs
        rise, fall = [0] * len(self.both.after.steps), [0] * len(self.both.before.steps)
        for step, cost in self.new.items():
            partner = pairs.before_of_step[step]
            rise[step] = max(0, _bytes(cost) - _bytes(None if partner is None else self.old.get(partner)))
        for step, cost in self.old.items():
            partner = pairs.after_of_step[step]
            fall[step] = max(0, _bytes(cost) - _bytes(None if partner is None else self.new.get(partner)))
        return rise, fall

    def changes(self) -> tuple[OperatorChange, ...]:
        """Steps whose spill bytes or stall differ, largest change first."""
        pairs = self.both.pairs
        rows: list[tuple[int | None, int | None]] = [(pairs.before_of_step[step], step) for step in self.new]
        rows += [
            (step, pairs.after_of_step[step])
            for step in self.old
            if pairs.after_of_step[step] not in self.new
        ]  # fmt: skip
        found = [self._change(old, new) for old, new in rows]
        least_s = _LEAST_STALL * max(self.both.old.latency_s, self.both.new.latency_s)
        moved = [c for c in found if c.delta_bytes or abs(c.delta_s) > least_s]
        return tuple(
            sorted(moved, key=lambda c: (-abs(c.delta_bytes), -abs(c.delta_s), _first(c.step_after, c.step_before)))
        )

    def _change(self, old_step: int | None, new_step: int | None) -> OperatorChange:
        old = None if old_step is None else self.old.get(old_step)
        new = None if new_step is None else self.new.get(new_step)
        before = None if old_step is None else self.both.before.steps[old_step]
        after = None if new_step is None else self.both.after.steps[new_step]
        step = after or before
        assert step is not None
        gained, lost = self._victims(old, new)
        return OperatorChange(
            name=step.name,
            name_before=None if before is None else before.name,
            op_type=step.op_type,
            fate=fate(None if before is None else before.name, None if after is None else after.name),
            step_before=old_step,
            step_after=new_step,
            spill_bytes_before=_bytes(old),
            spill_bytes_after=_bytes(new),
            stall_s_before=0.0 if old is None else old.stall_s,
            stall_s_after=0.0 if new is None else new.stall_s,
            cause_before=_cause(old),
            cause_after=_cause(new),
            victims_gained=gained,
            victims_lost=lost,
        )

    def _victims(self, old: OperatorCost | None, new: OperatorCost | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Victims in ``new`` only and in ``old`` only; renamed buffers count as the same."""
        was = {} if old is None else {self.names.get(name, name): name for name in old.victims}
        now = () if new is None else new.victims
        return tuple(n for n in now if n not in was), tuple(was[n] for n in was if n not in set(now))


def _bytes(cost: OperatorCost | None) -> int:
    return 0 if cost is None else cost.spill_bytes


def _cause(cost: OperatorCost | None) -> str | None:
    if cost is None:
        return None
    return "oversized" if cost.cause == "capacity" and cost.kind == "oversized" else cost.cause


def _first(*steps: int | None) -> int:
    return next((step for step in steps if step is not None), 0)


def _swapped(pairs: Pairing) -> Pairing:
    return Pairing(
        after_of_step=pairs.before_of_step,
        before_of_step=pairs.after_of_step,
        after_of_buffer=pairs.before_of_buffer,
        before_of_buffer=pairs.after_of_buffer,
    )


def _matching(before: Profile, after: Profile, pairs: Pairing) -> Matching:
    order = [step for step in pairs.before_of_step if step is not None]
    same = sum(
        1
        for step, partner in zip(after.steps, pairs.before_of_step, strict=True)
        if partner is not None and before.steps[partner].name == step.name
    )
    return Matching(
        by_name=same,
        by_structure=len(order) - same,
        is_reordered=any(first > second for first, second in pairwise(order)),
        added=_alone(after, pairs.before_of_step),
        removed=_alone(before, pairs.after_of_step),
    )


def _alone(profile: Profile, partners: Sequence[int | None]) -> tuple[Named, ...]:
    return tuple(
        Named(step=i, name=step.name, op_type=step.op_type)
        for i, (step, partner) in enumerate(zip(profile.steps, partners, strict=True))
        if partner is None
    )


def _run(profile: Profile) -> RunSummary:
    model = profile.model
    return RunSummary(
        path=model.path,
        model=model.name,
        sha256=model.sha256,
        target=profile.target.name,
        sram_bytes=profile.target.sram_bytes,
        steps=len(profile.steps),
        macs=model.macs,
        weight_bytes=model.weight_bytes,
        peak_live_bytes=model.peak_live_bytes,
        min_sram_bytes=model.min_sram_bytes,
        ideal_latency_s=profile.ideal.latency_s,
        spill_bytes_lower=None if profile.bounds is None else profile.bounds.spill_bytes_lower,
        spillprof_version=profile.spillprof_version,
        command=profile.command,
        live_bytes=profile.live_bytes,
    )


_MODEL_FIELDS = ("path", "sha256", "external_sha256", "opset", "operators", "weight_bytes", "macs", "dims")
_NOT_SETTINGS = ("sources", "reserved_bytes", "weight_staging_bytes", "stream_staging_bytes", "runtime_bytes")
"""Keys of ``Profile.machine`` that are no settings: sources, and what follows from the model."""


def differences(before: Profile, after: Profile) -> Iterator[Difference]:
    """Fields of model, target, configuration and version that differ."""
    yield from _between("model", _model(before), _model(after))
    yield from _between("target", _target(before), _target(after))
    yield from _between("config", before.config, after.config)
    if before.op_times != after.op_times:
        times = [None if p.op_times is None else p.op_times.source for p in (before, after)]
        if times[0] != times[1]:
            yield Difference(where="config", field="op_times", before=times[0], after=times[1])
    yield from _between("spillprof", _simulator(before), _simulator(after))


def warnings(found: Sequence[Difference], before: Profile, after: Profile) -> Iterator[str]:
    """Reasons besides the model why figures may differ."""
    is_other_model = any(d.where == "model" and d.field in ("sha256", "external_sha256") for d in found)
    fields = [d.field for d in found if d.where == "target" and d.field != "name"]
    settings = [d.field for d in found if d.where == "config" and d.field != "strategies"]
    if is_other_model and fields:
        yield f"the machines differ as well as the models, in {_listed(fields)}"
    if is_other_model and settings:
        yield f"settings differ as well as the models: {_listed(settings)}"
    if any(d.field == "simulator_revision" for d in found):
        yield "the runs were made by different revisions of the simulator: the same model may give other figures"
    elif any(d.where == "spillprof" for d in found):
        yield f"the runs were made by spillprof {before.spillprof_version} and {after.spillprof_version}"
    for which, profile in (("before", before), ("after", after)):
        if profile.steps and not profile.buffers:
            yield f"the profile {which} does not say who reads what: its operators are matched by name alone"


def _listed(fields: Sequence[str]) -> str:
    more = f" and {len(fields) - 6} more" if len(fields) > 6 else ""
    return ", ".join(fields[:6]) + more


def _model(profile: Profile) -> dict[str, Any]:
    facts = {name: getattr(profile.model, name) for name in _MODEL_FIELDS}
    return {**facts, "dims": dict(profile.model.dims)}


def _simulator(profile: Profile) -> dict[str, Any]:
    return {"version": profile.spillprof_version, "simulator_revision": profile.simulator_revision}


def _target(profile: Profile) -> dict[str, Any]:
    return {name: value for name, value in profile.machine.items() if name not in _NOT_SETTINGS}


def _between(where: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    for name in dict.fromkeys([*before, *after]):
        old, new = _plain(before.get(name)), _plain(after.get(name))
        if old != new:
            yield Difference(where=where, field=name, before=old, after=new)


def _plain(value: Any) -> Any:
    """Tuples as lists, so that a saved profile equals the original."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
