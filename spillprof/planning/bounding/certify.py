"""A bound's rows as a certificate that the verifier, or anyone else, can check."""

from spillprof.ir.certificate import Certificate, CertificateRow
from spillprof.ir.plan_json import buffer_names
from spillprof.ir.program import Program
from spillprof.planning.bounding.rows import SCALE, Row
from spillprof.planning.covering import Covering
from spillprof.planning.options import Inputs, PlanningOptions, Start, WriteBack


def certificate_of(
    program: Program, options: PlanningOptions, problem: Covering, rows: tuple[Row, ...], proven_bytes: int
) -> Certificate:
    """The certificate of what the rows prove about a fitted program."""
    names = buffer_names(program) if any(row.apart for row in rows) else []

    def named(row: Row) -> CertificateRow:
        apart = [problem.gaps[g] for g in row.apart]
        return CertificateRow(
            step=row.step,
            weight=row.weight,
            need_bytes=problem.excess_bytes[row.step] - sum(gap.size_bytes for gap in apart),
            apart=tuple(names[gap.buffer] for gap in apart),
            apart_after=tuple(gap.last_use for gap in apart),
        )

    return Certificate(
        spill_bytes_lower=proven_bytes,
        steps=len(program.steps),
        capacity_bytes=program.capacity_bytes or 0,
        reserved_bytes=program.reserved_bytes,
        inputs_resident=options.inputs is Inputs.RESIDENT,
        steady_state=options.start is Start.STEADY,
        writes_always=options.writeback is WriteBack.ALWAYS,
        scale=SCALE,
        rows=tuple(row for row in map(named, rows) if row.weight > 0 and row.need_bytes > 0),
    )
