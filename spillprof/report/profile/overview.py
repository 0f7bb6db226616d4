"""The first screen of the report: key figures, and the strategies side by side."""

from typing import Any

from spillprof.ir.profile import Profile
from spillprof.ir.result import Result
from spillprof.ir.units import format_size, format_time
from spillprof.report.profile.bound_words import proof_word, shortly
from spillprof.report.profile.padding import padding_share
from spillprof.report.profile.size_figures import enough
from spillprof.report.profile.verdict import above_bound
from spillprof.report.scales import comparison_size_column, percent, time_column
from spillprof.report.text import count_of, label


def cards(profile: Profile, lead: Result | None) -> list[tuple[str, str, str]]:
    """(what, figure, one line below it)."""
    model, target = profile.model, profile.target
    ratio = model.peak_live_bytes / target.sram_bytes
    needs = [
        ("peak of live activations", format_size(model.peak_live_bytes),
         f"{ratio:.2f} × the SRAM, at step {model.peak_step:,}; {padding_share(profile)}"),
        *_enough(profile),
        ("smallest SRAM without tiling", format_size(model.min_sram_bytes), f"step {model.min_sram_step:,} needs it"),
    ]  # fmt: skip
    if lead is None:
        return needs
    ideal = profile.ideal.latency_s
    share = f"{percent(lead.spill_time_s / ideal)} over the ideal {format_time(ideal)}" if ideal > 0 else ""
    oversized = count_of(len(profile.oversized), "operator")
    moved = profile.ideal.compulsory_read_bytes + profile.ideal.compulsory_write_bytes
    worst = max((r for r in profile.results), key=lambda r: len(r.oscillations))
    bound = profile.bounds
    bounds = [("lower bound", format_size(bound.spill_bytes_lower), shortly(bound) or bound.proven_by)] if bound else []
    return [
        ("spill bytes", format_size(lead.spill_bytes), f"on top of {format_size(moved)} that must move anyway"),
        *bounds,
        ("spill time", format_time(lead.spill_time_s), share),
        ("spills", f"{lead.spill_count:,}", f"{count_of(lead.reload_count, 'reload')}, "
         f"{lead.clean_eviction_count:,} without a write"),
        *([] if lead.hidden_share is None else [
            ("hidden behind compute", percent(lead.hidden_share), f"of {format_time(lead.serial_cost_s)} of transfers")
        ]),
        *needs,
        ("streamed", format_size(lead.streamed_bytes),
         f"{oversized} too large for the memory" if profile.oversized else "every operator fits"),
        ("oscillating buffers", f"{len(lead.oscillations):,}",
         f"under {lead.strategy}; {len(worst.oscillations):,} under {worst.strategy}"
         if worst is not lead and worst.oscillations else f"under {lead.strategy}"),
    ]  # fmt: skip


def strategy_rows(profile: Profile, lead: Result | None) -> list[dict[str, Any]]:
    """Rows of the table of strategies. ``bar``: the ideal and the spill time, in percent of the slowest run."""
    rows = [r for r in profile.results if r.strategy != "none"]
    shown = [r if r.feasible else None for r in rows]
    ideal = profile.ideal
    latency = time_column([ideal.latency_s, *(r.latency_s if r else None for r in shown)])
    spill_time = time_column([None, *(r.spill_time_s if r else None for r in shown)])
    bound = profile.bounds.spill_bytes_lower if profile.bounds else None
    spilled = comparison_size_column([0, *(r.spill_bytes if r else None for r in shown), bound])
    peak = comparison_size_column([ideal.peak_bytes, *(r.peak_bytes if r else None for r in shown)])
    energies = [ideal.energy_j, *(r.energy_j if r else None for r in shown)]
    energy = [f"{1e3 * joules:.3g} mJ" if joules else "-" for joules in energies]
    header = {"name": "no spill (ideal)", "reason": "", "lead": False}
    slowest = max([ideal.latency_s, *(r.latency_s for r in rows if r.feasible)]) or 1.0
    table = [
        {
            **header,
            "bar": (100 * ideal.latency_s / slowest, 0.0),
            "cells": (latency[0], "-", "-", "0", "-", "0", "0", peak[0], energy[0]),
        }
    ]
    for i, r in enumerate(rows, start=1):
        cells = (
            latency[i], spill_time[i], percent(r.hidden_share), spilled[i], above_bound(profile, r),
            f"{r.spill_count:,}", f"{r.reload_count:,}", peak[i], energy[i],
        )  # fmt: skip
        reason = "" if r.feasible else label(r.reason or "no reason given", 400)
        bar = (100 * (r.latency_s - r.spill_time_s) / slowest, 100 * r.spill_time_s / slowest)
        table.append({"name": r.strategy, "reason": reason, "lead": r is lead, "cells": cells, "bar": bar})
    if profile.bounds is not None:
        cells = ("", "", "", spilled[-1], proof_word(profile.bounds), "", "", "", "")
        table.append({"name": "lower bound", "reason": "", "lead": False, "cells": cells, "bar": None})
    return table


def _enough(profile: Profile) -> list[tuple[str, str, str]]:
    found = enough(profile)
    if found is None:
        return []
    sram_bytes, strategy = found
    return [
        ("enough for no spill", format_size(sram_bytes),
         f"{sram_bytes / profile.target.sram_bytes:.2f} × the SRAM, under {strategy}; of the sizes drawn below")
    ]  # fmt: skip
