"""The record of a simulated run: columns by step and by job, in seconds."""

from dataclasses import dataclass

from spillprof.ir.timeline import Indices, Seconds


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Record:
    """One run. Names and order are those of ``Timeline`` and its ``Jobs``."""

    step_s: Seconds  # its own computing
    step_start_s: Seconds
    step_end_s: Seconds
    step_reached_s: Seconds  # when all steps that it follows had ended, and its unit was free
    step_core: Indices
    step_cause: Indices
    step_end_cause: Indices
    job_kind: Indices
    job_bytes: Indices
    job_step: Indices
    job_transfer: Indices  # index into Plan.transfers, or -1
    flow_bytes: Seconds  # by job: what the bus carries
    queued_s: Seconds
    start_s: Seconds
    flow_s: Seconds
    end_s: Seconds
    cause: Indices
    makespan_s: float
