"""Steps in another order, and what is written in place then: where an operand dies depends on the order."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from spillprof.ir.program import Buffer, BufferKind, Program, Step, Update


def reordered(program: Program, order: Sequence[int]) -> Program:
    """The (not yet fitted) program with step ``order[i]`` as step ``i``, as if the model listed its operators so.

    Buffers are numbered anew, in the order in which the steps first touch them.
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
    """What a step touches, as ``Step`` has it."""

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    may_overwrite: tuple[int, ...]
    holds: tuple[int, ...] = ()


def with_updates(steps: Sequence[Step], buffers: Sequence[Buffer]) -> tuple[Step, ...]:
    """The steps with their in-place results decided anew."""
    return tuple(
        step if step.updates == updates else replace(step, updates=updates)
        for step, updates in zip(steps, updates_of(steps, buffers), strict=True)
    )


def updates_of(steps: Sequence[Touched | Step], buffers: Sequence[Buffer]) -> list[tuple[Update, ...]]:
    """The in-place results of each step: of the first operand that may be overwritten and dies there."""
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
