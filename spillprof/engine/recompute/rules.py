"""Recompute or spill: three rules for each gap that a plan spends off-chip.

1. Recompute if that takes clearly less time than the transfers of the spill.
2. Otherwise spill, if all operands are available.
3. Otherwise spill carefully: operands have been evicted too, and little can hide such transfers.

An operand is available if it is on-chip at the use, or if it fits free space from its last use up to this one. The
transfers of an unavailable operand count towards the time of recomputing.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from spillprof.engine.recompute.choices import Costs, GapVerdict, Proposal
from spillprof.ir.plan import Plan
from spillprof.ir.program import PHASES_PER_STEP, BufferKind, Program
from spillprof.lowering.transforms import Recompute, producers
from spillprof.planning.liveness import Lifetime, lifetimes
from spillprof.planning.range_max import RangeMax

_MOST_TIME_SHARE = 0.5
"""Of the transfers' time: recomputing must take less."""


def judged_gaps(program: Program, plan: Plan, costs: Costs) -> list[Proposal]:
    """Proposals for all spilled gaps whose buffers can be recomputed, most time saved first.

    Gaps before a first use are left out: computing the buffer only then is a reordering, not recomputation.
    """
    plan_of = _Residency(program, plan)
    found = [_judged(program, costs, plan_of, gap) for gap in _gaps(program, plan, plan_of.lives)]
    return sorted(found, key=lambda p: (-p.saves_s, p.choice))


@dataclass(frozen=True, slots=True)
class _Gap:
    buffer: int
    use_step: int
    made_by: int  # the step that writes the buffer
    written: bool  # a write-back for this gap that is not compulsory


def _gaps(program: Program, plan: Plan, lives: tuple[Lifetime, ...]) -> Iterator[_Gap]:
    made_by, n = producers(program), len(program.steps)
    due = {b.index for b in program.buffers if b.kind is BufferKind.OUTPUT}  # their first write is compulsory
    for spill in plan.spills:
        b, use = spill.buffer, spill.needed_step
        written = spill.written and b not in due
        if spill.written:
            due.discard(b)
        if b not in made_by or use is None or use >= n or not spill.reloaded:
            continue
        step, is_output = program.steps[made_by[b]], program.buffers[b].kind is BufferKind.OUTPUT
        if step.streamed_reads or step.streamed_writes or (lives[b].read_steps[0] == use and not is_output):
            continue
        yield _Gap(b, use, made_by[b], written)


def _judged(program: Program, costs: Costs, plan: "_Residency", gap: _Gap) -> Proposal:
    size = program.buffers[gap.buffer].moved_bytes
    move_s = costs.read_s(size) + (costs.write_s(size) if gap.written else 0.0)
    producer = program.steps[gap.made_by]
    again_s = costs.step_s[gap.made_by] + costs.read_s(producer.weight_stream_bytes)
    missing = [r for r in producer.reads if not plan.is_available(r, gap.use_step)]
    for r in missing:
        nbytes = program.buffers[r].moved_bytes
        again_s += costs.read_s(nbytes) + (0.0 if plan.in_dram(r, gap.use_step) else costs.write_s(nbytes))
    dear = GapVerdict.SPILL_CAREFULLY if missing else GapVerdict.SPILL
    return Proposal(
        choice=Recompute(buffer=gap.buffer, use_step=gap.use_step),
        verdict=GapVerdict.RECOMPUTE if again_s < _MOST_TIME_SHARE * move_s else dear,
        saves_s=move_s - again_s,
        saves_bytes=size * (2 if gap.written else 1) - producer.weight_stream_bytes,
    )


class _Residency:
    """When a plan has each buffer on-chip, and its free bytes at each step."""

    def __init__(self, program: Program, plan: Plan) -> None:
        self._program = program
        self.lives = lifetimes(program)
        self._stays: dict[int, list[tuple[int, int]]] = defaultdict(list)  # by buffer, ascending
        change = [0] * (len(program.steps) + 1)
        for segment in plan.segments:
            self._stays[segment.buffer].append((segment.start, segment.end))
            if not program.buffers[segment.buffer].dedicated:
                _add(change, segment.start, segment.end, program.buffers[segment.buffer].size_bytes)
        for scratch in plan.scratch:
            _add(change, scratch.start, scratch.end, scratch.size_bytes)
        pool = (plan.capacity_bytes or 0) - plan.reserved_bytes
        in_use, missing = 0, []
        for nbytes in change[:-1]:
            in_use += nbytes
            missing.append(in_use - pool)  # below 0: free
        self._missing = RangeMax(missing)
        self._written_from: dict[int, int] = {}
        for transfer in plan.transfers:
            if not transfer.kind.is_read:
                self._written_from.setdefault(transfer.buffer, transfer.issue_step)

    def is_available(self, buffer: int, step: int) -> bool:
        """Whether the buffer is on-chip at the step, is an operand of it, or fits free space since its last use."""
        if buffer in self._program.steps[step].reads or self._program.buffers[buffer].dedicated:
            return True
        stays = self._stays[buffer]
        k = bisect_right(stays, PHASES_PER_STEP * step, key=lambda stay: stay[0]) - 1
        if k < 0:
            return False
        end = stays[k][1]
        if end > PHASES_PER_STEP * step:
            return True
        idle_from = end // PHASES_PER_STEP  # that step may have overwritten it
        if idle_from == step:
            return True
        return self._missing.max(idle_from, step) + self._program.buffers[buffer].size_bytes <= 0

    def in_dram(self, buffer: int, step: int) -> bool:
        """Whether DRAM holds a copy before the step."""
        return self._program.buffers[buffer].in_dram_at_start or self._written_from.get(buffer, step) < step


def _add(change: list[int], start: int, end: int, nbytes: int) -> None:
    """Add ``nbytes`` to every step that the ticks ``[start, end)`` overlap."""
    change[start // PHASES_PER_STEP] += nbytes
    change[-(-end // PHASES_PER_STEP)] -= nbytes
