"""Operators and buffers ranked by cost."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from spillprof.analysis.attribution import OVERSIZED, Charge
from spillprof.analysis.causes import FRAGMENTATION, main_cause
from spillprof.analysis.modes import mode_words, repeated_bytes
from spillprof.analysis.roofline import Roofline
from spillprof.ir.plan import Plan, TransferKind
from spillprof.ir.program import BufferKind, Program
from spillprof.ir.result import BufferCost, CauseBytes, OperatorCost
from spillprof.ir.timeline import JobKind, Timeline
from spillprof.planning.liveness import Lifetime, held_until

VICTIMS_NAMED = 8
STREAMED_WEIGHTS = "(streamed weights)"
WEIGHTS = -1
"""Stands for the streamed weights of a step, which are no buffer."""

COMPACTION = "(compaction moves)"


def operator_costs(
    program: Program,
    plan: Plan,
    charged: Sequence[Charge],
    timeline: Timeline,
    causes: Mapping[int, CauseBytes] | None = None,
    under: Roofline | None = None,
) -> tuple[OperatorCost, ...]:
    """Steps that force spills, stream operands, or wait for spill transfers or compaction, in order of cost.

    ``causes``: spill bytes of each step by cause; None if not known. ``under``: DRAM bytes and limit of each step.
    """
    forced: defaultdict[int, list[Charge]] = defaultdict(list)
    for charge in charged:
        forced[charge.spill.forced_by_step].append(charge)
    streamed = streamed_beyond_compulsory(program, plan)
    streamed_by_step: defaultdict[int, int] = defaultdict(int)
    for (_, at), nbytes in streamed.items():
        streamed_by_step[at] += nbytes

    blamed = timeline.stall_transfer.tolist()
    stalls = timeline.stall_s.tolist()
    kinds = timeline.stall_kind.tolist()
    spill_kinds = (TransferKind.RELOAD, TransferKind.WRITE_BACK)
    waiting = {i for i, t in enumerate(blamed) if t >= 0 and stalls[i] > 0 and plan.transfers[t].kind in spill_kinds}
    moving = {i for i, kind in enumerate(kinds) if kind == JobKind.MOVE and stalls[i] > 0}
    costs = []
    for i in sorted({*forced, *streamed_by_step, *waiting, *moving}):
        step, own = program.steps[i], forced.get(i, [])
        kind, by_cause = _main_kind(own, streamed_by_step[i]), None if causes is None else causes.get(i)
        costs.append(
            OperatorCost(
                step=i,
                name=step.name,
                op_type=step.op_type,
                spill_write_bytes=sum(c.write_bytes for c in own),
                spill_read_bytes=sum(c.read_bytes for c in own),
                streamed_bytes=streamed_by_step[i],
                stall_s=stalls[i],
                stall_buffer=_waits_for(program, plan, blamed[i], kinds[i]),
                cause=_cause(kind, by_cause) or (FRAGMENTATION if i in moving else None),
                victims=_victims(program, own),
                kind=kind,
                causes=by_cause,
                dram_bytes=0 if under is None else under.dram_bytes[i],
                bound=None if under is None else under.bound[i],
                tiling="" if step.mode is None else mode_words(program, step.mode),
                passes_bytes=0 if step.mode is None else repeated_bytes(program, step.mode),
            )
        )
    costs.sort(key=lambda c: (-c.spill_bytes, -c.stall_s, c.step))
    return tuple(costs)


def _cause(kind: str | None, causes: CauseBytes | None) -> str | None:
    return kind if causes is None else main_cause(causes)


def buffer_costs(
    program: Program, plan: Plan, charged: Sequence[Charge], lives: Sequence[Lifetime]
) -> tuple[BufferCost, ...]:
    """Buffers that were spilled or streamed, in order of bytes moved."""
    moved: defaultdict[int, int] = defaultdict(int)
    counts: defaultdict[int, int] = defaultdict(int)
    weights = 0
    for (buffer, _), nbytes in streamed_beyond_compulsory(program, plan).items():
        if buffer == WEIGHTS:
            weights += nbytes
        else:
            moved[buffer] += nbytes
    for charge in charged:
        moved[charge.spill.buffer] += charge.total_bytes
        counts[charge.spill.buffer] += charge.evicted
    held = held_until(program)
    costs = [
        BufferCost(
            name=program.buffers[b].name,
            kind=str(program.buffers[b].kind),
            size_bytes=program.buffers[b].size_bytes,
            start=lives[b].write_step or 0,
            end=max(lives[b].last_step, held[b]),
            uses=lives[b].read_steps,
            spill_count=counts[b],
            spill_bytes=nbytes,
        )
        for b, nbytes in moved.items()
    ]
    if weights:
        costs.append(
            BufferCost(
                name=STREAMED_WEIGHTS,
                kind="weight",
                size_bytes=program.weight_bytes,
                start=0,
                end=max(mode.step for mode in plan.modes if mode.weight_repeat_bytes),
                uses=tuple(mode.step for mode in plan.modes if mode.weight_repeat_bytes),
                spill_count=0,
                spill_bytes=weights,
            )
        )
    return tuple(sorted(costs, key=lambda c: (-c.spill_bytes, c.start, c.name)))


def streamed_beyond_compulsory(program: Program, plan: Plan) -> dict[tuple[int, int], int]:
    """Streamed bytes that infinite SRAM would not move, by (buffer, step); further passes of weights by ``WEIGHTS``."""
    fetched = {t.buffer for t in plan.transfers if t.kind is TransferKind.FETCH}
    found: dict[tuple[int, int], int] = {}
    for s in plan.streamed:
        buffer = program.buffers[s.buffer]
        if s.write:
            compulsory = buffer.kind is BufferKind.OUTPUT
        else:
            compulsory = buffer.kind is BufferKind.INPUT and s.buffer not in fetched and not plan.inputs_resident
            fetched.add(s.buffer)
        beyond = max(0, s.size_bytes - buffer.moved_bytes) if compulsory else s.size_bytes
        if beyond or not compulsory:
            found[s.buffer, s.step] = found.get((s.buffer, s.step), 0) + beyond
    found |= {(WEIGHTS, mode.step): mode.weight_repeat_bytes for mode in plan.modes if mode.weight_repeat_bytes}
    return found


def _waits_for(program: Program, plan: Plan, transfer: int, kind: int) -> str | None:
    """The buffer whose transfer ended last, or the name of other traffic that did; None without a wait."""
    if transfer >= 0:
        return program.buffers[plan.transfers[transfer].buffer].name
    return {JobKind.WEIGHTS: STREAMED_WEIGHTS, JobKind.MOVE: COMPACTION}.get(JobKind(kind)) if kind >= 0 else None


def _main_kind(own: Sequence[Charge], streamed_bytes: int) -> str | None:
    total: defaultdict[str, int] = defaultdict(int)
    if streamed_bytes:
        total[OVERSIZED] = streamed_bytes
    for charge in own:
        total[charge.kind] += charge.total_bytes
    return max(sorted(total), key=lambda kind: total[kind]) if total else None


def _victims(program: Program, own: Sequence[Charge]) -> tuple[str, ...]:
    buffers = {c.spill.buffer for c in own}
    ranked = sorted(buffers, key=lambda b: (-program.buffers[b].size_bytes, b))
    return tuple(program.buffers[b].name for b in ranked[:VICTIMS_NAMED])
