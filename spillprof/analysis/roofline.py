"""The roofline of each step: its arithmetic intensity, and the resource that bounds it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spillprof.analysis.attribution import Charge
from spillprof.ir.arrays import Ints
from spillprof.ir.plan import Plan, TransferKind
from spillprof.ir.profile_facts import StepFact
from spillprof.ir.program import BufferKind, Program
from spillprof.ir.target import Target
from spillprof.ir.timeline import Seconds
from spillprof.planning.liveness import lifetimes
from spillprof.timing.compute import step_times_s, units_times_s

_COMPUTE, _SRAM, _DRAM, _LAUNCH = "compute", "SRAM", "DRAM", "launch"


def step_facts(program: Program, ideal: Plan, target: Target) -> tuple[StepFact, ...]:
    """Facts of every step with infinite SRAM: its DRAM bytes are the compulsory ones."""
    reads, writes = dram_bytes_by_step(program, ideal, ())
    dram, dram_s = (reads + writes).tolist(), _dram_s(target, reads, writes).tolist()
    computing, limits = step_times_s(program, target).tolist(), step_limits(program, target, reads, writes)
    return tuple(
        StepFact(
            name=step.name,
            op_type=step.op_type,
            macs=step.macs,
            mac_dtype=step.mac_dtype,
            sram_bytes=step.touched_bytes,
            dram_bytes=dram[i],
            macs_per_sram_byte=step.macs / step.touched_bytes if step.touched_bytes else None,
            macs_per_dram_byte=step.macs / dram[i] if dram[i] else None,
            compute_s=computing[i],
            dram_s=dram_s[i],
            bound=limits[i],
            algorithm=None if step.convolution is None else step.convolution.algorithm,
        )
        for i, step in enumerate(program.steps)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """DRAM bytes and limiting resource of each step under a plan."""

    dram_bytes: list[int]  # that it causes
    bound: list[str]  # the resource that takes longest


def roofline(program: Program, plan: Plan, charged: Sequence[Charge], target: Target) -> Roofline:
    """The DRAM bytes that each step causes under a plan, and the resource that bounds it."""
    reads, writes = dram_bytes_by_step(program, plan, charged)
    return Roofline(dram_bytes=(reads + writes).tolist(), bound=step_limits(program, target, reads, writes))


def dram_bytes_by_step(program: Program, plan: Plan, charged: Sequence[Charge]) -> tuple[Ints, Ints]:
    """DRAM bytes (read, written) that each step causes; they add up to the traffic of the plan.

    A first load belongs to the step that needs it, the first write of an output to the step that computes it, weights
    and streamed operands to the step that reads them, spills to the step that forces them. Shapes (n_steps,), int64.
    """
    n = len(program.steps)
    reads, writes = [step.weight_stream_bytes + step.weight_repeat_bytes for step in program.steps], [0] * n
    for s in plan.streamed:
        (writes if s.write else reads)[s.step] += s.size_bytes
    unwritten = {b.index for b in program.buffers if b.kind is BufferKind.OUTPUT}
    unwritten -= {s.buffer for s in plan.streamed if s.write}
    made = lifetimes(program)
    for t in plan.transfers:
        if t.kind is TransferKind.FETCH:
            reads[min(t.needed_step, n - 1)] += t.size_bytes
        elif t.kind is not TransferKind.RELOAD and t.buffer in unwritten:
            writes[made[t.buffer].write_step or 0] += t.size_bytes
            unwritten.discard(t.buffer)
    for charge in charged:
        reads[charge.spill.forced_by_step] += charge.read_bytes
        writes[charge.spill.forced_by_step] += charge.write_bytes
    return np.array(reads, dtype=np.int64), np.array(writes, dtype=np.int64)


def step_limits(program: Program, target: Target, reads: Ints, writes: Ints) -> list[str]:
    """The resource that takes each step longest by itself: MACs, SRAM bytes, DRAM bytes or launches.

    Vector operations and a measured time count as computing. On ties, the first named.
    """
    steps = program.steps
    estimated_s = units_times_s(program, target).tolist()
    macs_s = [
        own_s if step.measured_s is None else step.measured_s for step, own_s in zip(steps, estimated_s, strict=True)
    ]
    estimated = np.array([step.measured_s is None for step in steps], dtype=bool)
    sram_s = np.array([step.touched_bytes for step in steps]) / target.sram_bytes_per_s * estimated
    launch_s = np.array([step.launches for step in steps]) * target.launch_overhead_s * estimated
    dram_s = _dram_s(target, reads, writes)
    longest = np.argmax(np.array([macs_s, sram_s, dram_s, launch_s]).reshape(4, -1), axis=0)
    return [(_COMPUTE, _SRAM, _DRAM, _LAUNCH)[k] for k in longest.tolist()]


def _dram_s(target: Target, reads: Ints, writes: Ints) -> Seconds:
    """Seconds of the DRAM bytes at full bandwidth, both directions in parallel as far as the bus allows."""
    each = np.maximum(reads / target.dram_read_bytes_per_s, writes / target.dram_write_bytes_per_s)
    bus = target.dram_bus_bytes_per_s
    return each if bus is None else np.maximum(each, (reads + writes) / bus)
