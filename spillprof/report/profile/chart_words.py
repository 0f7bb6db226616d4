"""One sentence for each chart of a strategy, computed from the data it draws."""

from collections.abc import Sequence
from statistics import median

from spillprof.ir.profile import Profile
from spillprof.ir.result import Result
from spillprof.ir.units import format_size, format_time
from spillprof.report.profile.demand import wanted_bytes, wanted_in_words
from spillprof.report.profile.time_figures import bus_summary, waits_summary
from spillprof.report.scales import percent
from spillprof.report.text import count_of, label

_NOISE = 1e-6
"""Share of the latency that counts as rounding."""


def chart_sentences(profile: Profile, result: Result) -> dict[str, str]:
    """Returns the sentence of each chart, by its key."""
    return {
        "memory": _memory(profile, result),
        "spills": _spills(result),
        "arcs": _arcs(result),
        "addresses": _addresses(result),
        "bus": bus_summary(profile, result),
        "waits": waits_summary(profile, result),
    }


def live_summary(profile: Profile) -> str:
    """Describes the peak: the largest buffer, and buffers that only wait."""
    rows = profile.peak_buffers
    if not rows:
        return "Nothing is live."
    largest, waiting = rows[0], [b for b in rows if not b.used_here]
    total = sum(b.size_bytes for b in rows)
    share = percent(largest.size_bytes / total) if total else percent(0.0)
    away = (
        f"{count_of(len(waiting), 'buffer')} (hatched), {format_size(sum(b.size_bytes for b in waiting))}, only "
        f"{'waits' if len(waiting) == 1 else 'wait'} for a later step and could be away"
        if waiting
        else "all of them are used there, none could be away"
    )
    return f"{label(largest.name, 48)} makes {share} of {format_size(total)}; {away}."


def trend_summary(profile: Profile, results: Sequence[Result]) -> str:
    """States where the peak is reached."""
    wanted = wanted_bytes(profile)
    if not wanted:
        return "No step runs."
    peak = max(wanted)
    last, half = wanted.index(peak), next(i for i, nbytes in enumerate(wanted) if 2 * nbytes >= peak)
    text = (
        f"The highest use so far, step by step. What is live reaches half of its peak at step {half:,} and the peak, "
        f"{format_size(peak)}, at step {last:,}, {label(profile.steps[last].name, 48)}"
    )
    full = [r for r in results if r.in_use_bytes and r.strategy != "none"]
    if not full:
        return f"{text}."
    least = min(full, key=lambda r: max(r.in_use_bytes))
    return f"{text}; of the strategies {least.strategy} uses least, {format_size(max(least.in_use_bytes))} at most."


def _memory(profile: Profile, result: Result) -> str:
    if not result.in_use_bytes:
        return "No step runs."
    capacity = profile.target.sram_bytes
    most = max(result.in_use_bytes)
    step = result.in_use_bytes.index(most)
    over = sum(wanted > capacity for wanted in wanted_bytes(profile))
    what = wanted_in_words(profile)
    live = f"{what[:1].upper()}{what[1:]},"
    excess = f"{live} exceeds the memory at {count_of(over, 'step')}" if over else f"{live} never exceeds it by itself"
    return (
        f"At most {format_size(most)} of {format_size(capacity)} are in use, at step {step:,}, "
        f"{label(profile.steps[step].name, 48)}. {excess}."
    )


def _spills(result: Result) -> str:
    if result.spill_bytes == 0:
        moved = f" {format_size(result.compaction_bytes)} are moved inside SRAM." if result.compaction_count else ""
        return f"Nothing spills.{moved}"
    streamed = f", {format_size(result.streamed_bytes)} are streamed" if result.streamed_bytes else ""
    return (
        f"{count_of(len(result.operators), 'step')} of the run cost something: "
        f"{format_size(result.spill_write_bytes)} are written back (up), {format_size(result.spill_read_bytes)} "
        f"reloaded (down){streamed}. Bytes are drawn at the step that forced the buffer out."
    )


def _arcs(result: Result) -> str:
    arcs = result.arcs
    wrapped = result.spill_count - len(result.spills)  # of weights that stay from run to run, of what is held
    elsewhere = "of buffers that this run does not read again, or has not used before"
    if not arcs and wrapped:
        return f"No arc: {count_of(wrapped, 'spill')} {elsewhere}.{_passing(result)}"
    if not arcs:
        return f"No buffer leaves the memory while it is still to be read.{_passing(result)}"
    between = [max(arc.needed_step - arc.evict_step - 1, 0) for arc in arcs]
    waited = [arc.wait_s for arc in arcs if arc.wait_s > 0]
    waits = "no step waits for their write-backs and reloads"
    if waited:
        whose = "1 of them is" if len(waited) == 1 else f"{len(waited):,} of them are"
        waits = f"{whose} waited for, write-back or reload, {format_time(sum(waited))} in all"
    middle = int(median(between))
    return (
        f"{_kinds_of_arcs(result)}, each an arc to the next use, as high as the buffer is large. "
        f"{count_of(middle, 'step')} {'lies' if middle == 1 else 'lie'} between in the median, {max(between):,} at "
        f"most; {waits}.{f' {wrapped:,} more {elsewhere}.' if wrapped else ''}{_passing(result)}"
    )


def _kinds_of_arcs(result: Result) -> str:
    """``2 spills, and 1 stretch off-chip after a streamed use``."""
    after_streams = len(result.arcs) - len(result.spills)
    parts = [count_of(len(result.spills), "spill")] if result.spills else []
    parts += (
        [f"{count_of(after_streams, 'stretch', 'stretches')} off-chip after a streamed use"] if after_streams else []
    )
    return ", and ".join(parts)


def _passing(result: Result) -> str:
    """States streamed bytes, which have no arc, and the time that operators wait for them."""
    if not result.streamed_bytes:
        return ""
    text = f" {format_size(result.streamed_bytes)} of operands are streamed while their operators run"
    parts, times = result.breakdown, result.times
    if parts is None or times is None or any(times.step_core):  # several cores wait for different things at a time
        return f"{text}."
    waits_s = parts.compulsory_s + parts.spill_s + parts.sync_s + parts.contention_s + parts.fragmentation_s
    inside_s = waits_s - sum(times.stall_s)
    if inside_s <= _NOISE * result.latency_s:
        return f"{text}, which computing hides."
    return f"{text}; steps stall {format_time(inside_s)} for operands and weights that stream."


def _addresses(result: Result) -> str:
    text = f"{count_of(len(result.residencies), 'residency', 'residencies')}: where each buffer is, and when."
    if result.compaction_count:
        moves = count_of(result.compaction_count, "move")
        text = f"{text} {moves} inside SRAM, {format_size(result.compaction_bytes)}, for want of one free piece."
    if result.fragmentation_spill_bytes:
        return f"{text} {format_size(result.fragmentation_spill_bytes)} spilled although the free bytes sufficed."
    return f"{text} No byte spilled for want of one free piece."
