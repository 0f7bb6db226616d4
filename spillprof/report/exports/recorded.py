"""Results with the timeline that some exports need; a profile saved without events has none."""

from collections.abc import Sequence
from dataclasses import dataclass

from spillprof.ir.errors import ProfileError
from spillprof.ir.profile import Profile
from spillprof.ir.result import Result, RunTimes
from spillprof.report.profile.verdict import lead_result

MAX_NAME = 200
"""Characters of a name in a trace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A result with the times of all its steps."""

    result: Result
    times: RunTimes


def leading_run(profile: Profile) -> Recorded | None:
    """The result that reports lead with; None if no strategy is feasible. ``ProfileError`` without its events."""
    lead = lead_result(profile)
    return None if lead is None else _recorded(lead)


def all_runs(profile: Profile) -> Sequence[Recorded]:
    """Every feasible result, in the order asked for. ``ProfileError`` without their events."""
    return [_recorded(result) for result in profile.results if result.feasible]


def _recorded(result: Result) -> Recorded:
    if result.times is None:
        raise ProfileError(
            "the saved profile holds no events, so nothing is known of the timeline",
            where=(f"strategy {result.strategy}",),
            hint="save it with 'spillprof analyze --events -o FILE.json'",
        )
    return Recorded(result=result, times=result.times)
