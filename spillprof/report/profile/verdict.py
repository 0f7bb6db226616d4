"""The result that reports lead with, sentences about it and the run, and words for causes and parts of a whole."""

import re

from spillprof.analysis.main_result import bytes_by_cause, main_result
from spillprof.ir.profile import Profile, RecomputeFacts
from spillprof.ir.profile_facts import OpTimeFacts
from spillprof.ir.result import Breakdown, Energy, OperatorCost, Result
from spillprof.ir.units import format_size, format_size_pair, format_time
from spillprof.report.profile.bound_words import is_optimistic
from spillprof.report.scales import MISSING, percent, signed_time
from spillprof.report.text import count_of, label

_MEANINGS = {
    "oversized": "operators too large for the memory, tiled through DRAM",
    "order": "gone in the best order of operators found",
    "policy": "gone under the best plan known for this order",
    "late release": "gone when buffers are freed at their last use",
    "fragmentation": "gone when free bytes need not lie in one piece",
}

_KINDS = {
    "capacity": "more was needed at once than fits",
    "oversized": "operators too large for the memory, tiled through DRAM",
    "lifetime": "dead buffers held the space",
    "fragmentation": "bytes were free, but not in one piece",
}
"""Meanings of kinds, for programs too long to be re-simulated for causes."""

_BECAUSE = {
    "oversized": "because of operators too large for it",
    "order": "because of the order of operators",
    "policy": "because of the policy",
    "late release": "because buffers are freed late",
    "fragmentation": "because of fragmentation",
    "lifetime": "because buffers are freed late",
}

TIME_WORDS = {
    "compute": "a compute unit is at work, whatever else goes on",
    "compulsory": "waits for transfers that infinite SRAM would make too",
    "spill": "waits for write-backs, reloads and streamed operands",
    "sync": "waits for the set-up of transfers",
    "contention": "waits because transfers share the bus",
    "fragmentation": "waits for compaction moves",
    "tail": "last bytes on their way after the last step",
}

ENERGY_WORDS = {"dram_read": "DRAM reads", "dram_write": "DRAM writes", "sram": "SRAM", "mac": "multiply-accumulates"}


def meaning(cause: str, result: Result) -> str:
    """Explains a cause of spilled bytes."""
    if result.causes is None:
        return _KINDS[cause]
    if cause != "capacity":
        return _MEANINGS[cause]
    searched = "in the best order found" if result.order_searched else "in this order; no other was searched"
    return f"left with the best policy known {searched}"


def because(cause: str, result: Result) -> str:
    """Phrases a cause of spilled bytes as a reason."""
    if cause == "capacity":
        in_order = "" if result.order_searched or result.causes is None else " in this order"
        return f"for want of capacity{in_order}"
    return _BECAUSE[cause]


def time_parts(breakdown: Breakdown) -> tuple[tuple[str, float], ...]:
    """Returns (part, seconds); the sum is the latency."""
    return tuple((part, float(getattr(breakdown, f"{part}_s"))) for part in TIME_WORDS)


def energy_parts(energy: Energy) -> tuple[tuple[str, float], ...]:
    """Returns (level in words, joules); the sum is the energy of the run."""
    return tuple((words, float(getattr(energy, f"{part}_j"))) for part, words in ENERGY_WORDS.items())


_NOISE = 1e-3
"""Share of the ideal latency; smaller losses of a run without spills are not mentioned."""


def lead_result(profile: Profile) -> Result | None:
    """Returns the result that reports lead with; None if none is feasible."""
    return main_result(profile.results)


def model_title(profile: Profile) -> str:
    """Names a report after the model's file, as exporters give every graph the same name."""
    file = re.split(r"[/\\]", profile.model.path)[-1]
    return profile.model.name if file in ("", "-") else file


def verdict(profile: Profile) -> str:
    """States the finding in one sentence."""
    lead = lead_result(profile)
    if lead is None:
        return infeasible_sentence(profile)
    if lead.spill_bytes == 0:
        return no_spill_sentence(profile, lead)
    sram = format_size(profile.target.sram_bytes)
    ideal = profile.ideal.latency_s
    slower = f", {percent(lead.spill_time_s / ideal)} over the run without spills" if ideal > 0 else ""
    lost = f"{format_time(lead.spill_time_s)}{slower}" if lead.spill_time_s > 0 else "that costs no time"
    return f"Strategy {lead.strategy} spills {format_size(lead.spill_bytes)} at {sram} of SRAM{_mostly(lead)}: {lost}."


def above_bound(profile: Profile, result: Result) -> str:
    """Compares a result's spill bytes with the proven lower bound: ``optimal``, ``+26 %``, or ``-``.

    Strategy ``optimal`` says ``proven, gap 0.0 %`` or ``gap 1.2 %``. Where operands are assumed to pass once it is
    ``at bound``: another choice of them might spill less.
    """
    if profile.bounds is None or not result.feasible:
        return MISSING
    lower = profile.bounds.spill_bytes_lower
    searched = result.strategy == "optimal"
    if result.spill_bytes == lower:
        reached = "proven, gap 0.0 %" if searched else "optimal"
        return "at bound" if profile.oversized and is_optimistic(profile) else reached
    if not lower:
        return MISSING
    above = result.spill_bytes / lower - 1
    if searched:
        return f"gap {percent(above)}" if above >= 0.001 else "gap <0.1 %"
    return f"+{percent(above)}" if above >= 0.001 else "+<0.1 %"


def recompute_sentences(profile: Profile) -> list[str]:
    """States what ``--recompute`` changed, and why not more; empty without that option."""
    mode = str(profile.config.get("recompute", "off"))
    asked = ([] if mode == "off" else [f"--recompute {mode}"]) + (
        ["--recompute-tensor"] if profile.config.get("recompute_tensor") else []
    )
    if not asked:
        return []
    how, facts, copies = " and ".join(asked), profile.recompute, profile.recomputed
    if facts is None and not copies:
        return ["Nothing is computed again: nothing spills, or the program is too long to be searched."]
    left = [] if facts is None or mode == "off" else _left(facts)
    if not copies:
        return [f"Nothing is computed again ({how}): it would make nothing better.", *left]
    weight_bytes = sum(copy.weight_bytes for copy in copies)
    weights = f", {format_size(weight_bytes)} of weights again" if weight_bytes else ""
    more = (
        f"{count_of(len(copies), 'operator')} {'runs' if len(copies) == 1 else 'run'} twice ({how}): "
        f"{sum(copy.macs for copy in copies):,} MACs and {format_time(sum(copy.compute_s for copy in copies))} of "
        f"computing more{weights}."
    )
    return [more, *([] if facts is None else [_brought(facts)]), *left]


def _brought(facts: RecomputeFacts) -> str:
    before, after = format_size_pair(facts.spill_bytes_before, facts.spill_bytes)
    return (
        f"Under {facts.judge} that spills {after} in place of {before}, in {format_time(facts.latency_s)} in place of "
        f"{format_time(facts.latency_s_before)}; spill time above includes the second runs."
    )


def _left(facts: RecomputeFacts) -> list[str]:
    """Counts spilled gaps that could be recomputed, by the rule that kept them."""
    parts = [
        (facts.dear_gaps, "dearer to compute again"),
        (facts.dear_and_far_gaps, "dear to compute again, from operands that have left"),
        (facts.cheap_gaps, "cheaper to compute again, but to no avail"),
    ]
    shown = " · ".join(f"{count:,} {why}" for count, why in parts if count)
    return [f"Spilled gaps that could be computed again: {shown}."] if shown else []


def no_spill_sentence(profile: Profile, lead: Result) -> str:
    """States that the leading result spills nothing, and what costs time nevertheless."""
    sram, smallest = format_size_pair(profile.target.sram_bytes, profile.model.min_sram_bytes)
    spilling = [r.strategy for r in profile.results if r.feasible and r.spill_bytes > 0]
    lost = _tiled_for_nothing(profile) + _lost_without_spills(profile, lead)
    under = f" under {lead.strategy}" if spilling or lost else ""
    return f"Nothing spills at {sram}{under}{lost}; the smallest SRAM without tiling is {smallest}."


def _tiled_for_nothing(profile: Profile) -> str:
    """Notes oversized operators whose tiling adds no traffic."""
    count = len(profile.oversized)
    if not count:
        return ""
    if count == 1:
        return " (1 operator runs in tiles, but moves only what must move anyway)"
    return f" ({count:,} operators run in tiles, but move only what must move anyway)"


def _lost_without_spills(profile: Profile, lead: Result) -> str:
    """States what else makes the run slower than the ideal; empty below a thousandth."""
    ideal = profile.ideal.latency_s
    slower = f" ({percent(lead.spill_time_s / ideal)} over the ideal run)" if ideal > 0 else ""
    if lead.compaction_count:
        moves = count_of(lead.compaction_count, "move")
        return (
            f", but {moves} inside SRAM, {format_size(lead.compaction_bytes)}, for want of one free piece, "
            f"{'makes' if lead.compaction_count == 1 else 'make'} it {format_time(lead.spill_time_s)} slower{slower}"
        )
    if lead.spill_time_s > _NOISE * ideal:
        return f", but it is {format_time(lead.spill_time_s)} slower{slower}: transfers wait until space is free"
    return ""


def infeasible_sentence(profile: Profile) -> str:
    """States that no strategy is feasible, and why."""
    sram, smallest = format_size_pair(profile.target.sram_bytes, profile.model.min_sram_bytes)
    reasons = {label(r.reason, 300) for r in profile.results if r.reason}
    why = f": {reasons.pop()}" if len(reasons) == 1 else ""
    return f"No strategy can run this in {sram} of SRAM{why}. The smallest SRAM without tiling is {smallest}."


def why_line(result: Result) -> str:
    """``capacity 33.3 MiB · order 1 MiB · ...``: the parts in one line."""
    parts = [f"{cause} {format_size(nbytes)}" for cause, nbytes in bytes_by_cause(result)]
    return " · ".join(parts if result.order_searched or result.causes is None else [*parts, "order not searched"])


def shown_cause(operator: OperatorCost) -> str | None:
    """Returns the cause of most of an operator's bytes, as reports name it."""
    return "oversized" if operator.cause == "capacity" and operator.kind == "oversized" else operator.cause


def _mostly(result: Result) -> str:
    """``, mostly for want of capacity`` where one cause makes more than half of the bytes."""
    parts = bytes_by_cause(result)
    total = sum(nbytes for _, nbytes in parts)
    return next((f", mostly {because(cause, result)}" for cause, nbytes in parts if 2 * nbytes > total), "")


def deployed_as(profile: Profile) -> list[str]:
    """Names the types that replace floats: ``["activations as int8", "weights as int4"]``."""
    asked = {"activations": profile.config.get("act_dtype"), "weights": profile.config.get("weight_dtype")}
    return [f"{what} as {label(str(dtype), 20)}" for what, dtype in asked.items() if dtype is not None]


def oscillation_sentences(profile: Profile) -> list[str]:
    """Describes the worst oscillating buffers of the leading and the worst strategy, and the effect of pinning."""
    lead, lines = lead_result(profile), []
    moved = {r.strategy: max(o.spill_bytes for o in r.oscillations) for r in profile.results if r.oscillations}
    shown = {max(moved, key=lambda s: moved[s])} if moved else set()
    shown |= {lead.strategy} & moved.keys() if lead is not None else set()
    for result in profile.results:
        if result.strategy not in shown:
            continue
        worst = max(result.oscillations, key=lambda o: o.spill_bytes)
        count = len(result.oscillations)
        text = (
            f"{count_of(count, 'buffer')} {'oscillates' if count == 1 else 'oscillate'}"
            f"{': ' if count == 1 else '; worst: '}{label(worst.buffer, 32)} ({format_size(worst.size_bytes)}) spilled "
            f"{count_of(worst.spill_count, 'time')} under {result.strategy}"
        )
        if not worst.tried:
            text += "; pinning it was not tried"
        elif worst.pinned_latency_s is None:
            text += "; does not fit when pinned"
        else:
            text += f"; pinned: {signed_time(worst.pinned_latency_s - result.latency_s)}"
        lines.append(text)
    return lines


def oversized_sentence(profile: Profile) -> str:
    """States how many operators run in tiles, what the tiles move, and the largest; empty if there are none."""
    if not profile.oversized:
        return ""
    streamed = sum(o.streamed_bytes for o in profile.oversized)
    beyond = sum(o.beyond_bytes for o in profile.oversized)
    passes = sum(o.passes_bytes for o in profile.oversized)
    misfits = sum(not o.fits for o in profile.oversized)
    unknown = sum(not o.tiling for o in profile.oversized)
    worst = max(profile.oversized, key=lambda o: o.demand_bytes)
    moved, more, again = format_size(streamed), format_size(beyond), format_size(passes)
    run = "runs" if len(profile.oversized) == 1 else "run"
    text = f"{count_of(len(profile.oversized), 'operator')} {run} in tiles"
    if not misfits:
        text += " to leave room for other tensors"
    elif misfits < len(profile.oversized):
        text += f", {misfits:,} of them because they do not fit"
    text += f": the tiles move {moved}, {more} of it more than infinite SRAM would"
    text += f", of which {again} in further passes" if passes else ""
    if unknown and not is_optimistic(profile):
        text += f"; {unknown:,} of unknown loops, assumed to pass each operand once"
    text += f". Largest: #{worst.step} {label(worst.name, 40)} needs {format_size(worst.demand_bytes)} at once"
    return text + (f": {label(worst.tiling, 200)}" if worst.tiling else "")


def op_times_sentence(facts: OpTimeFacts) -> str:
    """``times of prof.json: 53 steps measured, 2 estimated (relu_1, add_7); 1 name of no step (old)``."""
    text = f"times of {label(facts.source, 60)}: {count_of(facts.measured_steps, 'step')} measured"
    if facts.estimated_steps:
        text += f", {facts.estimated_steps:,} estimated ({_first_names(facts.estimated, facts.estimated_steps)})"
    if facts.unused_names:
        text += (
            f"; {count_of(facts.unused_names, 'name')} of no step ({_first_names(facts.unused, facts.unused_names)})"
        )
    return text


def _first_names(names: tuple[str, ...], total: int) -> str:
    shown = [label(name, 30) for name in names[:3]]
    return ", ".join([*shown, *(["…"] if total > len(shown) else [])])
