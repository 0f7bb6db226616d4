"""Each spill from eviction to reload, and every event of a run in time order."""

from collections.abc import Sequence

from spillprof.analysis.attribution import Charge
from spillprof.model.plan import Plan, TransferKind
from spillprof.model.profile import Event, SpillArc
from spillprof.model.program import Program
from spillprof.model.timeline import Timeline


def spill_arcs(program: Program, plan: Plan, charged: Sequence[Charge], timeline: Timeline) -> tuple[SpillArc, ...]:
    """Spills of buffers that come back within the run, in the order of ``plan.spills``."""
    starts, ends, stalls = timeline.step_start_s, timeline.step_end_s, timeline.stall_s
    n = len(program.steps)
    arcs = []
    for charge in charged:
        spill = charge.spill
        if spill.needed_step is None or spill.needed_step >= n or spill.last_use_step < 0:
            continue
        blamed = int(timeline.stall_transfer[spill.needed_step])
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
                idle_s=float(starts[spill.needed_step] - ends[spill.last_use_step]),
                wait_s=float(stalls[spill.needed_step]) if waits else 0.0,
            )
        )
    return tuple(arcs)


def events(program: Program, plan: Plan, timeline: Timeline) -> tuple[Event, ...]:
    """Every transfer, clean eviction, move and streamed operand, by step and then by time."""
    names = [b.name for b in program.buffers]
    found = [
        Event(
            kind=str(t.kind),
            buffer=names[t.buffer],
            size_bytes=t.size_bytes,
            step=t.issue_step,
            needed_step=t.needed_step,
            address=plan.segments[t.segment].address,
            start_s=start,
            end_s=end,
        )
        for t, start, end in zip(
            plan.transfers, timeline.transfer_start_s.tolist(), timeline.transfer_end_s.tolist(), strict=True
        )
    ]
    found += [
        Event(
            kind="evict-clean",
            buffer=names[s.buffer],
            size_bytes=program.buffers[s.buffer].size_bytes,
            step=s.evict_step,
            needed_step=s.needed_step,
            address=None,
            start_s=None,
            end_s=None,
        )
        for s in plan.spills
        if not s.written and s.needed_step is not None
    ]
    found += [
        Event(
            kind="move",
            buffer=names[m.buffer],
            size_bytes=m.size_bytes,
            step=m.step,
            needed_step=m.step,
            address=m.to_address,
            start_s=None,
            end_s=None,
        )
        for m in plan.moves
    ]
    found += [
        Event(
            kind="stream-out" if s.write else "stream-in",
            buffer=names[s.buffer],
            size_bytes=s.size_bytes,
            step=s.step,
            needed_step=s.step,
            address=None,
            start_s=None,
            end_s=None,
        )
        for s in plan.streamed
    ]
    return tuple(sorted(found, key=lambda e: (e.step, e.kind, e.needed_step, e.buffer)))
