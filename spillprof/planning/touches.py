"""Who touches what, as columns: one entry for each operand of each step."""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spillprof.ir.memo import once_per_steps
from spillprof.ir.program import Program

Ints = npt.NDArray[np.int64]


class Touches(NamedTuple):
    """Operands in the order of the steps, and of each in operand order; not to be changed."""

    steps: Ints  # ascending
    buffers: Ints


@once_per_steps
def reads(program: Program) -> Touches:
    """What the steps read."""
    return flattened([step.reads for step in program.steps])


@once_per_steps
def writes(program: Program) -> Touches:
    """What the steps write."""
    return flattened([step.writes for step in program.steps])


def flattened(by_step: Sequence[Sequence[int]]) -> Touches:
    """One entry for each buffer of each step."""
    counts = np.fromiter(map(len, by_step), dtype=np.int64, count=len(by_step))
    buffers = np.fromiter(chain.from_iterable(by_step), dtype=np.int64, count=int(counts.sum()))
    return Touches(steps=np.repeat(np.arange(len(by_step)), counts), buffers=buffers)
