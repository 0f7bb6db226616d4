"""The story of one tensor or operator under one strategy, and what would keep a tensor in SRAM."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from spillprof.analysis.attribution import Charge
from spillprof.analysis.hotspots import streamed_beyond_compulsory
from spillprof.explain.whatif.change import Change
from spillprof.explain.whatif.machine_changes import smallest_sram, with_sram
from spillprof.explain.whatif.planning_changes import slot
from spillprof.explain.whatif.suggest import STEPS_IN_ALL, suggestion
from spillprof.explain.whatif.trial import Trial, TrialTotals, runs_in_one
from spillprof.ir.errors import SpillprofError, UsageError
from spillprof.ir.graph import Graph
from spillprof.ir.nearest import nearest
from spillprof.ir.plan import Plan
from spillprof.ir.program import PHASES_PER_STEP, Buffer, Phase, Program
from spillprof.ir.result import Result
from spillprof.ir.story import Absence, Bystander, Operand, OperatorStory, Relocation, Story, Suggestion, TensorStory
from spillprof.planning.liveness import held_until, lifetimes, step_demand_bytes

MOST_STORIES = 20
"""Most tensors or operators in one story: a name may stand for every trip of a loop."""


@dataclass(frozen=True, kw_only=True)
class StoryContext:
    """Plan and result of one strategy, and the trial that what-ifs change."""

    graph: Graph
    program: Program  # fitted
    plan: Plan
    charged: Sequence[Charge]
    result: Result
    again: Trial  # the run under a strategy that is quick to plan
    before: TrialTotals  # totals without a change

    @cached_property
    def absences(self) -> tuple[Absence, ...]:
        """One absence per spill, in the order of ``plan.spills``."""
        names = [step.name for step in self.program.steps]
        causes = {cost.step: cost.cause for cost in self.result.operators}
        waits = {(arc.buffer, arc.last_use_step): arc.wait_s for arc in self.result.arcs}
        found = []
        for charge in self.charged:
            spill, buffer = charge.spill, self.program.buffers[charge.spill.buffer]
            needed = spill.needed_step
            found.append(
                Absence(
                    buffer=buffer.name,
                    size_bytes=buffer.size_bytes,
                    last_use_step=spill.last_use_step,
                    forced_by_step=spill.forced_by_step,
                    forced_by=names[spill.forced_by_step] if spill.forced_by_step < len(names) else "",
                    needed_step=needed,
                    needed_by=None if needed is None else names[needed % len(names)],
                    write_bytes=charge.write_bytes,
                    read_bytes=charge.read_bytes,
                    kind=charge.kind,
                    cause=causes.get(spill.forced_by_step),
                    wait_s=waits.get((buffer.name, spill.last_use_step), 0.0),
                )
            )
        return tuple(found)

    @cached_property
    def streamed(self) -> dict[tuple[int, int], int]:
        """Streamed bytes beyond the compulsory ones, by (buffer, step)."""
        return streamed_beyond_compulsory(self.program, self.plan)


def story(name: str, context: StoryContext) -> Story:
    """The stories of all tensors and operators of a name. ``UsageError`` if there are none."""
    buffers, steps = resolve(name, context.graph, context.program)
    return Story(
        asked=name,
        strategy=context.result.strategy,
        tensors=tuple(_of_tensor(b, context) for b in buffers[:MOST_STORIES]),
        operators=tuple(_of_operator(i, context) for i in steps[:MOST_STORIES]),
    )


def _of_tensor(b: int, context: StoryContext) -> TensorStory:
    program, buffer = context.program, context.program.buffers[b]
    life, held = lifetimes(program)[b], held_until(program)[b]
    own = [a for a, c in zip(context.absences, context.charged, strict=True) if c.spill.buffer == b]
    streamed = sum(nbytes for (other, _), nbytes in context.streamed.items() if other == b)
    moves = tuple(_relocations(b, context))
    leaves = bool(own) or streamed > 0 or bool(moves)
    again, before = context.again, context.before
    return TensorStory(
        buffer=buffer.name,
        tensors=buffer.tensors,
        kind=str(buffer.kind),
        size_bytes=buffer.size_bytes,
        dedicated=buffer.dedicated,
        written_by_step=life.write_step,
        written_by=None if life.write_step is None else program.steps[life.write_step].name,
        read_by_steps=life.read_steps,
        read_by=tuple(program.steps[i].name for i in life.read_steps),
        held_by_step=None if held < 0 else held,
        held_by=None if held < 0 else program.steps[held].name,
        absences=tuple(own),
        streamed_bytes=streamed,
        spill_bytes=streamed + sum(a.write_bytes + a.read_bytes for a in own),
        wait_s=sum(a.wait_s for a in own),
        pinned=in_a_slot(buffer, again, before) if leaves and not buffer.dedicated else None,
        stays=with_more_sram(buffer, again, before) if leaves else None,
        moves=moves,
    )


def _relocations(b: int, context: StoryContext) -> Iterator[Relocation]:
    """Moves of a buffer inside SRAM."""
    name = context.program.buffers[b].name
    own = [move for move in context.plan.moves if move.buffer == b]
    if not own:
        return
    took = {
        (e.buffer, e.step): (e.end_s or 0.0) - (e.start_s or 0.0) for e in context.result.events if e.kind == "move"
    }
    for move in own:
        yield Relocation(
            step=move.step,
            before=context.program.steps[move.step].name,
            from_address=move.from_address,
            to_address=move.to_address,
            took_s=took.get((name, move.step), 0.0),
        )


def _of_operator(i: int, context: StoryContext) -> OperatorStory:
    program, step = context.program, context.program.steps[i]
    cost = next((c for c in context.result.operators if c.step == i), None)
    capacity = program.capacity_bytes
    assert capacity is not None
    return OperatorStory(
        step=i,
        name=step.name,
        op_type=step.op_type,
        operators=step.operators,
        demand_bytes=step_demand_bytes(program, step),
        pool_bytes=capacity - program.reserved_bytes,
        operands=tuple(_operands(i, program)),
        bystanders=_bystanders(i, context),
        victims=tuple(a for a in context.absences if a.forced_by_step == i),
        streamed_bytes=sum(nbytes for (_, at), nbytes in context.streamed.items() if at == i),
        cause=None if cost is None else cost.cause,
        stall_s=0.0 if cost is None else cost.stall_s,
        stall_buffer=None if cost is None else cost.stall_buffer,
    )


def _operands(i: int, program: Program) -> list[Operand]:
    step = program.steps[i]
    found = []
    for role, side, streamed in (
        ("reads", step.reads, step.streamed_reads),
        ("writes", step.writes, step.streamed_writes),
    ):
        for b in side:
            buffer = program.buffers[b]
            tiled = ", tiled" if b in streamed else ""
            found.append(Operand(buffer=buffer.name, size_bytes=buffer.size_bytes, role=role + tiled))
    return found


def _bystanders(i: int, context: StoryContext) -> tuple[Bystander, ...]:
    """Buffers in SRAM while the step computes that it neither reads nor writes, largest first."""
    program, moment = context.program, PHASES_PER_STEP * i + Phase.COMPUTE
    step, lives = program.steps[i], lifetimes(program)
    resident = {s.buffer for s in context.plan.segments if s.start <= moment < s.end} - {*step.reads, *step.writes}
    found = [
        Bystander(
            buffer=program.buffers[b].name,
            size_bytes=program.buffers[b].size_bytes,
            next_use_step=next((k for k in lives[b].read_steps if k > i), None),
        )
        for b in resident
    ]
    return tuple(sorted(found, key=lambda s: (-s.size_bytes, s.buffer)))


def resolve(name: str, graph: Graph, program: Program) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(buffers, steps) of the tensor or operator of a name; ``#12`` is step 12.

    A view means its buffer. A fused operator, or a tensor that exists only inside one, means the step. ``UsageError``
    if the model has no such name.
    """
    buffers = tuple(b.index for b in program.buffers if name in b.tensors)
    steps = tuple(i for i, step in enumerate(program.steps) if name == step.name or name in step.operators)
    if not buffers and not steps:
        writers = {op.name for op in graph.operators if name and name in op.outputs}
        steps = tuple(i for i, step in enumerate(program.steps) if writers & {step.name, *step.operators})
    if not buffers and not steps and name.startswith("#") and name[1:].isascii() and name[1:].isdigit():
        steps = (int(name[1:]),) if len(name) < 19 and int(name[1:]) < len(program.steps) else ()
    if buffers or steps:
        return buffers, steps
    if name in graph.tensors or any(name == op.name for op in graph.operators):
        raise UsageError(
            f"there is no story of '{name}': it is not in the run",
            hint="a weight that streams, or something that was folded, removed, or lies inside of another operator",
        )
    known = dict.fromkeys(
        each
        for each in (
            *(tensor for buffer in program.buffers for tensor in buffer.tensors),
            *(operator for step in program.steps for operator in (step.name, *step.operators)),
        )
        if each
    )
    near = nearest(name, known, most=3)
    hint = f"did you mean {', '.join(near)}?" if near else "spillprof inspect lists tensors and operators"
    raise UsageError(f"the model has no tensor or operator '{name}'", hint=hint)


_MOST_PLANS = 10


def in_a_slot(buffer: Buffer, trial: Trial, before: TrialTotals) -> Suggestion | None:
    """The run with the buffer in a dedicated slot, whether that saves anything or not; None if no plan is possible."""
    change = slot(buffer.name, buffer.size_bytes, trial)
    return None if change is None else _tried(change, before)


def with_more_sram(buffer: Buffer, trial: Trial, before: TrialTotals) -> Suggestion | None:
    """The smallest SRAM found in which the buffer stays in place; None if none is found, or the program is too long."""
    program = trial.fitted()
    if len(program.steps) * runs_in_one(trial.run.planning, program) * _MOST_PLANS > STEPS_IN_ALL:
        return None
    left = _MOST_PLANS

    def stays(sram_bytes: int) -> bool:
        nonlocal left
        left -= 1
        return _stays(buffer.name, trial.at(sram_bytes))

    enough = smallest_sram(trial, stays, lambda: left > 0)
    return None if enough is None else _tried(with_sram(trial, enough), before)


def _stays(name: str, trial: Trial) -> bool:
    """Whether the buffer is never spilled, streamed or moved."""
    try:
        program = trial.fitted()
        plan = trial.engine.plans(program, trial.run, trial.strategy)[0][0]
    except SpillprofError:
        return False
    displaced = (
        {s.buffer for s in plan.spills} | {s.buffer for s in plan.streamed} | {move.buffer for move in plan.moves}
    )
    return all(b.index not in displaced for b in program.buffers if b.name == name)


def _tried(change: Change, before: TrialTotals) -> Suggestion | None:
    after = change.trial.outcome()
    return None if after is None else suggestion(change, before, after, (change.trial.strategy,))
