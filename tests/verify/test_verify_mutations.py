"""Every record and field of small plan files changed in every way: each change is refused, or known to be legal.

What is accepted must be one of the changes in ``HARMLESS``, must run byte by byte, and must be counted alike by all
who count: a plan that is accepted has no record that is not true.
"""

import copy
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from legal_plans import LEGAL
from programs import target
from random_programs import ALIGNMENT, random_program, streaming_case
from test_verify_execution import execute

from spillprof.analysis.attribution import charges
from spillprof.ir.errors import PlanError
from spillprof.ir.plan import Plan, TransferKind
from spillprof.ir.plan_json import plan_from_json, plan_to_json, spill_records
from spillprof.ir.program import Program
from spillprof.planning.options import PlanningOptions
from spillprof.planning.planner import make_plan
from spillprof.planning.strategies import CHEAP_STRATEGIES
from spillprof.planning.traffic import count_traffic
from spillprof.timing.issue_times import earliest_issues, reissued
from spillprof.verify import recount, verify

HARMLESS = {
    "segments end": "it holds free space longer, and leaves at the same step",
    "segments address": "it lies in other free space",
    "segments order": "the list has no order that matters: transfers name their segment",
    "transfers issue_step": "a write goes at another time at which the data is there",
    "transfers order": "of transfers issued at one step any may be first in the queue, writes before reads",
    "spills forced_by_step": "who forced it cannot be told from a plan, but only that it is in the gap",
    "spills fragmentation": "what was free when it was decided cannot be told from a plan",
    "spills order": "the list has no order that matters",
    "moves order": "the list has no order that matters",
    "streamed order": "operands of one step are streamed together",
    "scratch size_bytes": "more space than needed is held",
    "scratch start": "space is held longer",
    "scratch end": "space is held longer",
    "scratch address": "it lies in other free space",
    "scratch order": "the list has no order that matters",
    "strategy": "a name",
    "capacity_bytes": "a memory of another size, in which the plan fits too, as it does in the program's",
}
"""Changes that may leave a plan legal, and why."""


def mutations(data: dict[str, Any], unit: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """(what was changed, plan file) for each single change."""

    def with_value(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
        changed = copy.deepcopy(data)
        at: Any = changed
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value
        return changed

    lists = [key for key, value in data.items() if isinstance(value, list)]
    names = sorted({entry["buffer"] for key in lists for entry in data[key] if "buffer" in entry})
    for key in data:
        if key not in lists:
            for value in _others(key, data[key], unit, names):
                yield key, with_value((key,), value)
    for key in lists:
        entries = data[key]
        for k, entry in enumerate(entries):
            yield f"{key} dropped", with_value((key,), entries[:k] + entries[k + 1 :])
            for place in range(len(entries) + 1):
                yield f"{key} doubled", with_value((key,), [*entries[:place], entry, *entries[place:]])
            for place in range(k):
                swapped = list(entries)
                swapped[k], swapped[place] = swapped[place], swapped[k]
                yield f"{key} order", with_value((key,), swapped)
            for field, old in entry.items():
                for value in _others(field, old, unit, names):
                    yield f"{key} {field}", with_value((key, k, field), value)


def _others(field: str, old: Any, unit: int, names: list[str]) -> list[Any]:
    if isinstance(old, bool):
        return [not old]
    if field == "buffer":
        return [name for name in names if name != old]
    if field == "kind":
        return [str(kind) for kind in TransferKind if kind != old]
    if isinstance(old, str):
        return [old + "?", ""]
    if old is None:
        return [0, 1, 2, 3, 64, 10_000]
    steps = [1, 2, 3, unit, 2 * unit]
    return [old + sign * by for by in dict.fromkeys(steps) for sign in (1, -1)] + [0, None]


@pytest.mark.parametrize("name", LEGAL)
def test_every_change_of_a_plan_file_is_refused_or_harmless(name: str) -> None:
    p, q = LEGAL[name]
    data = plan_to_json(p, q)
    accepted = [what for what, changed in mutations(data, 32) if check_change(p, data, what, changed)]
    assert "strategy" in accepted


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), strategy=st.sampled_from(CHEAP_STRATEGIES), early=st.booleans())
def test_changes_of_the_plans_that_we_make_are_refused_or_harmless(seed: int, strategy: str, early: bool) -> None:
    case = streaming_case(seed) if seed % 2 else (random_program(seed, max_steps=6), target(alignment_bytes=ALIGNMENT))
    if case is None:
        return
    p, machine = case
    q = make_plan(p, machine, strategy, PlanningOptions())
    q = reissued(q, earliest_issues(p, q)) if early else q
    data = plan_to_json(p, q)
    found = list(mutations(data, ALIGNMENT))
    for what, changed in Random(seed).sample(found, min(100, len(found))):
        check_change(p, data, what, changed)


def check_change(p: Program, data: dict[str, Any], what: str, changed: dict[str, Any]) -> bool:
    """Whether a change of a legal plan leaves it legal, as it then may."""
    try:
        read = plan_from_json(p, changed)
    except PlanError:
        return False
    if changed == data or verify(p, read):
        return False
    assert what in HARMLESS, (what, _difference(data, changed))
    check(p, read)
    return True


def check(p: Program, q: Plan) -> None:
    """All that a legal plan must be, by other code than the verifier's."""
    execute(p, q)
    traffic = count_traffic(p, q)
    assert traffic == recount(p, q)
    charged = charges(p, q, PlanningOptions())
    assert sum(charge.total_bytes for charge in charged) + traffic.streamed_bytes == traffic.spill_bytes
    derived = spill_records(p, segments=q.segments, transfers=q.transfers, streamed=q.streamed, moves=q.moves)
    told = [replace(spill, forced_by_step=0, fragmentation=False) for spill in q.spills]
    assert sorted(map(str, told)) == sorted(str(replace(spill, forced_by_step=0)) for spill in derived)


def _difference(data: dict[str, Any], changed: dict[str, Any]) -> list[Any]:
    return [(key, data[key], changed[key]) for key in data if data[key] != changed[key]]
