"""Timeline: a plan played on a target.

Steps run on the target's compute units, one after another on a single one. A step starts when its reads have landed,
the writes that empty the space of its results and scratch are complete, operands that it streams in are in DRAM, its
moves are over, and the first part of its weights is there. ``work`` says what waits for what, ``bus`` how transfers
share the DRAM, and ``event_loop`` plays it all. Where transfers cannot get in each other's way, ``traced_pass`` writes
down the same in one pass.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spillprof.model.plan import Plan
from spillprof.model.program import Program
from spillprof.model.target import Target
from spillprof.model.timeline import Indices, JobKind, Jobs, Seconds, Timeline
from spillprof.timing.builder import WorkBuilder
from spillprof.timing.bus import bus_limits
from spillprof.timing.compute import step_times_s
from spillprof.timing.concurrency import add_concurrency
from spillprof.timing.dma import read_link, serial_cost_s, write_link
from spillprof.timing.energy import energy_of
from spillprof.timing.event_loop import Durations, EventLoop, Machine
from spillprof.timing.forward_pass import is_exact
from spillprof.timing.record import Record
from spillprof.timing.traced_pass import traced_pass
from spillprof.timing.work import Work


def simulate(program: Program, plan: Plan, target: Target) -> Timeline:
    """Start and end of every step and transfer of a legal plan, its stalls, serial cost and energy."""
    played = traced_pass if is_exact(target) else event_by_event
    return _timeline(played(program, plan, target), program, plan, target)


def event_by_event(program: Program, plan: Plan, target: Target) -> Record:
    """What the event loop finds, on any machine."""
    work = work_of(program, plan, target)
    durations = durations_of(work, program, target)
    loop = EventLoop(work, durations, machine_of(target))
    loop.play()
    return Record(
        step_s=durations.step_s,
        step_start_s=loop.step_start,
        step_end_s=loop.step_end,
        step_reached_s=loop.step_reached,
        step_core=loop.step_unit,
        step_cause=loop.step_cause,
        step_end_cause=loop.step_end_cause,
        jobs=work.jobs,
        flow_bytes=durations.flow_bytes,
        queued_s=loop.queued,
        start_s=loop.start,
        flow_s=loop.flow,
        end_s=loop.end,
        cause=loop.cause,
        makespan_s=loop.now,
    )


def work_of(program: Program, plan: Plan, target: Target) -> Work:
    """Everything that a legal plan makes the target do, and what waits for what."""
    builder = WorkBuilder(program, plan, target.cores)
    work = builder.build()
    if target.cores > 1:
        add_concurrency(builder)
    return work


def makespan_s(program: Program, plan: Plan, target: Target) -> float:
    """Seconds until the last step has ended and the last transfer has landed."""
    work = work_of(program, plan, target)
    loop = EventLoop(work, durations_of(work, program, target), machine_of(target))
    loop.play()
    return loop.now


def machine_of(target: Target) -> Machine:
    """Channels and bus of the target."""
    shared = target.dma_shared_channels
    return Machine(
        limits=bus_limits(target),
        channels=(shared,) if shared else (target.dma_read_channels, target.dma_write_channels),
        outstanding=target.dram_outstanding,
    )


def durations_of(work: Work, program: Program, target: Target) -> Durations:
    """What each step and job takes alone on the target."""
    read, write = read_link(target), write_link(target)
    setup_s, flow_bytes = [], []
    for kind, nbytes, _, _ in work.jobs:
        if kind is JobKind.MOVE or kind is JobKind.JOINT:
            setup_s.append(2 * nbytes / target.sram_bytes_per_s)  # each byte is read and written
            flow_bytes.append(0.0)
        else:
            link = write if kind.is_write else read
            setup_s.append(link.setup_s if nbytes > 0 else 0.0)
            flow_bytes.append(link.flow_bytes(nbytes))
    return Durations(step_s=step_times_s(program, target).tolist(), setup_s=setup_s, flow_bytes=flow_bytes)


def _timeline(record: Record, program: Program, plan: Plan, target: Target) -> Timeline:
    n = len(program.steps)
    kinds, sizes, steps, transfers = zip(*record.jobs, strict=True) if record.jobs else ((), (), (), ())
    kind, transfer, start_s, end_s = (
        _indices(kinds),
        _indices(transfers),
        _seconds(record.start_s),
        _seconds(record.end_s),
    )
    rate = np.where(_WRITES[kind], write_link(target).bytes_per_s, read_link(target).bytes_per_s)
    of_plan = transfer >= 0
    transfer_start_s, transfer_end_s = np.zeros(len(plan.transfers)), np.zeros(len(plan.transfers))
    transfer_start_s[transfer[of_plan]], transfer_end_s[transfer[of_plan]] = start_s[of_plan], end_s[of_plan]
    step_start_s, cause = _seconds(record.step_start_s), _indices(record.step_cause)
    waited = cause >= n
    stall_s = np.where(waited, step_start_s - _seconds(record.step_reached_s), 0.0)
    waited &= stall_s > 0
    compute_s = _seconds(record.step_s)
    return Timeline(
        step_start_s=step_start_s,
        step_end_s=_seconds(record.step_end_s),
        step_compute_s=compute_s,
        step_core=_indices(record.step_core),
        step_cause=cause,
        step_end_cause=_indices(record.step_end_cause),
        transfer_start_s=transfer_start_s,
        transfer_end_s=transfer_end_s,
        stall_s=stall_s,
        stall_transfer=_of_job(transfer, cause - n, waited),
        stall_kind=_of_job(kind, cause - n, waited),
        jobs=Jobs(
            kind=kind,
            size_bytes=_indices(sizes),
            step=_indices(steps),
            transfer=transfer,
            queued_s=_seconds(record.queued_s),
            start_s=start_s,
            flow_s=_seconds(record.flow_s),
            end_s=end_s,
            flow_alone_s=_seconds(record.flow_bytes) / rate,
            cause=_indices(record.cause),
        ),
        makespan_s=record.makespan_s,
        compute_s=float(compute_s.sum()),
        serial_cost_s=serial_cost_s(program, plan, target),
        energy=energy_of(program, plan, target),
    )


_WRITES = np.array([kind.is_write for kind in JobKind])
"""Whether DRAM is written, by JobKind."""


def _of_job(values: Indices, job: Indices, wanted: npt.NDArray[np.bool_]) -> Indices:
    """The value of each step's job where wanted, else -1."""
    found = np.full(len(job), -1, dtype=np.int64)
    found[wanted] = values[job[wanted]]
    return found


def _seconds(values: Sequence[float]) -> Seconds:
    return np.array(values, dtype=np.float64)


def _indices(values: Sequence[int]) -> Indices:
    return np.array(values, dtype=np.int64)
