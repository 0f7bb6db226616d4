"""Candidates for recomputation: proposals, costs, and tensors that the user names."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from spillprof.ir.errors import UsageError
from spillprof.ir.program import BufferKind, Program
from spillprof.lowering.naming import unknown_tensor
from spillprof.lowering.transforms import Recompute, producers
from spillprof.planning.liveness import Lifetime, lifetimes


class GapVerdict(StrEnum):
    """Verdict of the rules on a gap that a plan spends off-chip."""

    RECOMPUTE = "cheaper to compute again"
    SPILL = "dearer to compute again"  # although its operands are on-chip
    SPILL_CAREFULLY = "dear to compute again, and its operands have left"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A buffer that could be recomputed before a use instead of being spilled."""

    choice: Recompute
    verdict: GapVerdict
    saves_s: float  # transfer time without contention, less the time of recomputing and of fetching operands
    saves_bytes: int  # bytes of the transfers avoided


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Seconds of steps and transfers on a target, without contention."""

    step_s: Sequence[float]  # compute time of each step
    read_s: Callable[[int], float]  # by bytes of the transfer
    write_s: Callable[[int], float]


_HINT = "it must be the only result of a deterministic operator, and other steps must run between two of its uses"


def named_choices(program: Program, tensors: Iterable[str]) -> tuple[Recompute, ...]:
    """Recompute each tensor before the use that ends its longest gap (the first of equals); a view means its buffer.

    ``UsageError`` for a tensor that is not stored, cannot be computed again, or has no gap.
    """
    wanted = dict.fromkeys(tensors)
    if not wanted:
        return ()
    buffers = {name: b.index for b in program.buffers for name in b.tensors if name in wanted}
    made_by, lives = producers(program), lifetimes(program)
    found = []
    for name in wanted:
        if name not in buffers:
            known = [tensor for b in program.buffers for tensor in b.tensors]
            raise unknown_tensor(f"cannot compute '{name}' again: no tensor of that name is stored", name, known)
        b = buffers[name]
        use = longest_gap_end(program, b, lives[b]) if b in made_by else None
        if use is None:
            raise UsageError(f"cannot compute tensor '{name}' again: {_obstacle(program, b)}", hint=_HINT)
        found.append(Recompute(buffer=b, use_step=use))
    return tuple(dict.fromkeys(found))


def longest_gap_end(program: Program, buffer: int, life: Lifetime) -> int | None:
    """The step that ends the longest gap between two uses of a buffer; None if no step runs between uses.

    Gaps before the first use do not count: computing the buffer later is a reordering, not recomputation. Writing a
    graph output counts as its first use.
    """
    uses: Sequence[int] = life.read_steps
    if program.buffers[buffer].kind is BufferKind.OUTPUT and life.write_step is not None:
        uses = (life.write_step, *uses)
    gaps = [(before - after, after) for before, after in pairwise(uses) if after - before > 1]
    return min(gaps)[1] if gaps else None


def _obstacle(program: Program, buffer: int) -> str:
    """Why the buffer cannot be recomputed."""
    found = program.buffers[buffer]
    if found.kind in (BufferKind.INPUT, BufferKind.WEIGHT):
        return "no operator makes it"
    if found.dedicated:
        return "it has a slot of its own"
    if buffer not in producers(program):
        return "its operator has other results too, or is not deterministic"
    return "nothing runs between its uses, or it has but one"
