"""One cause for each spilled byte, from re-simulations that remove one disturbance after another.

The strategy's plan is compared with a ladder of counterfactual plans, each without one more disturbance: addresses,
late release, the policy, the order. The bytes that a rung saves, compared with the least so far, are the cost of its
disturbance. They are taken first from spills that the counterfactual plan avoids, then from the rest, latest first.
What the last rung still spills is caused by capacity. Before all of this, what tiles move beyond the best mode of their
operator, alone in the whole memory, is caused by tiling.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spillprof.analysis.attribution import Charge
from spillprof.ir.plan import Plan
from spillprof.ir.program import Program
from spillprof.ir.result import CauseBytes

SpillSite = tuple[str, str]
"""A spill, independent of step numbers: (buffer, operator of its last use before the spill)."""

FRAGMENTATION, LATE_RELEASE, POLICY, ORDER, CAPACITY = "fragmentation", "late release", "policy", "order", "capacity"
TILING = "tiling"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """A counterfactual plan: the run without one more disturbance."""

    cause: str  # the disturbance that it removes
    spill_bytes: int
    spills: frozenset[SpillSite]  # those that it still has


def spill_sites(program: Program, plan: Plan) -> frozenset[SpillSite]:
    """The sites of a plan's spills."""
    return frozenset((program.buffers[s.buffer].name, _last_use(program, s.last_use_step)) for s in plan.spills)


def causes_by_step(
    program: Program,
    charged: Sequence[Charge],
    streamed: Mapping[tuple[int, int], int],
    ladder: Sequence[Rung],
    tiling: Mapping[int, int] | None = None,
) -> dict[int, CauseBytes]:
    """Spill bytes of each step by cause; together they are all charged and streamed bytes.

    ``streamed``: bytes beyond the compulsory by (buffer, step); they come last. ``tiling``: those of each step that are
    caused by tiling.
    """
    spills = [
        (
            (program.buffers[c.spill.buffer].name, _last_use(program, c.spill.last_use_step)),
            c.spill.forced_by_step,
            c.total_bytes,
        )
        for c in charged
        if c.total_bytes
    ]
    own: list[tuple[SpillSite | None, int, int]] = [(None, step, nbytes) for (_, step), nbytes in streamed.items()]
    own += spills
    left = [nbytes for *_, nbytes in own]
    found: dict[int, dict[str, int]] = {}
    waste = dict(tiling or {})
    for k in range(len(streamed)):
        step = own[k][1]
        taken = min(left[k], waste.get(step, 0))
        if taken:
            left[k] -= taken
            waste[step] -= taken
            by_cause = found.setdefault(step, {})
            by_cause[TILING] = by_cause.get(TILING, 0) + taken
    least = sum(left)
    for rung in ladder:
        gone = max(0, least - rung.spill_bytes)
        least -= gone
        spared = [k for k, (place, *_) in enumerate(own) if place is not None and place not in rung.spills]
        kept = [k for k, (place, *_) in enumerate(own) if place is None or place in rung.spills]
        for k in (*reversed(spared), *reversed(kept)):
            taken = min(gone, left[k])
            if taken:
                left[k] -= taken
                gone -= taken
                by_cause = found.setdefault(own[k][1], {})
                by_cause[rung.cause] = by_cause.get(rung.cause, 0) + taken
            if not gone:
                break
    for (_, step, _), nbytes in zip(own, left, strict=True):
        if nbytes:
            by_cause = found.setdefault(step, {})
            by_cause[CAPACITY] = by_cause.get(CAPACITY, 0) + nbytes
    return {step: _cause_bytes(by_cause) for step, by_cause in sorted(found.items())}


def added_up(parts: Sequence[CauseBytes]) -> CauseBytes:
    """The sum of several breakdowns by cause."""
    return CauseBytes(
        capacity_bytes=sum(p.capacity_bytes for p in parts),
        order_bytes=sum(p.order_bytes for p in parts),
        policy_bytes=sum(p.policy_bytes for p in parts),
        tiling_bytes=sum(p.tiling_bytes for p in parts),
        late_release_bytes=sum(p.late_release_bytes for p in parts),
        fragmentation_bytes=sum(p.fragmentation_bytes for p in parts),
    )


def main_cause(parts: CauseBytes) -> str | None:
    """The cause of most bytes, on ties the one that is hardest to change; None without bytes."""
    by_cause = {
        CAPACITY: parts.capacity_bytes,
        ORDER: parts.order_bytes,
        POLICY: parts.policy_bytes,
        TILING: parts.tiling_bytes,
        LATE_RELEASE: parts.late_release_bytes,
        FRAGMENTATION: parts.fragmentation_bytes,
    }
    best = max(by_cause, key=lambda cause: by_cause[cause])
    return best if by_cause[best] else None


def _cause_bytes(by_cause: Mapping[str, int]) -> CauseBytes:
    return CauseBytes(
        capacity_bytes=by_cause.get(CAPACITY, 0),
        order_bytes=by_cause.get(ORDER, 0),
        policy_bytes=by_cause.get(POLICY, 0),
        tiling_bytes=by_cause.get(TILING, 0),
        late_release_bytes=by_cause.get(LATE_RELEASE, 0),
        fragmentation_bytes=by_cause.get(FRAGMENTATION, 0),
    )


def _last_use(program: Program, step: int) -> str:
    return program.steps[step].name if 0 <= step < len(program.steps) else ""
