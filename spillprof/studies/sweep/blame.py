"""Causes of cliffs: plans both sizes again and compares them buffer by buffer."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spillprof.analysis.attribution import charges
from spillprof.analysis.hotspots import streamed_beyond_compulsory
from spillprof.ir.program import Program
from spillprof.planning.strategies import IDEAL
from spillprof.studies.sweep.curves import Cliff, scenario
from spillprof.studies.sweep.rows import Row, SweepCase
from spillprof.studies.sweep.work import Runner, Study

MOST_BLAMED = 12
"""Most cliffs to explain, the worst of each place: each takes two runs of its strategy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Costs:
    """Spill bytes and waits of one run."""

    program: Program
    moved: Mapping[tuple[int, int], int]  # bytes by (buffer, step that forced them)
    kinds: Mapping[tuple[int, int], str]
    waits: Mapping[int, tuple[float, int]]  # by step: seconds, and the buffer waited for or -1

    def by_buffer(self) -> dict[int, int]:
        total: defaultdict[int, int] = defaultdict(int)
        for (buffer, _), nbytes in self.moved.items():
            total[buffer] += nbytes
        return dict(total)


def blame(runner: Runner, cases: Sequence[SweepCase], found: Sequence[Cliff]) -> tuple[Cliff, ...]:
    """The cliffs, the worst ones with the buffer and the operator that cause them.

    The buffer is the one whose spill bytes rise most, the operator the step that forces most of that rise. If no
    buffer spills more, the cause is the step whose wait grows most and the buffer that it waits for.
    """
    by_group = {_group(case): case for case in cases}
    places: dict[tuple[Any, ...], int] = {}
    for k, cliff in enumerate(found):
        places.setdefault(cliff.place, k)
    pairs: dict[tuple[Any, ...], list[int]] = {}  # by the two runs: both metrics may have their cliff there
    for k in list(places.values())[:MOST_BLAMED]:
        cliff = found[k]
        pairs.setdefault((*cliff.place[:-1], cliff.strategy, cliff.placement), []).append(k)
    jobs = [Blame(number=own[0], case=by_group[_group(found[own[0]])], cliff=found[own[0]]) for own in pairs.values()]
    blamed = dict(runner.run(jobs))
    answers = list(found)
    for own in pairs.values():
        for k in own:
            answers[k] = replace(found[k], **blamed[own[0]])
    return tuple(answers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """A job that compares the two runs at a cliff."""

    number: int
    case: SweepCase
    cliff: Cliff

    def do(self, study: Study) -> Mapping[str, Any]:
        """The fields of the cliff that name its cause."""
        return _cause(study, self.case, self.cliff)

    def lost(self) -> Mapping[str, Any]:
        """No cause."""
        return {}


def _group(of: SweepCase | Cliff) -> tuple[Any, ...]:
    shown = Row(model=of.model, target="", strategy="", placement="", sram_bytes=0, dims=of.dims, settings=of.settings)
    return (of.model, *scenario(shown))


def _cause(study: Study, case: SweepCase, cliff: Cliff) -> Mapping[str, Any]:
    before, after = (_costs_at(study, case, cliff, nbytes) for nbytes in (cliff.sram_bytes, cliff.larger_sram_bytes))
    smaller, larger = before.by_buffer(), after.by_buffer()
    buffer = _most({b: n - smaller.get(b, 0) for b, n in larger.items()})
    if buffer is not None:
        rises = {at: n - before.moved.get(at, 0) for at, n in after.moved.items() if at[0] == buffer}
        at = max(rises, key=lambda key: (rises[key], -key[1]))
        step, cause = at[1], after.kinds[at]
    else:
        grown = {i: s - before.waits.get(i, (0.0, -1))[0] for i, (s, _) in after.waits.items()}
        waiting = _most(grown)
        if waiting is None:
            return {}
        step, cause = waiting, "waits"
        buffer = after.waits[step][1]
    named = after.program.buffers[buffer] if buffer >= 0 else None
    return {
        "buffer": None if named is None else named.name,
        "buffer_bytes": None if named is None else named.size_bytes,
        "buffer_spill_bytes": smaller.get(buffer, 0),
        "larger_buffer_spill_bytes": larger.get(buffer, 0),
        "step": step,
        "operator": after.program.steps[step].name,
        "cause": cause,
    }


def _most(rises: Mapping[int, Any]) -> int | None:
    """The index with the largest rise, the first of equal ones; None if nothing rises."""
    best = max(rises, key=lambda k: (rises[k], -k), default=None)
    return best if best is not None and rises[best] > 0 else None


def _costs_at(study: Study, case: SweepCase, cliff: Cliff, sram_bytes: int) -> _Costs:
    assert case.run is not None
    engine, run = study.engine, study.runs[case.run].at(sram_bytes)
    placed = run.planned(placement=cliff.placement)
    if cliff.strategy == IDEAL:
        played = engine.ideal(placed)
    else:
        played = engine.play(engine.fitted(run), placed, cliff.strategy)  # the program is the same for all placements
    program, plan, timeline = played.program, played.plan, played.timeline
    moved: defaultdict[tuple[int, int], int] = defaultdict(int)
    kinds: dict[tuple[int, int], str] = {}
    for at, nbytes in streamed_beyond_compulsory(program, plan).items():
        moved[at] += nbytes
        kinds[at] = "oversized"
    for charge in charges(program, plan, placed.planning):
        at = (charge.spill.buffer, charge.spill.forced_by_step)
        moved[at] += charge.total_bytes
        kinds.setdefault(at, charge.kind)
    waits = {
        i: (s, plan.transfers[t].buffer if t >= 0 else -1)
        for i, (s, t) in enumerate(zip(timeline.stall_s.tolist(), timeline.stall_transfer.tolist(), strict=True))
    }
    return _Costs(program=program, moved=dict(moved), kinds=kinds, waits=waits)
