"""Each spill from eviction to reload, and each stretch that a buffer spends off-chip after a streamed use."""

from collections.abc import Sequence

from spillprof.analysis.attribution import Charge
from spillprof.ir.plan import Plan, TransferKind
from spillprof.ir.program import Program
from spillprof.ir.result import SpillArc
from spillprof.ir.timeline import Timeline


def spill_arcs(program: Program, plan: Plan, charged: Sequence[Charge], timeline: Timeline) -> tuple[SpillArc, ...]:
    """Stretches off-chip of buffers that come back within the run, in the order of ``plan.spills``."""
    starts, ends = timeline.step_start_s.tolist(), timeline.step_end_s.tolist()
    waited = _waited(plan, timeline)
    n = len(program.steps)
    arcs = []
    for charge in charged:
        spill = charge.spill
        if spill.needed_step is None or spill.needed_step >= n or spill.last_use_step < 0:
            continue
        moves = ((TransferKind.WRITE_BACK, spill.evict_step), (TransferKind.RELOAD, spill.needed_step))
        arcs.append(
            SpillArc(
                buffer=program.buffers[spill.buffer].name,
                size_bytes=program.buffers[spill.buffer].size_bytes,
                last_use_step=spill.last_use_step,
                evict_step=spill.evict_step,
                needed_step=spill.needed_step,
                written=spill.written,
                reloaded=spill.reloaded,
                cause=charge.kind,
                idle_s=starts[spill.needed_step] - ends[spill.last_use_step],
                wait_s=sum(waited.get((kind, spill.buffer, step), 0.0) for kind, step in moves),
                evicted=charge.evicted,
            )
        )
    return tuple(arcs)


def _waited(plan: Plan, timeline: Timeline) -> dict[tuple[TransferKind, int, int], float]:
    """How long steps waited for each (kind, buffer, step that needs it or evicts) of the plan's transfers."""
    found: dict[tuple[TransferKind, int, int], float] = {}
    for k, stall_s in zip(timeline.stall_transfer.tolist(), timeline.stall_s.tolist(), strict=True):
        if k >= 0 and stall_s > 0:
            t = plan.transfers[k]
            key = t.kind, t.buffer, t.needed_step
            found[key] = found.get(key, 0.0) + stall_s
    return found
