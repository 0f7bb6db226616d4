"""Programs made from programs before they are fitted: in another order, with dedicated slots, with recomputed copies.

Each recomputes which results are written in place, because live ranges depend on the order.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from spillprof.ir.program import Buffer, BufferKind, Program, Step, Update

_SUFFIX = re.compile(r" \(recomputed(?: \d+)?\)\Z")


def reordered(program: Program, order: Sequence[int]) -> Program:
    """The (not yet fitted) program with step ``order[i]`` as step ``i``, as if that were the order of the model.

    Buffers are renumbered in order of first touch.
    ``ValueError`` if that is no permutation of the steps, or a step would read what is not written yet.
    """
    if sorted(order) != list(range(len(program.steps))):
        raise ValueError("an order names every step once")
    steps = tuple(program.steps[i] for i in order)
    written: set[int] = set()
    late = {b for step in steps for b in step.writes}
    for step in steps:
        unwritten = late.intersection((*step.reads, *step.holds)) - written
        if unwritten:
            raise ValueError(
                f"step {step.name!r} would read {program.buffers[min(unwritten)].name!r} before it is written"
            )
        written.update(step.writes)
    return _renumbered(replace(program, steps=with_updates(steps, program.buffers)))


class Touched(NamedTuple):
    """The buffers that a step touches, as in ``Step``."""

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    may_overwrite: tuple[int, ...]
    holds: tuple[int, ...] = ()


def with_updates(steps: Sequence[Step], buffers: Sequence[Buffer]) -> tuple[Step, ...]:
    """The steps with their in-place results recomputed."""
    return tuple(
        step if step.updates == updates else replace(step, updates=updates)
        for step, updates in zip(steps, updates_of(steps, buffers), strict=True)
    )


def updates_of(steps: Sequence[Touched | Step], buffers: Sequence[Buffer]) -> list[tuple[Update, ...]]:
    """The in-place result of each step: over its first operand that may be overwritten and dies there."""
    last_read = {b: i for i, step in enumerate(steps) for b in (*step.reads, *step.holds)}
    updates: list[tuple[Update, ...]] = [()] * len(steps)
    for i, step in enumerate(steps):
        for old in step.may_overwrite:
            (new,) = step.writes
            if last_read[old] == i and not buffers[old].dedicated and not buffers[new].dedicated:
                updates[i] = (Update(old=old, new=new),)
                break
    return updates


def _renumbered(program: Program) -> Program:
    """The program with its buffers in order of first touch: a step's weights, its other operands, its results."""
    buffers = program.buffers
    touched: dict[int, None] = {}
    for step in program.steps:
        touched |= dict.fromkeys(b for b in step.reads if buffers[b].kind is BufferKind.WEIGHT)
        touched |= dict.fromkeys((*step.reads, *step.holds, *step.writes))
    old = (*touched, *(b.index for b in buffers if b.index not in touched))
    if all(b == k for k, b in enumerate(old)):
        return program
    new = {b: k for k, b in enumerate(old)}

    def renumbered(each: Step) -> Step:
        return replace(
            each,
            reads=tuple(new[b] for b in each.reads),
            writes=tuple(new[b] for b in each.writes),
            updates=tuple(Update(old=new[u.old], new=new[u.new]) for u in each.updates),
            may_overwrite=tuple(new[b] for b in each.may_overwrite),
            holds=tuple(new[b] for b in each.holds),
            streamed_reads=tuple(new[b] for b in each.streamed_reads),
            streamed_writes=tuple(new[b] for b in each.streamed_writes),
        )

    return replace(
        program,
        steps=tuple(map(renumbered, program.steps)),
        buffers=tuple(replace(buffers[b], index=k) for k, b in enumerate(old)),
        reservations=tuple(r if r.buffer is None else replace(r, buffer=new[r.buffer]) for r in program.reservations),
    )


def with_slots(program: Program, buffers: Collection[int]) -> Program:
    """The (not yet fitted) program with dedicated slots for these buffers: no in-place update touches them."""
    wanted = frozenset(buffers)
    slotted = tuple(replace(b, dedicated=True) if b.index in wanted else b for b in program.buffers)
    return replace(program, buffers=slotted, steps=with_updates(program.steps, slotted))


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Recompute:
    """Recompute a buffer right before a step that reads it."""

    use_step: int
    buffer: int


def producers(program: Program) -> dict[int, int]:
    """Buffers that can be recomputed, and the step that writes each.

    The step is repeatable and has one result, and the buffer has no dedicated slot.
    """
    return {
        step.writes[0]: i
        for i, step in enumerate(program.steps)
        if step.repeatable and len(step.writes) == 1 and not program.buffers[step.writes[0]].dedicated
    }


def with_recomputed(program: Program, choices: Iterable[Recompute]) -> Program:
    """The (not yet fitted) program with a copy of the producer of each chosen buffer right before the chosen use.

    That use and all later ones, up to the next choice of the same buffer, read the copy: the live range of the original
    ends earlier, and those of its producer's operands (their newest copies) extend to the copy. Copies before one step
    run in the order of their producers. Buffers keep their numbers, and steps shift by the copies before them
    (``moved_to``); new buffers come last. In-place results are recomputed.

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
    """The index of an original step in the program with the copies."""
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


class _Names:
    """Copies of steps and buffers with unique names."""

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
    """Takes and returns the first free name of ``base (recomputed)``, ``base (recomputed 2)``, ..."""
    number = taken.get(base, 1)  # of copies, and one for the original
    name = base
    while name in taken:
        name = f"{base} (recomputed)" if number == 1 else f"{base} (recomputed {number})"
        number += 1
    taken[base] = number
    taken[name] = 1
    return name
