"""Search for buffers to recompute instead of spilling: proposed from plans, judged by simulation."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from spillprof.engine.recompute.choices import Costs, GapVerdict, Proposal, named_choices
from spillprof.engine.recompute.joint import joint_choice
from spillprof.engine.recompute.rules import judged_gaps
from spillprof.engine.run import PlayedPlan, Run
from spillprof.ir.errors import CapacityError
from spillprof.ir.plan import BY_CLOCK, BY_WORK, COMPLETE, Plan
from spillprof.ir.profile import RecomputedOperator, RecomputeFacts
from spillprof.ir.program import Program
from spillprof.ir.target import Target
from spillprof.lowering.transforms import Recompute, moved_to, producers, with_recomputed
from spillprof.planning.optimal.search import Optimum
from spillprof.planning.options import Recomputing
from spillprof.planning.strategies import OPTIMAL
from spillprof.planning.traffic import count_traffic
from spillprof.timing.compute import step_times_s
from spillprof.timing.dma import read_link, write_link


class Simulator(Protocol):
    """What the search asks of the engine."""

    def fit(self, program: Program, run: Run) -> Program:
        """See ``Engine.fit``."""

    def plans(self, fitted: Program, run: Run, strategy: str) -> tuple[tuple[Plan, ...], int]:
        """See ``Engine.plans``."""

    def optimum(self, fitted: Program, run: Run) -> Optimum:
        """See ``Engine.optimum``."""

    def issue(self, fitted: Program, run: Run, on_demand: Plan) -> PlayedPlan:
        """See ``Engine.issue``."""


JUDGES = {
    Recomputing.OFF: ("cost", "interval"),  # for tensors that the user names
    Recomputing.RULES: ("cost", "interval"),
    Recomputing.JOINT: ("interval", "optimal"),
}
"""Strategies that judge a program: the faster one counts."""

_TRIALS: Mapping[Recomputing, tuple[tuple[int, int], ...]] = {
    Recomputing.OFF: (),
    Recomputing.RULES: ((300, 40), (1_000, 24), (3_000, 10), (20_000, 3)),
    Recomputing.JOINT: ((300, 12), (1_000, 8), (3_000, 4)),
}
"""(most steps, programs that a search plans and plays)."""

_WORK, _SECONDS = 2_000_000, 2.0
"""Budget of ``optimal`` as a judge: work, and seconds if the user limits them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Cost of a program under its faster judge."""

    strategy: str
    spill_bytes: int  # and weights streamed again
    latency_s: float
    alone_s: float  # serial time of computing, spill transfers and weights streamed again

    def is_better_than(self, other: "Judgement") -> bool:
        """Whether it spills fewer bytes in less serial time, at no higher latency."""
        return (
            self.spill_bytes < other.spill_bytes and self.latency_s <= other.latency_s and self.alone_s < other.alone_s
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recomputation:
    """A program with recomputed steps, not fitted, and its cost before and after."""

    program: Program
    copies: tuple[RecomputedOperator, ...]  # in program order
    before: Judgement | None  # None, as is ``after``: one of the two cannot be planned
    after: Judgement | None
    spilled: Mapping[GapVerdict, int]  # gaps that the last plan still spends off-chip, by verdict
    search: str  # "complete", or what cut it short; empty: nothing was searched


def recomputed(program: Program, run: Run, engine: Simulator) -> Recomputation | None:
    """The program of a run, not fitted, with the recomputation that its options select.

    None if they select none. Unless they name tensors, also None if no plan is possible, nothing spills, or the
    program is too long to search. ``UsageError`` for a named tensor that cannot be recomputed.
    """
    trials = most_trials(run.planning.recompute, len(program.steps))
    named = named_choices(program, run.planning.recompute_tensor)
    if not trials and not named:
        return None
    search = _Search(run, engine)
    start = found = search.judged(program)
    if named:
        twice, saved = _with(
            program, {}, _as_proposals(named, program, [] if start is None else search.proposals(start))
        )
        found = search.judged(twice, saved)
        if start is None or found is None:
            copies = _copies(twice, saved, run.target)
            return Recomputation(program=twice, copies=copies, before=None, after=None, spilled={}, search="")
    if start is None or found is None or not (start.judgement.spill_bytes or named):
        return None
    left = trials
    if run.planning.recompute is Recomputing.JOINT:
        found, left = search.with_joint_choice(found, trials)
    found = _improved(search, found, left)
    return Recomputation(
        program=found.program,
        copies=_copies(found.program, found.saved, run.target),
        before=start.judgement,
        after=found.judgement,
        spilled=Counter(p.verdict for p in search.proposals(found)),
        search="" if run.planning.recompute is Recomputing.OFF else search.end,
    )


def most_trials(how: Recomputing, n_steps: int) -> int:
    """Most programs that a search for recomputation plans and plays."""
    return next((n for most, n in _TRIALS[how] if n_steps <= most), 0)


def recompute_facts(found: Recomputation) -> RecomputeFacts | None:
    """The facts for a Profile; None if the recomputation was not judged."""
    if found.before is None or found.after is None:
        return None
    return RecomputeFacts(
        operators=len(found.copies),
        macs=sum(copy.macs for copy in found.copies),
        compute_s=sum(copy.compute_s for copy in found.copies),
        weight_bytes=sum(copy.weight_bytes for copy in found.copies),
        judge=found.after.strategy,
        spill_bytes_before=found.before.spill_bytes,
        spill_bytes=found.after.spill_bytes,
        latency_s_before=found.before.latency_s,
        latency_s=found.after.latency_s,
        dear_gaps=found.spilled.get(GapVerdict.SPILL, 0),
        dear_and_far_gaps=found.spilled.get(GapVerdict.SPILL_CAREFULLY, 0),
        cheap_gaps=found.spilled.get(GapVerdict.RECOMPUTE, 0),
        search=found.search,
    )


def _as_proposals(named: Sequence[Recompute], program: Program, judged: Sequence[Proposal]) -> list[Proposal]:
    """Proposals for named tensors, with the savings of the judged gaps of a plan."""
    known, made_by = {p.choice: p for p in judged}, producers(program)
    return [
        known.get(choice)
        or Proposal(
            choice=choice,
            verdict=GapVerdict.RECOMPUTE,
            saves_s=0.0,
            saves_bytes=-program.steps[made_by[choice.buffer]].weight_stream_bytes,
        )
        for choice in named
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A program, its plan, and the cost of that."""

    program: Program
    fitted: Program
    plan: Plan
    judgement: Judgement
    saved: Mapping[str, int]  # bytes, by name of the copy's step


def _improved(search: "_Search", start: _Candidate, trials: int) -> _Candidate:
    """Apply all proposals at once; if that is no better, only the half that saves most, and so on."""
    best, share = start, 1.0
    refused: set[Recompute] = set()
    while trials:
        proposals = [p for p in search.proposals(best) if p.verdict is GapVerdict.RECOMPUTE and p.choice not in refused]
        if not proposals:
            break
        taken = proposals[: max(1, round(len(proposals) * share))]
        trials -= 1
        tried = search.better(best.judgement, *_with(best.program, best.saved, taken))
        if tried is not None:
            choices = [p.choice for p in taken]
            refused = {replace(r, use_step=moved_to(r.use_step, choices)) for r in refused}
            best, share = tried, min(1.0, 2 * share)
        elif len(taken) == 1:
            refused.add(taken[0].choice)
        else:
            share /= 2
    return best


def _with(once: Program, saved: Mapping[str, int], taken: Sequence[Proposal]) -> tuple[Program, dict[str, int]]:
    """The program with the proposals applied, and the bytes that each of its copies saves."""
    program = with_recomputed(once, [p.choice for p in taken])
    made_by = producers(once)
    in_order = sorted(taken, key=lambda p: (p.choice.use_step, made_by[p.choice.buffer]))
    known = {step.name for step in once.steps}
    copies = [step.name for step in program.steps if step.recomputes and step.name not in known]
    return program, {**saved, **{name: p.saves_bytes for name, p in zip(copies, in_order, strict=True)}}


class _Search:
    """Plans and judges candidate programs of one run."""

    def __init__(self, run: Run, engine: Simulator) -> None:
        self._engine, self._run, self._target = engine, run, run.target
        seconds = run.planning.optimize_seconds
        self._judging = run.planned(
            optimize_work=min(_WORK, run.planning.optimize_work),
            optimize_seconds=None if seconds is None else min(_SECONDS, seconds),
        )
        self._ends: list[str] = []  # how each search ended, in order

    @property
    def end(self) -> str:
        """``complete``, or the distinct reasons that cut searches short."""
        short = dict.fromkeys(end for end in self._ends if end not in ("", COMPLETE))
        return "; ".join(short) or COMPLETE

    def with_joint_choice(self, start: _Candidate, trials: int) -> tuple[_Candidate, int]:
        """The candidate with the integer program's choice, or the better part of it; and the trials left."""
        costs = _costs(start.fitted, self._target)
        joint = joint_choice(start.fitted, self._run.planning, costs)
        taken = () if joint is None else joint.proposals
        if joint is not None:
            self._ends.append(joint.search)
        while taken and trials:
            trials -= 1
            tried = self.better(start.judgement, *_with(start.program, start.saved, taken))
            if tried is not None:
                return tried, trials
            taken = taken[: len(taken) // 2]
        return start, trials

    def judged(self, program: Program, saved: Mapping[str, int] | None = None) -> _Candidate | None:
        """The program under its faster judge; None if it cannot be planned."""
        planned = self._planned(program)
        return None if planned is None else self._faster(program, *planned, saved or {})

    def better(self, than: Judgement, program: Program, saved: Mapping[str, int]) -> _Candidate | None:
        """As ``judged``, but None if that is no better than ``than``: often decided before all plans are played."""
        planned = self._planned(program)
        if planned is None:
            return None
        fitted, plans = planned
        spill_less = [plan for plan in plans if _moved_bytes(fitted, plan) < than.spill_bytes]
        if not any(self._judgement(fitted, plan).is_better_than(than) for plan in spill_less):
            return None
        tried = self._faster(program, fitted, plans, saved)
        return tried if tried.judgement.is_better_than(than) else None

    def _planned(self, program: Program) -> tuple[Program, tuple[Plan, ...]] | None:
        """The fitted program and the plans of all judges; None if no plan is possible."""
        found: list[Plan] = []
        try:
            fitted = self._engine.fit(program, self._run)
            for strategy in JUDGES[self._run.planning.recompute]:
                found += self._engine.plans(fitted, self._judging, strategy)[0]
                end = self._engine.optimum(fitted, self._judging).search if strategy == OPTIMAL else ""
                if end.startswith((BY_CLOCK, BY_WORK)):
                    self._ends.append(f"a search for the optimum that judged: {end.partition(' (')[0]}")
        except CapacityError:
            return None
        return fitted, tuple(found)

    def _faster(self, program: Program, fitted: Program, plans: Sequence[Plan], saved: Mapping[str, int]) -> _Candidate:
        """The candidate with the faster of the plans."""
        found = [(self._judgement(fitted, plan), plan) for plan in plans]
        judgement, plan = min(found, key=lambda each: (each[0].latency_s, each[0].spill_bytes))
        return _Candidate(program=program, fitted=fitted, plan=plan, judgement=judgement, saved=saved)

    def proposals(self, candidate: _Candidate) -> list[Proposal]:
        return judged_gaps(candidate.fitted, candidate.plan, _costs(candidate.fitted, self._target))

    def _judgement(self, fitted: Program, plan: Plan) -> Judgement:
        target = self._target
        timeline = self._engine.issue(fitted, self._run, plan).timeline
        link = read_link(target)
        return Judgement(
            strategy=plan.strategy,
            spill_bytes=_moved_bytes(fitted, plan),
            latency_s=timeline.makespan_s,
            alone_s=timeline.compute_s + timeline.serial_cost_s + sum(map(link.alone_s, _restreamed_bytes(fitted))),
        )


def _moved_bytes(fitted: Program, plan: Plan) -> int:
    """Spill bytes, and bytes of weights streamed again."""
    return count_traffic(fitted, plan).spill_bytes + sum(_restreamed_bytes(fitted))


def _restreamed_bytes(fitted: Program) -> list[int]:
    """Streamed weights of each recomputed step."""
    return [step.weight_stream_bytes for step in fitted.steps if step.recomputes]


def _costs(program: Program, target: Target) -> Costs:
    return Costs(
        step_s=step_times_s(program, target).tolist(),
        read_s=read_link(target).alone_s,
        write_s=write_link(target).alone_s,
    )


def _copies(program: Program, saved: Mapping[str, int], target: Target) -> tuple[RecomputedOperator, ...]:
    step_s = step_times_s(program, target).tolist()
    return tuple(
        RecomputedOperator(
            buffer=step.recomputes,
            step=i,
            macs=step.macs,
            compute_s=step_s[i],
            weight_bytes=step.weight_stream_bytes,
            saves_bytes=saved[step.name],
        )
        for i, step in enumerate(program.steps)
        if step.recomputes
    )
