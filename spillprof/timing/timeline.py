"""Timeline: a plan simulated on a target.

Steps run on the target's compute units, one after another on a single one. A step starts when its reads have landed,
the writes that empty the space of its results and scratch are complete, operands that it streams in are in DRAM, its
moves are over, and the first part of its weights is there. ``work`` holds the dependences, ``bus`` the sharing
of the DRAM, and ``event_loop`` simulates them. Where transfers cannot delay each other, ``one_pass`` gives the same
record without an event loop.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from spillprof.ir.plan import Plan
from spillprof.ir.program import Program
from spillprof.ir.result import Energy
from spillprof.ir.target import Target
from spillprof.ir.tiled import with_modes
from spillprof.ir.timeline import Indices, JobKind, Jobs, Seconds, Timeline
from spillprof.timing.bus import bus_limits
from spillprof.timing.compute import step_times_s
from spillprof.timing.concurrency import add_concurrency
from spillprof.timing.dma import read_link, serial_cost_s, write_link
from spillprof.timing.event_loop import DmaLimits, Durations, EventLoop
from spillprof.timing.one_pass import OnePass, is_exact
from spillprof.timing.record import Record
from spillprof.timing.work import Work, WorkBuilder


def simulate(program: Program, plan: Plan, target: Target) -> Timeline:
    """Start and end of every step and transfer of a legal plan, its stalls, serial cost and energy."""
    program = with_modes(program, plan.modes)
    played = in_one_pass if is_exact(target) else event_by_event
    return timeline_of(played(program, plan, target), program, plan, target)


def in_one_pass(program: Program, plan: Plan, target: Target) -> Record:
    """The record of one pass, on a machine that ``is_exact``."""
    one_pass = OnePass(program, plan, target)
    return one_pass.record(one_pass.play([t.issue_step for t in plan.transfers], range(len(plan.transfers))))


def event_by_event(program: Program, plan: Plan, target: Target) -> Record:
    """The record of the event loop, on any machine."""
    work = work_of(program, plan, target)
    durations = durations_of(work, program, target)
    loop = EventLoop(work, durations, dma_limits(target))
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
    """Steps, jobs and dependences of a legal plan on the target."""
    builder = WorkBuilder(program, plan, target.cores)
    work = builder.build()
    if target.cores > 1:
        add_concurrency(builder)
    return work


def dma_limits(target: Target) -> DmaLimits:
    """Channels and bus of the target."""
    shared = target.dma_shared_channels
    return DmaLimits(
        limits=bus_limits(target),
        channels=(shared,) if shared else (target.dma_read_channels, target.dma_write_channels),
        outstanding=target.dram_outstanding,
    )


def durations_of(work: Work, program: Program, target: Target) -> Durations:
    """Durations of each step and job alone on the target."""
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
    """The timeline of a record of the plan's run."""
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
        energy=_energy(program, plan, target),
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


def _energy(program: Program, plan: Plan, target: Target) -> Energy:
    """Joules of the whole run by level, all DRAM traffic included (spill, compulsory, streamed operands, weights).

    SRAM is charged for what the steps touch, for every byte that DMA puts in or takes out, and twice (read and
    write) for what compaction moves.
    """
    read = written = 0
    for t in plan.transfers:
        if t.kind.is_read:
            read += t.size_bytes
        else:
            written += t.size_bytes
    read += sum(s.size_bytes for s in plan.streamed if not s.write)
    read += sum([step.weight_stream_bytes + step.weight_repeat_bytes for step in program.steps])
    written += sum(s.size_bytes for s in plan.streamed if s.write)
    touched = sum([step.touched_bytes for step in program.steps])
    moved = sum(move.size_bytes for move in plan.moves)
    return Energy(
        dram_read_j=read * target.dram_read_j_per_byte,
        dram_write_j=written * target.dram_write_j_per_byte,
        sram_j=(touched + read + written + 2 * moved) * target.sram_j_per_byte,
        mac_j=_macs_j(program, target),
    )


def _macs_j(program: Program, target: Target) -> float:
    """Joules of all multiply-accumulates: those of equal price are counted before they are priced."""
    price_j = cache(target.mac_energy_j)
    macs: Counter[float] = Counter()
    for step in program.steps:
        macs[price_j(step.mac_dtype)] += step.macs
    return sum(count * each_j for each_j, count in macs.items())
