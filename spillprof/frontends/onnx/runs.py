"""What the user says of control flow: which branches run, and how often loops do."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from spillprof.ir.errors import UsageError
from spillprof.ir.nearest import nearest

_LISTED = 8


@dataclass(slots=True, kw_only=True)
class Runs:
    """Branches and trips by the name of the operator, and which operators were met."""

    branches: Mapping[str, str] = field(default_factory=dict)  # "then" or "else"
    trips: Mapping[str, int] = field(default_factory=dict)  # "": every loop whose length the model leaves open
    ifs: dict[str, None] = field(default_factory=dict)
    loops: dict[str, None] = field(default_factory=dict)

    def branch(self, name: str) -> str | None:
        """The branch of an If that the user chose."""
        self.ifs[name] = None
        return self.branches.get(name)

    def trip_count(self, name: str) -> int | None:
        """The trips of a Loop that the user gave."""
        self.loops[name] = None
        return self.trips.get(name, self.trips.get(""))

    def is_meant(self, name: str) -> bool:
        """Whether the user named this very loop."""
        return name in self.trips

    def check(self) -> None:
        """``UsageError`` for names that no operator has, or only such as are never reached."""
        for option, op_type, given, met in (
            ("--branch", "If", self.branches, self.ifs),
            ("--trips", "Loop", self.trips, self.loops),
        ):
            for name in given:
                if name and name not in met:
                    raise UsageError(
                        f"no {op_type} is called '{name}'", where=(option,), hint=_hint(op_type, name, met)
                    )


def _hint(op_type: str, name: str, met: Mapping[str, None]) -> str:
    if not met:
        return f"the model runs no {op_type}"
    near = nearest(name, list(met)[:1000])
    listed = ", ".join(f"'{known}'" for known in list(met)[:_LISTED])
    listed += f" and {len(met) - _LISTED:,} more" if len(met) > _LISTED else ""
    return f"did you mean '{near[0]}'? There are {listed}" if near else f"there are {listed}"
