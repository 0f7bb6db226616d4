"""Oversized steps: the choice of operands that are tiled through DRAM."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from spillprof.ir.program import PHASES_PER_STEP, Phase, Program, Step

EXACT_OPERANDS = 16  # up to here all subsets are enumerated

_Bytes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidates:
    """Operands of a step that can be streamed, and the bytes that the rest of the step needs.

    The greatest phase of ``fixed + held`` must stay within the pool, where an operand that is kept adds ``loads``.
    ``pairs`` are in-place results ``(old, new)``: with both kept, their bytes are needed once.
    """

    sizes: tuple[int, ...]
    loads: tuple[tuple[int, int, int], ...]  # bytes in READ, COMPUTE and WRITE
    pairs: tuple[tuple[int, int], ...]
    fixed: tuple[int, ...]  # workspaces and the staging buffer, by phase


def stream_oversized(program: Program, step: Step, pool_bytes: int, staging_bytes: int) -> Step | None:
    """The step with the fewest bytes of operands streamed such that the rest fits beside the staging buffer.

    On ties the set with the earlier operands, reads before writes. Exact up to ``EXACT_OPERANDS``
    operands, greedy beyond (see ``_greedy``). Dedicated operands are never streamed. An in-place result is written out
    of place if either side is streamed. None if even streaming all operands is not enough.
    """
    operands = [(b, kind) for kind, side in (("read", step.reads), ("write", step.writes)) for b in side]
    operands = [
        (b, kind) for b, kind in operands if not program.buffers[b].dedicated and program.buffers[b].size_bytes > 0
    ]
    candidates = _candidates(program, step, operands, staging_bytes)
    choose = _exact if len(operands) <= EXACT_OPERANDS else _greedy
    chosen = choose(candidates, pool_bytes)
    if chosen is None:
        return None
    streamed = [operands[k] for k in chosen]
    gone = {b for b, _ in streamed}
    return replace(
        step,
        streamed_reads=tuple(b for b, kind in streamed if kind == "read"),
        streamed_writes=tuple(b for b, kind in streamed if kind == "write"),
        updates=tuple(u for u in step.updates if u.old not in gone and u.new not in gone),
        stream_staging_bytes=staging_bytes,
    )


def _candidates(program: Program, step: Step, operands: Sequence[tuple[int, str]], staging_bytes: int) -> _Candidates:
    sizes = tuple(program.buffers[b].size_bytes for b, _ in operands)
    position = {b: k for k, (b, _) in enumerate(operands)}
    fixed = [staging_bytes] * PHASES_PER_STEP
    for workspace in step.workspaces:
        for phase in range(workspace.first, workspace.last + 1):
            fixed[phase] += workspace.size_bytes
    return _Candidates(
        sizes=sizes,
        loads=tuple((s if kind == "read" else 0, s, s) for s, (_, kind) in zip(sizes, operands, strict=True)),
        pairs=tuple(
            (position[u.old], position[u.new]) for u in step.updates if u.old in position and u.new in position
        ),
        fixed=tuple(fixed),
    )


@lru_cache(maxsize=4096)  # a network repeats its layers
def _exact(candidates: _Candidates, pool_bytes: int) -> tuple[int, ...] | None:
    """Positions to stream: the set of fewest bytes that fits.

    Sets of kept operands are numbered with the first operand as the highest bit, so the first of the best sets is
    the one that streams the earlier operands.
    """
    n = len(candidates.sizes)
    kept_bytes = _subset_sums(candidates.sizes)
    by_phase = [_subset_sums([load[phase] for load in candidates.loads]) for phase in range(PHASES_PER_STEP)]
    number = np.arange(1 << n)
    for old, new in candidates.pairs:
        both = ((number >> (n - 1 - old)) & (number >> (n - 1 - new)) & 1) == 1
        for shared in (Phase.COMPUTE, Phase.WRITE):
            by_phase[shared][both] -= candidates.sizes[old]
    fits = np.ones(1 << n, dtype=bool)
    for phase in range(PHASES_PER_STEP):
        fits &= by_phase[phase] + candidates.fixed[phase] <= pool_bytes
    if not fits[0]:
        return None
    best = int(np.argmax(np.where(fits, kept_bytes, -1)))
    return tuple(k for k in range(n) if not best >> (n - 1 - k) & 1)


def _subset_sums(values: Sequence[int]) -> _Bytes:
    """Sum of every subset; the first value is the highest bit of its number. Shape (2 ** n,), int64."""
    sums = np.zeros(1, dtype=np.int64)
    for value in values:
        sums = (sums[:, None] + np.array([0, value], dtype=np.int64)).reshape(-1)
    return sums


def _greedy(candidates: _Candidates, pool_bytes: int) -> tuple[int, ...] | None:
    """Positions to stream, not always the fewest bytes. Time n log n.

    Streams, largest first, operands no larger than the bytes still missing; then the smallest that covers them; finally
    keeps again, largest first, what fits after all. In-place results are given up beforehand.
    """
    held = list(candidates.fixed)
    for load in candidates.loads:
        for phase, nbytes in enumerate(load):
            held[phase] += nbytes
    order = sorted(range(len(candidates.sizes)), key=lambda k: (-candidates.sizes[k], k))
    streamed: dict[int, None] = {}

    def missing() -> int:
        return max(held) - pool_bytes

    def move(k: int, sign: int) -> None:
        for phase, nbytes in enumerate(candidates.loads[k]):
            held[phase] += sign * nbytes

    for k in order:
        if 0 < candidates.sizes[k] <= missing():
            streamed[k] = None
            move(k, -1)
    for k in reversed(order):
        if missing() <= 0:
            break
        if k not in streamed and candidates.sizes[k] >= missing():
            streamed[k] = None
            move(k, -1)
    for k in order:
        if missing() <= 0:
            break
        if k not in streamed:
            streamed[k] = None
            move(k, -1)
    if missing() > 0:
        return None
    for k in order:
        if k in streamed:
            move(k, 1)
            if missing() <= 0:
                del streamed[k]
            else:
                move(k, -1)
    return tuple(sorted(streamed))
