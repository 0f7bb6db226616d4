"""Gap covering: which gaps must be spent off-chip in this order, whatever the policy and the placement.

Any plan of the program, ours or another's, chooses a set of gaps in which a buffer is not on-chip all the time. At
each step the gaps that stay, with what the step itself needs, fit the pool; each gap that goes costs one reload, and
each buffer that was never in DRAM one write. So the cheapest set of gaps that covers every step's excess is a bound
on the spill bytes of all plans. Addresses, late release and needless writes only add to it.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise

from spillprof.model.program import BufferKind, Program
from spillprof.planning.gaps import GapOption, gap_options, unspilled_bytes
from spillprof.planning.liveness import lifetimes, step_least_bytes
from spillprof.planning.options import Inputs, PlanningOptions, Release


@dataclass(frozen=True, kw_only=True)
class Covering:
    """The cheapest way to take at least ``excess_bytes[i]`` of gaps off-chip at every step ``i``."""

    gaps: tuple[GapOption, ...]  # those that cover a step with excess
    excess_bytes: tuple[int, ...]  # by step; 0 where everything fits
    write_bytes: dict[int, int]  # by buffer: of the write-back that its first spill costs
    forced_bytes: int  # moved by every plan: streamed operands and what they force

    @cached_property
    def over_full_before(self) -> tuple[int, ...]:
        """Steps with excess before each step, and in all. Shape (n_steps + 1,)."""
        return tuple(accumulate((nbytes > 0 for nbytes in self.excess_bytes), initial=0))

    @cached_property
    def visits(self) -> int:
        """How many (gap, step with excess) pairs there are: the work of looking at each."""
        before = self.over_full_before
        return sum(before[end] - before[start] for gap in self.gaps for start, end in gap.ranges)

    @cached_property
    def spanning(self) -> dict[int, tuple[int, ...]]:
        """Gaps (by index) that cover each step with excess."""
        found: dict[int, list[int]] = {i: [] for i, excess in enumerate(self.excess_bytes) if excess}
        for g, gap in enumerate(self.gaps):
            for start, end in gap.ranges:
                for i in range(start, end):
                    if i in found:
                        found[i].append(g)
        return {i: tuple(gaps) for i, gaps in found.items()}


def covering(program: Program, options: PlanningOptions) -> Covering:
    """The covering problem of a fitted program. ``ValueError`` for infinite memory."""
    if program.capacity_bytes is None:
        raise ValueError("infinite memory has nothing to cover")
    prompt = replace(options, release=Release.LAST_USE)
    gaps = gap_options(program, prompt)
    pool = program.capacity_bytes - program.reserved_bytes
    excess = tuple(max(0, nbytes - pool) for nbytes in unspilled_bytes(program, prompt, gaps, step_least_bytes))
    before = tuple(accumulate((nbytes > 0 for nbytes in excess), initial=0))
    relevant = tuple(g for g in gaps if any(before[end] > before[start] for start, end in g.ranges))
    forced_bytes, in_dram = _forced(program, options)
    write_bytes = {
        g.buffer: 0 if g.buffer in in_dram or _written_anyway(program, g.buffer) else g.size_bytes for g in relevant
    }
    return Covering(gaps=relevant, excess_bytes=excess, write_bytes=write_bytes, forced_bytes=forced_bytes)


def _written_anyway(program: Program, buffer: int) -> bool:
    kind = program.buffers[buffer].kind
    return program.buffers[buffer].in_dram_at_start or kind is BufferKind.OUTPUT


def _forced(program: Program, options: PlanningOptions) -> tuple[int, set[int]]:
    """Bytes that streamed operands and their neighbours move in every plan, and the buffers that get to DRAM so."""
    streamed_in = {(b, i) for i, s in enumerate(program.steps) for b in s.streamed_reads}
    streamed_out = {(b, i) for i, s in enumerate(program.steps) for b in s.streamed_writes}
    touched = {b for b, _ in streamed_in | streamed_out}
    lives = lifetimes(program)
    total, in_dram = 0, set(touched)
    for b in sorted(touched):
        buffer, life = program.buffers[b], lives[b]
        size = buffer.size_bytes
        if not _written_anyway(program, b):
            total += size  # one write, streamed or not
        loaded = False
        for i in life.read_steps:
            if (b, i) in streamed_in:
                first_load = buffer.kind is BufferKind.INPUT and not loaded and options.inputs is Inputs.ON_DEMAND
                total += 0 if first_load else size
                loaded = True
        points = life.read_steps if life.write_step is None else (life.write_step, *life.read_steps)
        for p, u in pairwise(points):
            if ((b, p) in streamed_in or (b, p) in streamed_out) and (b, u) not in streamed_in:
                total += size  # reload
    return total, in_dram
