"""What the steps of a run need of the SRAM: demand, padding at the peak, and bars over the steps for a terminal."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from spillprof.ir.profile import Profile
from spillprof.ir.result import Result
from spillprof.ir.units import format_size, format_size_pair
from spillprof.report.text import BARS, count_of, label

_WORTH_A_LINE = 0.001
"""Smallest share of the peak that text reports mention."""


def wanted_bytes(profile: Profile) -> tuple[int, ...]:
    """Returns the demand of each step before evictions: live bytes plus permanent reservations.

    That is weight staging, weights that stay, and what the runtime keeps. Workspaces, or the block that they share, and
    pinned buffers are part of what is live already.
    """
    reserved = profile.reserved
    always = reserved.runtime_bytes + reserved.weight_staging_bytes + _staying_weight_bytes(profile)
    return tuple([live + always for live in profile.live_bytes])


def wanted_in_words(profile: Profile) -> str:
    """Describes what ``wanted_bytes`` counts: ``what is live, with weight staging``."""
    kept = ["what the runtime keeps"] if profile.reserved.runtime_bytes else []
    kept += ["the shared workspace block"] if profile.reserved.shared_workspace_bytes else []
    kept.append("the weights" if _staying_weight_bytes(profile) else "weight staging")
    listed = " and ".join([", ".join(kept[:-1]), kept[-1]]) if len(kept) > 1 else kept[0]
    return f"what is live, with {listed}"


def _staying_weight_bytes(profile: Profile) -> int:
    """Returns weight bytes needed on-chip throughout: resident ones, and cached ones, which the next run needs."""
    match profile.config.get("weights"):
        case "resident":
            return profile.model.weight_bytes
        case "cached":
            return sum(b.size_bytes for b in profile.buffers if b.kind == "weight")
        case _:
            return 0


def padding_share(profile: Profile) -> str:
    """``12 KiB of it is padding``."""
    padding = profile.model.peak_padding_bytes
    return f"{format_size(padding)} of it is padding" if padding else "none of it is padding"


def padding_sentence(profile: Profile) -> str:
    """States the padding at the peak and its origin; empty below a thousandth."""
    model, target = profile.model, profile.target
    if model.peak_padding_bytes <= _WORTH_A_LINE * model.peak_live_bytes:
        return ""
    where = label(profile.steps[model.peak_step].name, 40)
    channels = f"channels to {target.channel_align:,}, " if target.channel_align > 1 else ""
    return (
        f"At most {format_size(model.peak_live_bytes)} of activations are live, at #{model.peak_step:,} {where}; "
        f"{padding_share(profile)} ({channels}sizes to {target.alignment_bytes:,} B)."
    )


FULL, OVER = BARS[-2], BARS[-1]
"""Bars of a step that fills the SRAM, and of one that needs more."""
LIVE = "live"
_MOST_COLUMNS = 96
_LABEL_COLUMNS = 8  # with the gap behind it


def strip_heading(profile: Profile, under: str, width: int) -> str:
    """Returns the legend: ``Memory by step under lru (▇ is all of the SRAM, █ more; a column is 19 steps)``."""
    steps = len(profile.live_bytes)
    each = steps / max(_columns(steps, width), 1)
    stretch = f"; a column is {each:,.0f} steps" if each >= 1.5 else ""
    return f"Memory by step{under} ({FULL} all of the SRAM, {OVER} more{stretch})"


def strip_lines(profile: Profile, result: Result | None, width: int) -> Iterator[tuple[str, str]]:
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


def demand_sentence(profile: Profile) -> str:
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
