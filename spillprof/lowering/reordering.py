"""Steps in another order, and what is written in place then: where an operand dies depends on the order."""

from collections.abc import Sequence
from dataclasses import replace

from spillprof.model.program import Buffer, Program, Step, Update


def reordered(program: Program, order: Sequence[int]) -> Program:
    """The (not yet fitted) program with step ``order[i]`` as step ``i``; buffers keep their numbers.

    ``ValueError`` if that is no permutation of the steps, or a step would read what is not written yet.
    """
    if sorted(order) != list(range(len(program.steps))):
        raise ValueError("an order names every step once")
    steps = tuple(program.steps[i] for i in order)
    written: set[int] = set()
    late = {b for step in steps for b in step.writes}
    for step in steps:
        unwritten = late.intersection(step.reads) - written
        if unwritten:
            raise ValueError(
                f"step {step.name!r} would read {program.buffers[min(unwritten)].name!r} before it is written"
            )
        written.update(step.writes)
    return replace(program, steps=with_updates(steps, program.buffers))


def with_updates(steps: Sequence[Step], buffers: Sequence[Buffer]) -> tuple[Step, ...]:
    """The steps with their in-place results decided: the first operand that may be overwritten and dies there."""
    last_read = {b: i for i, step in enumerate(steps) for b in step.reads}

    def update(i: int, step: Step) -> tuple[Update, ...]:
        for old in step.may_overwrite:
            (new,) = step.writes
            if last_read[old] == i and not buffers[old].dedicated and not buffers[new].dedicated:
                return (Update(old=old, new=new),)
        return ()

    return tuple(
        replace(step, updates=update(i, step)) if step.may_overwrite or step.updates else step
        for i, step in enumerate(steps)
    )
