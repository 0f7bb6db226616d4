"""From a model and a target to an Entry: what the gate looks at, as integers."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from spillprof.config import Budgets
from spillprof.errors import CapacityError
from spillprof.gate.values import BufferRow, Entry, Location, OperatorRow, Totals, entry_key
from spillprof.model.bindings import Bindings, written_shape
from spillprof.model.graph import Graph
from spillprof.model.profile import Profile
from spillprof.model.revision import SIMULATOR_REVISION
from spillprof.model.target import Target
from spillprof.pipeline import AnalyzeOptions, analyze
from spillprof.units import format_size_exact

LONGEST_NAME = 200
VICTIMS_KEPT = 5
_NOT_COMPARED = ("name", "sources")
"""Fields of a target that shape no figure."""


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
    entry = Entry(
        config=_fingerprint(case, profile),
        model_sha256=profile.model.fingerprint,
        totals=Totals(
            spill_bytes=result.spill_bytes,
            latency_ns=round(result.latency_s * 1e9),
            peak_live_bytes=profile.model.peak_live_bytes,
            energy_pj=round(result.energy_j * 1e12),
            spill_count=result.spill_count,
            reload_count=result.reload_count,
        ),
        operators=tuple(
            OperatorRow(
                name=short_name(cost.name),
                op_type=cost.op_type,
                spill_bytes=cost.spill_write_bytes + cost.spill_read_bytes + cost.streamed_bytes,
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


def short_name(name: str) -> str:
    """The name, or its start and a digest of it where it is endless: the same for the same name."""
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[:LONGEST_NAME]}~{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def _fingerprint(case: Case, profile: Profile) -> dict[str, str | int | bool | None]:
    """Everything besides the model that shapes the figures. Numbers that are not whole are texts."""
    found: dict[str, str | int | bool | None] = {"simulator": SIMULATOR_REVISION}
    for key, value in profile.config.items():
        found["strategy" if key == "strategies" else key] = (
            ",".join(map(str, value)) if isinstance(value, list) else value
        )
    given = case.bindings
    found["dims"] = ",".join(f"{name}={size}" for name, size in sorted(given.dims.items()))
    found["shapes"] = ",".join(f"{name}={written_shape(shape)}" for name, shape in sorted(given.shapes.items()))
    found["batch"] = given.batch
    if given.assume:
        found["assume"] = ",".join(f"{name}={written_shape(shape)}" for name, shape in sorted(given.assume.items()))
    if given.branches:
        found["branches"] = ",".join(f"{name}={branch}" for name, branch in sorted(given.branches.items()))
    if given.trips:
        found["trips"] = ",".join(f"{name}={count}" for name, count in sorted(given.trips.items()))
    for column in fields(Target):
        if column.name not in _NOT_COMPARED:
            value = getattr(case.target, column.name)
            if isinstance(value, Mapping):
                value = ",".join(f"{name}={_number(rate)}" for name, rate in sorted(value.items()))
            elif isinstance(value, tuple):
                value = ",".join(f"{nbytes}={_number(seconds)}" for nbytes, seconds in value)
            found[f"target.{column.name}"] = _number(value)
    return found


def _number(value: float | str | bool | None) -> str | int | bool | None:
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else repr(value)
    return value


def _step_name(profile: Profile, step: int) -> str | None:
    return short_name(profile.steps[step].name) if 0 <= step < len(profile.steps) else None
