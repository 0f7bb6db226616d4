"""Compute time of each step by itself."""

import numpy as np

from spillprof.ir.memo import once_per_steps
from spillprof.ir.program import Program
from spillprof.ir.target import Target
from spillprof.ir.timeline import Seconds

_Rates = tuple[tuple[tuple[str, str], float], ...]


def step_times_s(program: Program, target: Target) -> Seconds:
    """Compute time of each step: the larger of ``units_times_s`` and bytes touched / SRAM bandwidth, plus its launches;
    where it was measured, what was measured.

    Shape (n_steps,), float64, seconds, not to be changed. Transfers and waits are not in it (the roofline of one
    operator). Memoized on the program, by the rates of the target.
    """
    return _step_times_s(
        program, _rates(program, target), target.vector_ops_per_s, target.sram_bytes_per_s, target.launch_overhead_s
    )


def units_times_s(program: Program, target: Target) -> Seconds:
    """Time of each step in the units that compute: the larger of MACs / rate and vector operations / their rate.

    Both units run at once: a fused activation works on what the product has made. Without a vector rate, MACs alone.
    Shape (n_steps,), float64, seconds, not to be changed. SRAM, launches and measured times are not in it.
    """
    return _units_times_s(program, _rates(program, target), target.vector_ops_per_s)


def _rates(program: Program, target: Target) -> _Rates:
    pairs = sorted({(step.mac_dtype, step.product_kind) for step in program.steps})
    return tuple((pair, target.macs_rate(*pair)) for pair in pairs)


@once_per_steps
def _units_times_s(program: Program, rates: _Rates, vector_ops_per_s: float | None) -> Seconds:
    steps, rate_of = program.steps, dict(rates)
    macs = np.array([step.macs * step.macs_time_factor for step in steps], dtype=np.float64)
    seconds = macs / np.array([rate_of[step.mac_dtype, step.product_kind] for step in steps], dtype=np.float64)
    if vector_ops_per_s is not None:
        seconds = np.maximum(seconds, np.array([step.vector_ops for step in steps], np.float64) / vector_ops_per_s)
    seconds.flags.writeable = False
    return seconds


@once_per_steps
def _step_times_s(
    program: Program, rates: _Rates, vector_ops_per_s: float | None, sram_bytes_per_s: float, launch_overhead_s: float
) -> Seconds:
    touched = np.array([step.touched_bytes for step in program.steps], dtype=np.float64)
    launches = np.array([step.launches for step in program.steps], dtype=np.float64)
    busy = np.maximum(_units_times_s(program, rates, vector_ops_per_s), touched / sram_bytes_per_s)
    measured = np.array([step.measured_s for step in program.steps], dtype=np.float64)  # None is nan
    seconds = np.where(np.isnan(measured), busy + launch_overhead_s * launches, measured)
    seconds.flags.writeable = False
    return seconds
