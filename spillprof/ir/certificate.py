"""Certificate: what a lower bound on spill bytes is proven by, in integers, checked without a solver."""

from dataclasses import dataclass

SCHEMA = "spillprof-certificate/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateRow:
    """At one step, the gaps outside of a set must make up for what the set does not; how much that weighs."""

    step: int
    weight: int  # >= 0, in units of 1 / Certificate.scale
    need_bytes: int  # that the pool lacks at the step, less the gaps set apart
    apart: tuple[str, ...] = ()  # buffers of the gaps in the set, and
    apart_after: tuple[int, ...] = ()  # the steps of the uses before these gaps


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """Weighted rows that prove a lower bound for one fitted program. Buffers are named as in plan files."""

    spill_bytes_lower: int  # what the rows prove
    steps: int  # of the program
    capacity_bytes: int
    reserved_bytes: int
    inputs_resident: bool  # graph inputs are on-chip for the whole run
    steady_state: bool  # cached weights outlive the run
    writes_always: bool  # every eviction of what was computed is written back
    scale: int  # weights are in units of 1 / scale
    rows: tuple[CertificateRow, ...]
    schema: str = SCHEMA

    @property
    def entries(self) -> int:
        """Rows, and gaps set apart in them."""
        return len(self.rows) + sum(len(row.apart) for row in self.rows)
