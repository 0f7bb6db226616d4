"""What may be computed again: proposals, what they cost, and tensors that the user names."""

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
    """What the rules say of a gap that a plan spends off-chip."""

    RECOMPUTE = "cheaper to compute again"
    SPILL = "dearer to compute again"  # although its operands are on-chip
    SPILL_CAREFULLY = "dear to compute again, and its operands have left"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A buffer that could be computed again before a use, in place of being moved."""

    choice: Recompute
    verdict: GapVerdict
    saves_s: float  # transfers alone, less the second computing and what its operands cost
    saves_bytes: int  # of the transfers that would not be made


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Seconds that things take alone on a target."""

    step_s: Sequence[float]  # computing of each step
    read_s: Callable[[int], float]  # of a transfer of so many bytes
    write_s: Callable[[int], float]


_HINT = "it must be the one result of an operator that gives it again, and be read once more after a while"


def asked_choices(program: Program, tensors: Iterable[str]) -> tuple[Recompute, ...]:
    """Each tensor right before the use that ends its longest gap, of equal ones the first; a view means its buffer.

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
    """The use after the longest stretch of steps between two uses of a buffer; None if nothing runs between any.

    Its first use is left out: to compute it only then is another order. A graph output is wanted from the start.
    """
    uses: Sequence[int] = life.read_steps
    if program.buffers[buffer].kind is BufferKind.OUTPUT and life.write_step is not None:
        uses = (life.write_step, *uses)
    gaps = [(before - after, after) for before, after in pairwise(uses) if after - before > 1]
    return min(gaps)[1] if gaps else None


def _obstacle(program: Program, buffer: int) -> str:
    """Why there is nothing to compute."""
    found = program.buffers[buffer]
    if found.kind in (BufferKind.INPUT, BufferKind.WEIGHT):
        return "no operator makes it"
    if found.dedicated:
        return "it has a slot of its own"
    if buffer not in producers(program):
        return "its operator has other results too, or could give another one"
    return "nothing runs between its uses, or it has but one"
