"""Compute time of each step by itself."""

import numpy as np

from spillprof.ir.memo import once_per_steps
from spillprof.ir.program import Program
from spillprof.ir.target import Target
from spillprof.ir.timeline import Seconds

_Rates = tuple[tuple[str, float], ...]


def step_times_s(program: Program, target: Target) -> Seconds:
    """Compute time of each step: the larger of MACs / rate and bytes touched / SRAM bandwidth, plus its launches;
    where it was measured, what was measured.

    Shape (n_steps,), float64, seconds, not to be changed. Transfers and waits are not in it (the roofline of one
    operator). Memoized on the program, by the rates of the target.
    """
    rates = tuple((dtype, target.macs_rate(dtype)) for dtype in sorted({step.mac_dtype for step in program.steps}))
    return _step_times_s(program, rates, target.sram_bytes_per_s, target.launch_overhead_s)


@once_per_steps
def _step_times_s(program: Program, rates: _Rates, sram_bytes_per_s: float, launch_overhead_s: float) -> Seconds:
    macs = np.array([step.macs * step.macs_time_factor for step in program.steps], dtype=np.float64)
    rate_of = dict(rates)
    rate = np.array([rate_of[step.mac_dtype] for step in program.steps], dtype=np.float64)
    touched = np.array([step.touched_bytes for step in program.steps], dtype=np.float64)
    launches = np.array([step.launches for step in program.steps], dtype=np.float64)
    estimated = np.maximum(macs / rate, touched / sram_bytes_per_s) + launch_overhead_s * launches
    measured = np.array([step.measured_s for step in program.steps], dtype=np.float64)  # None is nan
    seconds = np.where(np.isnan(measured), estimated, measured)
    seconds.flags.writeable = False
    return seconds
