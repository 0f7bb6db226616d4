"""What happened in a run, as whoever played it wrote it down: columns by step and by job, in seconds."""

from dataclasses import dataclass

from spillprof.model.timeline import JobKind

JobRow = tuple[JobKind, int, int, int]
"""Kind, bytes, step, index into Plan.transfers or -1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One run. Names and order are those of ``Timeline`` and its ``Jobs``."""

    step_s: list[float]  # its own computing
    step_start_s: list[float]
    step_end_s: list[float]
    step_reached_s: list[float]  # when all steps that it follows had ended, and its unit was free
    step_core: list[int]
    step_cause: list[int]
    step_end_cause: list[int]
    jobs: list[JobRow]
    flow_bytes: list[float]  # by job: what the bus carries
    queued_s: list[float]
    start_s: list[float]
    flow_s: list[float]
    end_s: list[float]
    cause: list[int]
    makespan_s: float
