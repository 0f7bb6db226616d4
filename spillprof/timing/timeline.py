"""Timeline: a plan played on a target.

Steps run on the target's compute units, one after another on a single one. A step starts when its reads have landed,
the writes that empty the space of its results and scratch are complete, operands that it streams in are in DRAM, its
moves are over, and the first part of its weights is there. ``work`` says what waits for what, ``bus`` how transfers
share the DRAM, and ``event_loop`` plays it all. Where transfers cannot get in each other's way, ``one_pass`` writes
down the same without an event loop.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spillprof.ir.plan import Plan
from spillprof.ir.program import Program
from spillprof.ir.target import Target
from spillprof.ir.timeline import Indices, JobKind, Jobs, Seconds, Timeline
from spillprof.timing.builder import WorkBuilder
from spillprof.timing.bus import bus_limits
from spillprof.timing.compute import step_times_s
from spillprof.timing.concurrency import add_concurrency
from spillprof.timing.dma import read_link, serial_cost_s, write_link
from spillprof.timing.energy import energy_of
from spillprof.timing.event_loop import Durations, EventLoop, Machine
from spillprof.timing.one_pass import OnePass, is_exact
from spillprof.timing.record import Record
from spillprof.timing.work import Work


def simulate(program: Program, plan: Plan, target: Target) -> Timeline:
    """Start and end of every step and transfer of a legal plan, its stalls, serial cost and energy."""
    played = in_one_pass if is_exact(target) else event_by_event
    return timeline_of(played(program, plan, target), program, plan, target)


def in_one_pass(program: Program, plan: Plan, target: Target) -> Record:
    """What one pass finds, on a machine that ``is_exact``."""
    one_pass = OnePass(program, plan, target)
    return one_pass.record(one_pass.play([t.issue_step for t in plan.transfers], range(len(plan.transfers))))


def event_by_event(program: Program, plan: Plan, target: Target) -> Record:
    """What the event loop finds, on any machine."""
    work = work_of(program, plan, target)
    durations = durations_of(work, program, target)
    loop = EventLoop(work, durations, machine_of(target))
    loop.play()
    kinds, sizes, steps, transfers = zip(*work.jobs, strict=True) if work.jobs else ((), (), (), ())
    return Record(
        step_s=_seconds(durations.step_s),
        step_start_s=_seconds(loop.step_start),
        step_end_s=_seconds(loop.step_end),
        step_reached_s=_seconds(loop.step_reached),
        step_core=_indices(loop.step_unit),
        step_cause=_indices(loop.step_cause),
        step_end_cause=_indices(loop.step_end_cause),
        job_kind=_indices(kinds),
        job_bytes=_indices(sizes),
        job_step=_indices(steps),
        job_transfer=_indices(transfers),
        flow_bytes=_seconds(durations.flow_bytes),
        queued_s=_seconds(loop.queued),
        start_s=_seconds(loop.start),
        flow_s=_seconds(loop.flow),
        end_s=_seconds(loop.end),
        cause=_indices(loop.cause),
        makespan_s=loop.now,
    )


def work_of(program: Program, plan: Plan, target: Target) -> Work:
    """Everything that a legal plan makes the target do, and what waits for what."""
    builder = WorkBuilder(program, plan, target.cores)
    work = builder.build()
    if target.cores > 1:
        add_concurrency(builder)
    return work


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


def timeline_of(record: Record, program: Program, plan: Plan, target: Target) -> Timeline:
    """What a record of a run of the plan means."""
    n = len(program.steps)
    kind, transfer = record.job_kind, record.job_transfer
    rate = np.where(_WRITES[kind], write_link(target).bytes_per_s, read_link(target).bytes_per_s)
    of_plan = transfer >= 0
    transfer_start_s, transfer_end_s = np.zeros(len(plan.transfers)), np.zeros(len(plan.transfers))
    transfer_start_s[transfer[of_plan]] = record.start_s[of_plan]
    transfer_end_s[transfer[of_plan]] = record.end_s[of_plan]
    cause = record.step_cause
    waited = cause >= n
    stall_s = np.where(waited, record.step_start_s - record.step_reached_s, 0.0)
    waited &= stall_s > 0
    return Timeline(
        step_start_s=record.step_start_s,
        step_end_s=record.step_end_s,
        step_compute_s=record.step_s,
        step_core=record.step_core,
        step_cause=cause,
        step_end_cause=record.step_end_cause,
        transfer_start_s=transfer_start_s,
        transfer_end_s=transfer_end_s,
        stall_s=stall_s,
        stall_transfer=_of_job(transfer, cause - n, waited),
        stall_kind=_of_job(kind, cause - n, waited),
        jobs=Jobs(
            kind=kind,
            size_bytes=record.job_bytes,
            step=record.job_step,
            transfer=transfer,
            queued_s=record.queued_s,
            start_s=record.start_s,
            flow_s=record.flow_s,
            end_s=record.end_s,
            flow_alone_s=record.flow_bytes / rate,
            cause=record.cause,
        ),
        makespan_s=record.makespan_s,
        compute_s=float(record.step_s.sum()),
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
