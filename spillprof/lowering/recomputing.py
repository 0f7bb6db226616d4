"""Buffers computed again: a second copy of a step right before a use, in place of keeping what the first one made."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from spillprof.ir.program import Buffer, BufferKind, Program, Step
from spillprof.lowering.reordering import with_updates


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Recompute:
    """Make a buffer again right before a step that reads it."""

    use_step: int
    buffer: int


def producers(program: Program) -> dict[int, int]:
    """Buffers that may be computed again, and the step that makes each.

    The step has one result, gives it again whenever it runs, and the buffer has no dedicated slot.
    """
    return {
        step.writes[0]: i
        for i, step in enumerate(program.steps)
        if step.repeatable and len(step.writes) == 1 and not program.buffers[step.writes[0]].dedicated
    }


def with_recomputed(program: Program, choices: Iterable[Recompute]) -> Program:
    """The (not yet fitted) program with a copy of the producer of each chosen buffer right before the chosen use.

    That use and all later ones, to the next choice of the same buffer, read the copy; so the first buffer's life ends
    earlier, and what its producer reads lives on to the copy, as the newest copy of it if there is one. Copies before
    one step run in the order of their producers. Buffers and steps keep their numbers, but for as many steps as stand
    before them (``moved_to``); new buffers come last. Which results are written in place is decided anew.

    ``ValueError`` for a buffer that cannot be computed again, or that the step does not read.
    """
    made_by = producers(program)
    at: defaultdict[int, list[int]] = defaultdict(list)
    for choice in sorted(set(choices)):
        if choice.buffer not in made_by or choice.buffer not in program.steps[choice.use_step].reads:
            raise ValueError(f"buffer {choice.buffer} cannot be computed again for step {choice.use_step}")
        at[choice.use_step].append(choice.buffer)
    if not at:
        return program
    names = _Names(program)
    buffers = list(program.buffers)
    newest: dict[int, int] = {}  # the copy that stands for a buffer now
    steps: list[Step] = []
    for i, step in enumerate(program.steps):
        for b in sorted(at.get(i, ()), key=lambda b: made_by[b]):
            buffers.append(names.copied_buffer(program.buffers[b], index=len(buffers)))
            steps.append(
                names.copied_step(_reading(program.steps[made_by[b]], newest), program.buffers[b], buffers[-1])
            )
            newest[b] = buffers[-1].index
        steps.append(_reading(step, newest))
    return replace(program, steps=with_updates(steps, buffers), buffers=tuple(buffers))


def moved_to(step: int, choices: Iterable[Recompute]) -> int:
    """The number of an old step in the program with the copies."""
    return step + sum(choice.use_step <= step for choice in set(choices))


def _reading(step: Step, newest: Mapping[int, int]) -> Step:
    """The step with the newest copies as its operands."""
    if newest.keys().isdisjoint((*step.reads, *step.holds)):
        return step
    return replace(
        step,
        reads=tuple(newest.get(b, b) for b in step.reads),
        may_overwrite=tuple(newest.get(b, b) for b in step.may_overwrite),
        holds=tuple(newest.get(b, b) for b in step.holds),
    )


_SUFFIX = re.compile(r" \(recomputed(?: \d+)?\)\Z")


class _Names:
    """Copies of steps and buffers, each with a name that no other has."""

    def __init__(self, program: Program) -> None:
        self._steps = dict.fromkeys((step.name for step in program.steps), 1)
        self._buffers = dict.fromkeys((n for b in program.buffers for n in (b.name, *b.tensors)), 1)
        self._copies = {program.buffers[b].name for step in program.steps if step.recomputes for b in step.writes}

    def copied_buffer(self, buffer: Buffer, index: int) -> Buffer:
        base = _SUFFIX.sub("", buffer.name) if buffer.name in self._copies else buffer.name
        name = _unused(base, self._buffers)
        return replace(buffer, index=index, name=name, tensors=(name,), kind=BufferKind.ACTIVATION)

    def copied_step(self, step: Step, original: Buffer, copy: Buffer) -> Step:
        name = _unused(_SUFFIX.sub("", step.name) if step.recomputes else step.name, self._steps)
        return replace(step, name=name, writes=(copy.index,), updates=(), recomputes=step.recomputes or original.name)


def _unused(base: str, taken: dict[str, int]) -> str:
    """``base (recomputed)``, ``base (recomputed 2)``, ...: the first that is not taken; it is now."""
    number = taken.get(base, 1)  # of copies, and one for the original
    name = base
    while name in taken:
        name = f"{base} (recomputed)" if number == 1 else f"{base} (recomputed {number})"
        number += 1
    taken[base] = number
    taken[name] = 1
    return name
