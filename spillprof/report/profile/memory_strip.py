"""Memory use over the steps of a run, as lines of bars for a terminal."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from spillprof.ir.profile import Profile
from spillprof.ir.result import Result
from spillprof.ir.units import format_size, format_size_pair
from spillprof.report.profile.demand import wanted_bytes
from spillprof.report.text import BARS, count_of, label

FULL, OVER = BARS[-2], BARS[-1]
"""Bars of a step that fills the SRAM, and of one that needs more."""
LIVE = "live"
_MOST_COLUMNS = 96
_LABEL_COLUMNS = 8  # with the gap behind it


def heading(profile: Profile, under: str, width: int) -> str:
    """Returns the legend: ``Memory by step under lru (▇ is all of the SRAM, █ more; a column is 19 steps)``."""
    steps = len(profile.live_bytes)
    each = steps / max(_columns(steps, width), 1)
    stretch = f"; a column is {each:,.0f} steps" if each >= 1.5 else ""
    return f"Memory by step{under} ({FULL} all of the SRAM, {OVER} more{stretch})"


def lines(profile: Profile, result: Result | None, width: int) -> Iterator[tuple[str, str]]:
    """Yields (label, bars) of live, used and spilled bytes by step, at most ``width`` columns together."""
    columns = _columns(len(profile.live_bytes), width)
    capacity = profile.target.sram_bytes
    yield LIVE, "".join(_of_capacity(v, capacity) for v in _thinned(wanted_bytes(profile), columns, max))
    if result is None or not result.in_use_bytes:
        return
    yield "in use", "".join(_of_capacity(v, capacity) for v in _thinned(result.in_use_bytes, columns, max))
    spilled = [0] * len(profile.live_bytes)
    for o in result.operators:
        spilled[o.step] += o.spill_bytes
    if any(spilled):
        shown = _thinned(spilled, columns, sum)
        yield "spills", "".join(_bar(v, max(shown), BARS) for v in shown)


def sentence(profile: Profile) -> str:
    """States at how many steps demand exceeds the SRAM, and where it peaks."""
    wanted = wanted_bytes(profile)
    step = wanted.index(max(wanted))
    over = sum(w > profile.target.sram_bytes for w in wanted)
    most, sram = format_size_pair(wanted[step], profile.target.sram_bytes)
    many = f"More is live than fits at {over:,} of {count_of(len(wanted), 'step')}" if over else "All that is live fits"
    shared = profile.reserved.shared_workspace_bytes
    block = f", {format_size(shared)} of it the shared workspace block" if shared else ""
    return f"{many}; most at #{step} {label(profile.steps[step].name, 40)}: {most} in {sram}{block}."


def _columns(steps: int, width: int) -> int:
    return min(steps, width - _LABEL_COLUMNS, _MOST_COLUMNS)


def _thinned(values: Sequence[int], columns: int, of: Callable[[Iterable[int]], int]) -> list[int]:
    """Reduces values to one for each of ``columns`` equal stretches."""
    n = len(values)
    return [of(values[n * i // columns : n * (i + 1) // columns]) for i in range(columns)]


def _of_capacity(nbytes: int, capacity: int) -> str:
    return OVER if nbytes > capacity else _bar(nbytes, capacity, BARS[:-1])


def _bar(value: int, full: int, bars: str) -> str:
    """Returns a blank for 0, the lowest bar for any other value, the highest for ``full``."""
    return bars[-(-len(bars) * value // full) - 1] if value else " "
