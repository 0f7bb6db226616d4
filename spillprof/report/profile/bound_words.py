"""Sentences about the lower bound: its claim, its proof, and searches that ended early."""

from spillprof.ir.profile import Bounds, Profile
from spillprof.ir.story import ANY_CHANGE
from spillprof.ir.units import format_size, format_size_exact, format_size_pair, format_time
from spillprof.planning.strategies import OPTIMAL

NOTHING, FORCED = "nothing must spill", "operators that cannot fit"

_METHODS = {
    "equal weights": "equal weights on the steps that are over-full",
    "local ratio": "local ratio",
    "linear program": "a linear program",
    "knapsack cover": "a linear program with knapsack covers",
    FORCED: "what operators that cannot fit pass through DRAM",
}
"""Methods that give a certificate, in words. Any other name is a solver."""

_ENDS = {"nodes": "the integer program has too many nodes", "iterations": "the integer program takes too long"}

CHECK = "spillprof verify MODEL --certificate PROFILE.json, with the same options"


def bound_scope(profile: Profile) -> str:
    """States the claim of the lower bound, its method, and that fewest bytes are not least time."""
    given = [
        (profile.oversized and is_optimistic(profile), "the same operands tiled through DRAM"),
        (profile.config.get("pin"), "the same dedicated slots"),
        (profile.config.get("writeback") == "always", "every eviction written back"),
        (profile.recomputed, "the same operators run twice"),
    ]
    shared = ", ".join(what for holds, what in given if holds)
    same = f", with {shared}," if shared else ""
    short = shortly(profile.bounds) if profile.bounds else ""
    how = f" ({short})" if short else ""
    tiled = any(operator.tiling for operator in profile.oversized)
    however = ", however each operator is tiled one by one" if tiled else ""
    claim = f"Lower bound{how}: no plan for this order of operators{same} spills less{however}."
    return claim + _in_any_order(profile) + _in_any_execution(profile) + _slower(profile)


def is_optimistic(profile: Profile) -> bool:
    """Whether operands that pass in tiles are assumed to pass once."""
    return profile.config.get("tiling") == "once"


def optimism_sentence(profile: Profile) -> str:
    """States that every figure is optimistic, where operators are tiled and ``--tiling once`` is set; else empty."""
    if not is_optimistic(profile) or not profile.oversized:
        return ""
    return (
        "Optimistic: --tiling once assumes that each operand that passes in tiles passes once, whatever the tiles. "
        "Leave it out to count every pass."
    )


def shortly(bounds: Bounds) -> str:
    """Names the proof: ``proven by local ratio, certified``, or a solver; empty if nothing must spill."""
    if bounds.proven_by == NOTHING:
        return ""
    if bounds.proven_by == bounds.certified_by:
        return f"proven by {_METHODS.get(bounds.proven_by, bounds.proven_by)}, certified"
    _, certified = format_size_pair(bounds.spill_bytes_lower, bounds.certified_bytes)
    return f"proven by a solver; {certified} certified"


def proof_word(bounds: Bounds) -> str:
    """Names the proof in a table cell: ``proven, solver`` or ``proven, certified``."""
    if bounds.proven_by == NOTHING:
        return "proven"
    return "proven, certified" if bounds.proven_by == bounds.certified_by else "proven, solver"


def proof_sentence(profile: Profile) -> str:
    """States how the bound is proven, and which part is certified; empty if nothing must spill."""
    bounds = profile.bounds
    if bounds is None or bounds.proven_by == NOTHING:
        return ""
    certified = _METHODS.get(bounds.certified_by, bounds.certified_by)
    if bounds.proven_by == bounds.certified_by:
        return f"The bound is proven by {certified}: its certificate is checked in whole numbers ({CHECK})."
    lower, checked = format_size_exact(bounds.spill_bytes_lower), format_size_exact(bounds.certified_bytes)
    without = "nothing" if bounds.certified_by == NOTHING else f"{checked}, by {certified}"
    return (
        f"The bound is what a solver proved by {bounds.proven_by}: {lower}. What needs no trust "
        f"in a solver is {without}: its certificate is checked in whole numbers ({CHECK})."
    )


def search_sentences(profile: Profile) -> list[str]:
    """Lists searches that ended early, and changes that were not tried."""
    found = []
    search = profile.bounds.search if profile.bounds else ""
    if search not in ("", "complete"):
        found.append(f"Strategy optimal: {_ENDS.get(search, search)}.")
    again = profile.recompute.search if profile.recompute else ""
    if again not in ("", "complete"):
        found.append(f"Operators to run twice: {again}.")
    if profile.untried == (ANY_CHANGE,):
        found.append("What would help: nothing was tried, as each run takes too long.")
    elif profile.untried:
        found.append(f"What would help: for want of runs not tried: {', '.join(profile.untried)}.")
    return found


def _in_any_order(profile: Profile) -> str:
    nbytes = profile.bounds.any_order_bytes if profile.bounds else None
    return f" In any order at least {format_size(nbytes)} must spill." if nbytes else ""


def _in_any_execution(profile: Profile) -> str:
    nbytes = profile.bounds.dram_bytes_floor if profile.bounds else None
    fewest = min((r.dram_bytes for r in profile.results if r.feasible and r.strategy != "none"), default=0)
    if not nbytes or not fewest:
        return ""
    floor, moved = format_size_pair(nbytes, fewest)
    return f" No execution of this network moves less than {floor} between DRAM and SRAM; the best plan moves {moved}."


def _slower(profile: Profile) -> str:
    """Notes where ``optimal``, which minimises bytes, is not the fastest strategy."""
    feasible = [result for result in profile.results if result.feasible]
    fewest = next((result for result in feasible if result.strategy == OPTIMAL), None)
    fastest = min(feasible, key=lambda result: result.latency_s, default=None)
    if fewest is None or fastest is None or fastest.spill_bytes <= fewest.spill_bytes:
        return ""
    if fastest.latency_s >= fewest.latency_s:
        return ""
    saved = format_time(fewest.latency_s - fastest.latency_s)
    return (
        f" Fewest bytes are not the least time: {fastest.strategy} moves more than optimal, but ends {saved} earlier."
    )
