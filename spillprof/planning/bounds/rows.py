"""Weighted rows of a covering problem: the lower bound that they prove in exact integers, and their certificate.

A row says: at step i, the gaps outside of a set A must make up for what A does not, D = excess - size(A) (knapsack
cover inequality: Carr, Fleischer, Leung and Phillips 2000):

    sum of min(size_g, D) y_g >= D    over gaps g that cover step i and are not in A

For any weights >= 0 the Lagrangian of these rows is a lower bound. Its inner minimum splits by buffer, because only the
write-back is shared by a buffer's gaps. The proof holds wherever the weights come from.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from spillprof.ir.certificate import Certificate, CertificateRow
from spillprof.ir.plan_json import buffer_names
from spillprof.ir.program import Program
from spillprof.planning.bounds.covering import Covering
from spillprof.planning.options import Inputs, PlanningOptions, Start, WriteBack

SCALE = 1 << 40
"""Weights are integers, in units of 1 / SCALE of cost per byte."""

MANY_VISITS = 3_000_000
"""(gap, step) pairs above which no method looks at each of them."""


@dataclass(frozen=True, slots=True)
class WeightedRow:
    """A weighted row."""

    step: int
    apart: tuple[int, ...]  # gaps of the set A, by index into Covering.gaps
    weight: int  # >= 0, in units of 1 / SCALE


def proven_cost(problem: Covering, rows: Sequence[WeightedRow]) -> int:
    """The lower bound on cost that the rows prove, for any weights.

    In very large problems rows count in their weaker form, with whole sizes and an empty set A: one pass over the gaps.
    """
    if not rows:
        return problem.forced_cost
    total, paid = (_row_by_row if problem.visits <= MANY_VISITS else _whole_sizes)(problem, rows)
    unpaid: dict[int, int] = {}
    for gap, cost, pays in zip(problem.gaps, problem.gap_costs, paid, strict=True):
        unpaid[gap.buffer] = unpaid.get(gap.buffer, 0) + min(0, SCALE * cost - pays)
    total += sum(min(0, SCALE * problem.write_costs[b] + rest) for b, rest in unpaid.items())
    unit = problem.unit_cost  # costs are multiples of it: round the bound up
    return problem.forced_cost + max(0, -(-total // (SCALE * unit)) * unit)


def _row_by_row(problem: Covering, rows: Sequence[WeightedRow]) -> tuple[int, list[int]]:
    """(sum of weight x need, what each gap pays for the rows)."""
    total, paid = 0, [0] * len(problem.gaps)
    sizes = [gap.size_bytes for gap in problem.gaps]
    for row in rows:
        apart = set(row.apart)
        need = problem.excess_bytes[row.step] - sum(sizes[g] for g in apart)
        if need > 0 and row.weight > 0:
            total += row.weight * need
            for g in problem.spanning[row.step]:
                if g not in apart:
                    paid[g] += row.weight * min(sizes[g], need)
    return total, paid


def _whole_sizes(problem: Covering, rows: Sequence[WeightedRow]) -> tuple[int, list[int]]:
    weights = [0] * len(problem.excess_bytes)
    for row in rows:
        if not row.apart and row.weight > 0:
            weights[row.step] += row.weight
    before = list(accumulate(weights, initial=0))
    total = sum(weight * need for weight, need in zip(weights, problem.excess_bytes, strict=True))
    paid = [0] * len(problem.gaps)
    for g, start, end in zip(*(column.tolist() for column in problem.ranges), strict=True):
        paid[g] += problem.gaps[g].size_bytes * (before[end] - before[start])
    return total, paid


def certificate_of(
    program: Program, options: PlanningOptions, problem: Covering, rows: tuple[WeightedRow, ...], proven_bytes: int
) -> Certificate:
    """The certificate, for the verifier, of what the rows prove about a fitted program."""
    names = buffer_names(program) if any(row.apart for row in rows) else []

    def named(row: WeightedRow) -> CertificateRow:
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
        tiled=problem.tiled,
    )
