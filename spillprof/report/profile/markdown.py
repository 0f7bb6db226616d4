"""A short Markdown summary: verdict, strategies, top operators. For job summaries and comments."""

from collections.abc import Iterable, Sequence

from spillprof.ir.profile import Profile
from spillprof.ir.result import Result
from spillprof.ir.units import format_rate, format_size
from spillprof.report.profile.bound_words import bound_scope, optimism_sentence, proof_word, search_sentences
from spillprof.report.profile.demand import padding_sentence
from spillprof.report.profile.verdict import (
    deployed_as,
    lead_result,
    model_title,
    recompute_sentences,
    shown_cause,
    verdict,
    why_line,
)
from spillprof.report.scales import comparison_size_column, percent, size_column, time_column
from spillprof.report.table import Table
from spillprof.report.text import code, count_of, label, plain

_TOP_OPERATORS = 10


def render(profile: Profile) -> str:
    """The Profile as GitHub-flavoured Markdown, newline at the end. Names cannot break out of their cells."""
    return "\n".join(_lines(profile)) + "\n"


def _lines(profile: Profile) -> Iterable[str]:
    lead = lead_result(profile)
    for section in _SECTIONS:
        yield from section(profile, lead)


def _verdict(profile: Profile, lead: Result | None) -> Iterable[str]:
    yield from (f"### spill cost of {code(model_title(profile))}", "", plain(verdict(profile)), "")
    if optimism := optimism_sentence(profile):
        yield from (f"**{plain(optimism)}**", "")
    again = recompute_sentences(profile)
    yield from (plain(sentence) for sentence in again)
    yield from [""] if again else []


def _remarks(profile: Profile, lead: Result | None) -> Iterable[str]:
    if profile.bounds is not None and lead is not None and lead.spill_bytes:
        yield f"- {plain(bound_scope(profile))}"
    for sentence in search_sentences(profile):
        yield f"- {plain(sentence)}"
    if padding := padding_sentence(profile):
        yield f"- {plain(padding)}"
    for assumption in profile.model.assumptions:
        yield f"- assumed, {count_of(assumption.count, 'time')}: {code(assumption.what, 300)}"


def _foot(profile: Profile, lead: Result | None) -> Iterable[str]:
    target = profile.target
    yield ""
    yield (
        f"<sub>SRAM {format_size(target.sram_bytes)}, DRAM read {format_rate(target.dram_read_bytes_per_s)}, "
        f"write {format_rate(target.dram_write_bytes_per_s)}, target {code(target.name)}, "
        f"{''.join(f'{each}, ' for each in deployed_as(profile))}"
        f"spillprof {profile.spillprof_version}</sub>"
    )


def _strategies(profile: Profile, lead: Result | None) -> Iterable[str]:
    rows: Sequence[Result] = [r for r in profile.results if r.feasible and r.strategy != "none"]
    latency = time_column([profile.ideal.latency_s, *(r.latency_s for r in rows)])
    spill_time = time_column([None, *(r.spill_time_s for r in rows)])
    bound = profile.bounds.spill_bytes_lower if profile.bounds else None
    spilled = comparison_size_column([0, *(r.spill_bytes for r in rows), bound])
    cells = [("no spill (ideal)", latency[0], "-", "-", "0", "0", "0")]
    cells += [
        (r.strategy, latency[i], spill_time[i], percent(r.hidden_share), spilled[i], f"{r.spill_count:,}",
         f"{r.reload_count:,}")
        for i, r in enumerate(rows, start=1)
    ]  # fmt: skip
    if profile.bounds is not None:
        cells.append((f"lower bound ({proof_word(profile.bounds)})", "", "", "", spilled[-1], "", ""))
    cells += [
        (r.strategy, f"infeasible: {plain(label(r.reason or 'no reason given', 200))}", "", "", "", "", "")
        for r in profile.results
        if not r.feasible
    ]
    heads = ("strategy", "latency", "spill time", "hidden", "spill bytes", "spills", "reloads")
    yield from Table(heads=heads, cells=cells, align="lrrrrrr").markdown()
    yield ""


def _operators(profile: Profile, lead: Result | None) -> Iterable[str]:
    if lead is None or not (lead.spill_bytes or lead.compaction_count):
        return
    if lead.kinds is not None and lead.spill_bytes:
        yield f"Why ({lead.strategy}): {why_line(lead)}"
        yield ""
    rows = lead.operators[:_TOP_OPERATORS]
    spilled = size_column([o.spill_bytes for o in rows])
    stalls = time_column([o.stall_s for o in rows])
    heads = (f"top operators under {lead.strategy}", "spill bytes", "stall", "cause", "victims")
    cells = [
        (f"#{o.step} {code(o.name)}", nbytes, stall, shown_cause(o) or "-", _victims(o.victims))
        for o, nbytes, stall in zip(rows, spilled, stalls, strict=True)
    ]
    yield from Table(heads=heads, cells=cells, align="lrrll").markdown()
    if len(lead.operators) > len(rows):
        yield ""
        yield f"{len(lead.operators) - len(rows):,} more operators have a figure."
    yield ""


def _victims(names: Sequence[str]) -> str:
    more = f" +{len(names) - 3}" if len(names) > 3 else ""
    return ", ".join(map(code, names[:3])) + more


_SECTIONS = (_verdict, _strategies, _operators, _remarks, _foot)
"""The summary, top to bottom. A section takes the profile and its leading result, and yields lines."""
