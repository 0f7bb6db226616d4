"""Each spill from eviction to reload, and each stretch that a buffer spends off-chip after a streamed use."""

from collections.abc import Sequence

from spillprof.analysis.attribution import Charge
from spillprof.model.plan import Plan, TransferKind
from spillprof.model.program import Program
from spillprof.model.result import SpillArc
from spillprof.model.timeline import Timeline


def spill_arcs(program: Program, plan: Plan, charged: Sequence[Charge], timeline: Timeline) -> tuple[SpillArc, ...]:
    """Stretches off-chip of buffers that come back within the run, in the order of ``plan.spills``."""
    starts, ends, stalls, blame = (
        column.tolist()
        for column in (timeline.step_start_s, timeline.step_end_s, timeline.stall_s, timeline.stall_transfer)
    )
    n = len(program.steps)
    arcs = []
    for charge in charged:
        spill = charge.spill
        if spill.needed_step is None or spill.needed_step >= n or spill.last_use_step < 0:
            continue
        blamed = blame[spill.needed_step]
        waits = (
            blamed >= 0
            and plan.transfers[blamed].buffer == spill.buffer
            and plan.transfers[blamed].kind is TransferKind.RELOAD
        )
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
                wait_s=stalls[spill.needed_step] if waits else 0.0,
                evicted=charge.evicted,
            )
        )
    return tuple(arcs)
