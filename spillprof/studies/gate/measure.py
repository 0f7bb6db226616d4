"""From a model and a target to an Entry: what the gate looks at, as integers."""

import hashlib
from dataclasses import dataclass, field

from spillprof.explain.analyze import analyze
from spillprof.explain.options import AnalyzeOptions
from spillprof.ir.bindings import Bindings
from spillprof.ir.errors import CapacityError, UsageError
from spillprof.ir.graph import Graph
from spillprof.ir.metric import Budgets
from spillprof.ir.profile import Profile
from spillprof.ir.search_ends import BY_CLOCK
from spillprof.ir.target import Target
from spillprof.ir.units import format_size_exact
from spillprof.studies.fingerprint import fingerprint
from spillprof.studies.gate.values import BufferRow, Entry, Location, OperatorRow, entry_key, figures_of

LONGEST_NAME = 200
VICTIMS_KEPT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One model on one target, to be judged."""

    path: str
    model: str  # what the baseline calls it
    target: Target
    options: AnalyzeOptions  # with one strategy
    bindings: Bindings = field(default_factory=Bindings)
    budgets: Budgets = field(default_factory=Budgets)
    location: Location | None = None

    @property
    def key(self) -> str:
        """What the baseline calls model and target."""
        return entry_key(self.model, self.target.name)


def measure(case: Case, graph: Graph) -> tuple[Entry, str | None]:
    """(entry with every operator that costs something, operator at the peak of live bytes).

    ``CapacityError`` where the strategy finds no plan, and whatever ``analyze`` raises.
    """
    profile = analyze(graph, case.target, case.options)
    result = profile.results[0]
    if not result.feasible:
        raise CapacityError(
            f"strategy {result.strategy} finds no plan in this memory",
            where=(result.reason or "",),
            hint=f"the smallest SRAM without tiling is {format_size_exact(profile.model.min_sram_bytes)}",
        )
    _check_repeatable(profile)
    entry = Entry(
        config=fingerprint(case.target, profile.config, case.bindings),
        model_sha256=profile.model.fingerprint,
        totals=figures_of(result.totals, profile.model.peak_live_bytes),
        operators=tuple(
            OperatorRow(
                name=short_name(cost.name),
                op_type=cost.op_type,
                spill_bytes=cost.spill_bytes,
                stall_ns=round(cost.stall_s * 1e9),
                cause=cost.cause,
                victims=tuple(map(short_name, cost.victims[:VICTIMS_KEPT])),
            )
            for cost in result.operators
        ),
        buffers=tuple(
            BufferRow(
                name=short_name(cost.name),
                size_bytes=cost.size_bytes,
                spill_bytes=cost.spill_bytes,
                needed_by=_step_name(profile, cost.end),
            )
            for cost in result.buffers
        ),
    )
    return entry, _step_name(profile, profile.model.peak_step)


def _check_repeatable(profile: Profile) -> None:
    """``UsageError`` if a clock ended a search: another run may find other figures."""
    ends = [profile.bounds.search if profile.bounds else "", profile.recompute.search if profile.recompute else ""]
    timed = tuple(end for end in ends if BY_CLOCK in end)
    if timed:
        raise UsageError(
            "the figures depend on the machine: a time limit cut a search off",
            where=timed,
            hint="leave --optimize-seconds out, and the search counts its work; or give it more time",
        )


def short_name(name: str) -> str:
    """The name, or its start and a digest of it where it is endless: the same for the same name."""
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[:LONGEST_NAME]}~{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def _step_name(profile: Profile, step: int) -> str | None:
    return short_name(profile.steps[step].name) if 0 <= step < len(profile.steps) else None
