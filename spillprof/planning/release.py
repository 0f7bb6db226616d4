"""When the space of a buffer that nobody reads any more is freed: by release policy, and by what holds it."""

from collections.abc import Sequence

from spillprof.ir.program import Program
from spillprof.planning.liveness import held_until
from spillprof.planning.options import Release


def release_steps(program: Program, last: Sequence[int], release: Release) -> Sequence[int]:
    """The step at whose end each buffer's space is freed, never before its ``last`` use. Shape (n_buffers,)."""
    held = held_until(program)
    if max(held, default=-1) >= 0:
        last = [max(step, until) if step >= 0 else step for step, until in zip(last, held, strict=True)]
    match release:
        case Release.LAST_USE:
            return last
        case Release.END:
            return [len(program.steps) - 1 if step >= 0 else step for step in last]
        case Release.SCOPE:
            ends = _scope_ends(program)
            return [ends[step] if step >= 0 else step for step in last]


def _scope_ends(program: Program) -> list[int]:
    """Last step of the run of steps that share a scope, for each step.

    The scope of a step is its name up to the last '/': the module path that exporters write. A step that computes
    again runs in the scope of the step that asks for it.
    """
    scopes = [step.name.rpartition("/")[0] for step in program.steps]
    for i in range(len(scopes) - 2, -1, -1):
        if program.steps[i].recomputes:
            scopes[i] = scopes[i + 1]
    ends = list(range(len(scopes)))
    for i in range(len(scopes) - 2, -1, -1):
        if scopes[i] == scopes[i + 1]:
            ends[i] = ends[i + 1]
    return ends
