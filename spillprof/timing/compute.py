"""How long each step computes, taken alone."""

import numpy as np

from spillprof.ir.lru_cache import LruCache
from spillprof.ir.program import Program
from spillprof.ir.target import Target
from spillprof.ir.timeline import Seconds


def step_times_s(program: Program, target: Target) -> Seconds:
    """Compute time of each step: the larger of MACs / rate and bytes touched / SRAM bandwidth, plus its launches;
    where it was measured, what was measured.

    Shape (n_steps,), float64, seconds, not to be changed. Transfers and waits are not in it (the roofline of one
    operator). LruCache for the next plan of the same program and target.
    """
    key = (id(program), id(target))  # both are kept too: nothing else gets their ids meanwhile
    return _found.get_or_make(key, lambda: (program, target, _step_times_s(program, target)))[2]


_found: LruCache[tuple[Program, Target, Seconds]] = LruCache(4)


def _step_times_s(program: Program, target: Target) -> Seconds:
    macs = np.array([step.macs * step.macs_time_factor for step in program.steps], dtype=np.float64)
    rates = {dtype: target.macs_rate(dtype) for dtype in {step.mac_dtype for step in program.steps}}
    rate = np.array([rates[step.mac_dtype] for step in program.steps], dtype=np.float64)
    touched = np.array([step.touched_bytes for step in program.steps], dtype=np.float64)
    launches = np.array([step.launches for step in program.steps], dtype=np.float64)
    estimated = np.maximum(macs / rate, touched / target.sram_bytes_per_s) + target.launch_overhead_s * launches
    measured = np.array([step.measured_s for step in program.steps], dtype=np.float64)  # None is nan
    seconds = np.where(np.isnan(measured), estimated, measured)
    seconds.flags.writeable = False
    return seconds
