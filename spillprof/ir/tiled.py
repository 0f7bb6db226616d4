"""A program with the modes of a plan: what planners place, what the timeline simulates and the verifier checks."""

from collections.abc import Iterable, Set
from dataclasses import replace

from spillprof.ir.memo import once_per_steps
from spillprof.ir.modes import StepMode
from spillprof.ir.program import ACCUMULATOR, Program, Step, Update, Workspace


def with_modes(program: Program, modes: Iterable[StepMode]) -> Program:
    """The fitted program in which each of these modes is what its step does.

    Operands with traffic are streamed, and the tiles are the step's staging. An in-place result that loses the operand
    it overwrites takes another one that dies, if it is as large; it loses its own place if it is streamed itself.
    """
    chosen = tuple(modes)
    if all(program.steps[mode.step].mode == mode for mode in chosen):
        return program
    known = program.memo.values
    key = ("with_modes", chosen)
    if key not in known:
        steps = list(program.steps)
        for mode in chosen:
            steps[mode.step] = _tiled(program, steps[mode.step], mode)
        known[key] = replace(program, steps=tuple(steps))
    tiled: Program = known[key]
    return tiled


def _tiled(program: Program, step: Step, mode: StepMode) -> Step:
    streamed = {each.buffer for each in mode.traffic}
    return replace(
        step,
        streamed_reads=tuple(b for b in step.reads if b in streamed),
        streamed_writes=tuple(b for b in step.writes if b in streamed),
        updates=tuple(in_place(program, step, mode.step, streamed)) if step.updates else (),
        workspaces=workspaces_in_mode(step, streamed) if step.workspaces else (),
        stream_staging_bytes=mode.footprint_bytes,
        tiles=mode.tiles,
        weight_repeat_bytes=mode.weight_repeat_bytes,
        mode=mode,
    )


def workspaces_in_mode(step: Step, streamed: Set[int]) -> tuple[Workspace, ...]:
    """Workspaces beside the tiles: accumulators of results that all pass in tiles are part of the tiles."""
    if not all(b in streamed for b in step.writes):
        return step.workspaces
    return tuple(w for w in step.workspaces if w.purpose != ACCUMULATOR)


def in_place(program: Program, step: Step, i: int, streamed: set[int]) -> Iterable[Update]:
    """The in-place results of step ``i`` if these operands are streamed."""
    taken = {update.old for update in step.updates}
    for update in step.updates:
        if update.new in streamed:
            continue
        if update.old not in streamed:
            yield update
            continue
        size = program.buffers[update.new].size_bytes
        for old in replaceable(program, i):
            if old not in streamed and old not in taken and program.buffers[old].size_bytes == size:
                taken.add(old)
                yield Update(old=old, new=update.new)
                break


def replaceable(program: Program, i: int) -> list[int]:
    """Operands that die in step ``i`` and that its result may overwrite."""
    step, last = program.steps[i], _last_reads(program)
    return [b for b in step.may_overwrite if last[b] == i and not program.buffers[b].dedicated]


@once_per_steps
def _last_reads(program: Program) -> dict[int, int]:
    """The last step that reads or holds each buffer."""
    return {b: i for i, step in enumerate(program.steps) for b in (*step.reads, *step.holds)}
