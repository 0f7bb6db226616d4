"""Attribution of spilled bytes: the bytes of every spill, its kind, and the step that forced it."""

from collections.abc import Sequence, Set
from dataclasses import dataclass

from spillprof.ir.fast_init import fast_init
from spillprof.ir.plan import Plan, Spill, TransferKind
from spillprof.ir.program import BufferKind, Program
from spillprof.ir.result import KindBytes
from spillprof.planning.gaps import gap_options, unspilled_bytes
from spillprof.planning.liveness import held_until
from spillprof.planning.options import PlanningOptions, Release

_CAPACITY, _LIFETIME, _FRAGMENTATION, OVERSIZED = "capacity", "lifetime", "fragmentation", "oversized"


@fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """The bytes that one spill moves beyond the compulsory ones."""

    spill: Spill
    write_bytes: int  # 0 for a clean buffer, and for a graph output whose compulsory write it was
    read_bytes: int
    kind: str  # "capacity", "lifetime", "fragmentation" or "oversized"
    evicted: bool  # a buffer left SRAM before its last use (a streamed one was never there)

    @property
    def total_bytes(self) -> int:
        """Both directions."""
        return self.write_bytes + self.read_bytes


def charges(program: Program, plan: Plan, options: PlanningOptions) -> tuple[Charge, ...]:
    """One charge a spill, in the order of ``plan.spills``. With the streamed bytes they add up to the spill bytes.

    Kinds: *oversized* if the gap begins or ends with a streamed use; *fragmentation* if the free bytes would have
    sufficed; *capacity* if all that is live at the forcing step exceeds the memory; else *lifetime*.
    """
    over_full = _over_full_steps(program, options)
    streamed = {(s.buffer, s.step) for s in plan.streamed}
    writes, held = _spill_writes(program, plan), held_until(program)
    n = max(len(program.steps), 1)
    found = []
    for spill in plan.spills:
        size = program.buffers[spill.buffer].moved_bytes
        needed = None if spill.needed_step is None else (spill.buffer, spill.needed_step % n)
        if (spill.buffer, spill.last_use_step) in streamed or needed in streamed:
            kind = OVERSIZED
        elif spill.fragmentation:
            kind = _FRAGMENTATION
        else:
            kind = _CAPACITY if over_full[spill.forced_by_step] else _LIFETIME
        found.append(
            Charge(
                spill=spill,
                write_bytes=size if (spill.buffer, spill.evict_step) in writes else 0,
                read_bytes=size if spill.reloaded else 0,
                kind=kind,
                evicted=_is_eviction(spill, streamed, held),
            )
        )
    return tuple(found)


def evictions(program: Program, plan: Plan) -> list[Spill]:
    """The spills that evicted a buffer before its last use, in the order of ``plan.spills``."""
    streamed = {(s.buffer, s.step) for s in plan.streamed}
    held = held_until(program)
    return [spill for spill in plan.spills if _is_eviction(spill, streamed, held)]


def bytes_by_kind(charged: Sequence[Charge], streamed_bytes: int) -> KindBytes:
    """Sums of the charges and the streamed bytes by kind."""
    total = dict.fromkeys((_CAPACITY, _LIFETIME, _FRAGMENTATION, OVERSIZED), 0)
    total[OVERSIZED] = streamed_bytes
    for charge in charged:
        total[charge.kind] += charge.total_bytes
    return KindBytes(
        capacity_bytes=total[_CAPACITY],
        lifetime_bytes=total[_LIFETIME],
        fragmentation_bytes=total[_FRAGMENTATION],
        oversized_bytes=total[OVERSIZED],
    )


def _is_eviction(spill: Spill, streamed: Set[tuple[int, int]], held: Sequence[int]) -> bool:
    """Whether a buffer left SRAM that is read or held later.

    ``streamed``: (buffer, step) of each streamed use, after which a buffer is off-chip without having left; ``held``:
    the last step that holds each buffer.
    """
    wanted = spill.needed_step is not None or held[spill.buffer] >= spill.evict_step
    return wanted and (spill.buffer, spill.last_use_step) not in streamed


def _over_full_steps(program: Program, options: PlanningOptions) -> list[bool]:
    """Whether the buffers that are live at each step, freed at their last use, exceed the pool."""
    if program.capacity_bytes is None:
        return [False] * len(program.steps)
    prompt = PlanningOptions(inputs=options.inputs, start=options.start, release=Release.LAST_USE)
    pool = program.capacity_bytes - program.reserved_bytes
    return [nbytes > pool for nbytes in unspilled_bytes(program, prompt, gap_options(program, prompt))]


def _spill_writes(program: Program, plan: Plan) -> set[tuple[int, int]]:
    """``(buffer, evict_step)`` of the write-backs that are not an output's first, compulsory write."""
    drained = {s.buffer for s in plan.streamed if s.write}
    found: set[tuple[int, int]] = set()
    for t in plan.transfers:
        if t.kind.is_read:
            continue
        first = t.buffer not in drained
        drained.add(t.buffer)
        compulsory = first and program.buffers[t.buffer].kind is BufferKind.OUTPUT
        if t.kind is TransferKind.WRITE_BACK and not compulsory:
            found.add((t.buffer, t.needed_step))
    return found
