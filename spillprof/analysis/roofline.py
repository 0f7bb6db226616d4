"""Where each step stands under the roofline: how many MACs it makes of a byte, and what bounds it."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from spillprof.analysis.attribution import Charge
from spillprof.model.plan import Plan, TransferKind
from spillprof.model.profile_facts import StepFact
from spillprof.model.program import BufferKind, Program
from spillprof.model.result import OperatorCost
from spillprof.model.target import Target
from spillprof.model.timeline import Seconds
from spillprof.planning.liveness import Bytes, lifetimes
from spillprof.timing.compute import step_times_s

COMPUTE, SRAM, DRAM, LAUNCH = "compute", "SRAM", "DRAM", "launch"


def step_facts(program: Program, ideal: Plan, target: Target) -> tuple[StepFact, ...]:
    """Every step as infinite SRAM runs it: what spills is not in its DRAM bytes."""
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


def with_roofline(
    costs: Sequence[OperatorCost], program: Program, plan: Plan, charged: Sequence[Charge], target: Target
) -> tuple[OperatorCost, ...]:
    """Costs of steps with the DRAM bytes that each causes under a plan, and what then bounds it."""
    reads, writes = dram_bytes_by_step(program, plan, charged)
    dram, limits = (reads + writes).tolist(), step_limits(program, target, reads, writes)
    return tuple(replace(cost, dram_bytes=dram[cost.step], bound=limits[cost.step]) for cost in costs)


def dram_bytes_by_step(program: Program, plan: Plan, charged: Sequence[Charge]) -> tuple[Bytes, Bytes]:
    """DRAM bytes (read, written) that each step causes; all steps together cause all traffic of the plan.

    A first load belongs to the step that needs it, the first write of an output to the step that makes it, weights and
    streamed operands to the step that they pass, spills to the step that forces them out. Shapes (n_steps,), int64.
    """
    n = len(program.steps)
    reads = np.array([step.weight_stream_bytes for step in program.steps], dtype=np.int64)
    writes = np.zeros(n, dtype=np.int64)
    for t in plan.transfers:
        if t.kind is TransferKind.FETCH:
            reads[min(t.needed_step, n - 1)] += t.size_bytes
    for s in plan.streamed:
        (writes if s.write else reads)[s.step] += s.size_bytes
    gone = {s.buffer for s in plan.streamed if s.write}
    made = lifetimes(program)
    for t in plan.transfers:
        if not t.kind.is_read and t.buffer not in gone and program.buffers[t.buffer].kind is BufferKind.OUTPUT:
            writes[made[t.buffer].write_step or 0] += t.size_bytes
            gone.add(t.buffer)
    for charge in charged:
        reads[charge.spill.forced_by_step] += charge.read_bytes
        writes[charge.spill.forced_by_step] += charge.write_bytes
    return reads, writes


def step_limits(program: Program, target: Target, reads: Bytes, writes: Bytes) -> list[str]:
    """What would take a step longest if it were alone: its MACs, its SRAM bytes, its DRAM bytes or its launches.

    A measured time counts as computing. Of equal times, the first named.
    """
    steps = program.steps
    macs_s = [
        step.macs * step.macs_time_factor / target.macs_rate(step.mac_dtype)
        if step.measured_s is None
        else step.measured_s
        for step in steps
    ]
    estimated = np.array([step.measured_s is None for step in steps], dtype=bool)
    sram_s = np.array([step.touched_bytes for step in steps]) / target.sram_bytes_per_s * estimated
    launch_s = np.array([step.launches for step in steps]) * target.launch_overhead_s * estimated
    dram_s = _dram_s(target, reads, writes)
    longest = np.argmax(np.array([macs_s, sram_s, dram_s, launch_s]).reshape(4, -1), axis=0)
    return [(COMPUTE, SRAM, DRAM, LAUNCH)[k] for k in longest.tolist()]


def _dram_s(target: Target, reads: Bytes, writes: Bytes) -> Seconds:
    """Seconds that so many bytes take at the bandwidth, both directions at once as far as the bus carries them."""
    each = np.maximum(reads / target.dram_read_bytes_per_s, writes / target.dram_write_bytes_per_s)
    bus = target.dram_bus_bytes_per_s
    return each if bus is None else np.maximum(each, (reads + writes) / bus)
