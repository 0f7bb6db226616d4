"""The summary that ``analyze`` prints: right-aligned numbers, one unit a column; words carry the verdict."""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from spillprof.ir.profile import Profile
from spillprof.ir.result import Result
from spillprof.ir.story import Suggestion
from spillprof.ir.units import format_rate, format_size, format_size_exact
from spillprof.report.profile.bound_words import bound_scope, optimism_sentence, proof_word, search_sentences
from spillprof.report.profile.demand import LIVE, OVER, demand_sentence, padding_sentence, strip_heading, strip_lines
from spillprof.report.profile.story import COLUMNS, absence_row, story_paragraphs
from spillprof.report.profile.verdict import (
    above_bound,
    deployed_as,
    infeasible_sentence,
    lead_result,
    no_spill_sentence,
    op_times_sentence,
    oscillation_sentences,
    oversized_sentence,
    recompute_sentences,
    shown_cause,
    time_parts,
    why_line,
)
from spillprof.report.scales import comparison_size_column, part_percent, percent, signed_time, size_column, time_column
from spillprof.report.table import Table
from spillprof.report.text import DEFAULT_WIDTH, GLUE, count_of, display_width, glued, label

_MIN_WIDTH = 60
_NARROW = 92
"""Below this width the table of strategies uses a shorter label."""
_MAX_REMARKS = 12
_SUGGESTIONS_SHOWN = 5
_LONGEST_ARGUMENT = 400
"""Characters of a suggestion; longer ones are cut, as names come from models."""
_SHORTEST_NAME, _SHORT_NAME, _LONG_NAME = 20, 28, 44
"""Columns of an operator's name: minimum, minimum before a second victim is shown, maximum."""
_STRATEGY_COLUMNS = (
    "", "latency", "spill time", "hidden", "spill bytes", "spills", "reloads", "above bound",
)  # fmt: skip
_WEIGHT_WORDS = {"stream": "streamed", "cached": "cached", "resident": "resident"}


def render(profile: Profile, *, top: int = 10, width: int | None = None, color: bool) -> str:
    """Renders the summary, ``width`` columns wide (default 100), with ``top`` operators. Deterministic."""
    buffer = io.StringIO()
    console = Console(
        file=buffer,
        width=max(_MIN_WIDTH, width or DEFAULT_WIDTH),
        force_terminal=color,
        no_color=not color,
        color_system="standard" if color else None,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},
    )
    page = _Page(profile=profile, lead=lead_result(profile), top=top, width=console.width)
    for part in chain.from_iterable(section(page) for section in _SECTIONS):
        console.print(part)
    return "\n".join(line.rstrip() for line in buffer.getvalue().replace(GLUE, " ").splitlines()) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """Input of a section."""

    profile: Profile
    lead: Result | None
    top: int  # rows of tables
    width: int


def _header(page: _Page) -> Iterable[RenderableType]:
    profile = page.profile
    model, target = profile.model, profile.target
    policy = str(profile.config.get("weights", ""))
    facts = [f"{count_of(model.operators, 'operator')} in {count_of(model.steps, 'step')}"]
    if model.opset is not None:
        facts.append(f"opset {model.opset}")
    facts.append(f"weights {format_size(model.weight_bytes)} {_WEIGHT_WORDS.get(policy, policy)}".rstrip())
    facts += deployed_as(profile)
    facts += [f"{label(name, 30)}={size}" for name, size in model.dims.items()]
    yield Text.assemble((label(model.path, 60), "bold"), "   ", glued(", ".join(facts)))
    read, write = format_rate(target.dram_read_bytes_per_s), format_rate(target.dram_write_bytes_per_s)
    yield Text(
        glued(
            f"SRAM {format_size_exact(target.sram_bytes)}, align {target.alignment_bytes} B"
            f"   DRAM read {read} write {write}   target {label(target.name, 40)}"
        )
    )
    if profile.op_times is not None:
        yield Text(op_times_sentence(profile.op_times))
    if optimism := optimism_sentence(profile):
        yield _line(Text(optimism, "bold"))


def _strategies(page: _Page) -> Iterable[RenderableType]:
    profile = page.profile
    yield ""
    yield _strategy_table(profile, page.lead, page.width)
    if profile.bounds is not None:
        yield _line(Text(bound_scope(profile), "dim"))
    yield from map(_line, recompute_sentences(profile))
    yield from (_line(Text(sentence, "dim")) for sentence in search_sentences(profile))
    for result in profile.results:
        if not result.feasible:
            yield _line(f"{label(result.strategy, 20)} is infeasible: {label(result.reason or 'no reason given', 300)}")
    yield ""


def _strategy_table(profile: Profile, lead: Result | None, width: int) -> RenderableType:
    rows = [r for r in profile.results if r.strategy != "none"]
    ideal = profile.ideal
    shown = [r if r.feasible else None for r in rows]
    latency = time_column([ideal.latency_s, *(r.latency_s if r else None for r in shown)])
    spill_time = time_column([None, *(r.spill_time_s if r else None for r in shown)])
    bound = profile.bounds.spill_bytes_lower if profile.bounds else None
    spill_bytes = comparison_size_column([0, *(r.spill_bytes if r else None for r in shown), bound])
    ideal_row = ("ideal" if width < _NARROW else "no spill (ideal)", latency[0], "-", "-", "0", "0", "0", "-")
    lines: list[tuple[str, ...]] = [ideal_row]
    styles = [""]
    for i, result in enumerate(rows, start=1):
        name = label(result.strategy, 20)
        if not result.feasible:
            lines.append((name, "infeasible", *["-"] * 6))
            styles.append("dim")
            continue
        lines.append((
            name, latency[i], spill_time[i], percent(result.hidden_share), spill_bytes[i],
            f"{result.spill_count:,}", f"{result.reload_count:,}", above_bound(profile, result),
        ))  # fmt: skip
        styles.append("bold" if result is lead else "")
    if profile.bounds is not None:
        lines.append(("lower bound", "", "", "", spill_bytes[-1], "", "", proof_word(profile.bounds)))
        styles.append("")
    spared = ("reloads", "hidden", "spill time", "spills")
    return _drawn(Table(heads=_STRATEGY_COLUMNS, cells=lines, align="lrrrrrrr", spared=spared), width, styles)


def _memory(page: _Page) -> Iterable[RenderableType]:
    """Draws bars over the steps; demand above the SRAM size is red."""
    profile, lead, width = page.profile, page.lead, page.width
    if not profile.live_bytes:
        return
    under = f" under {lead.strategy}" if lead is not None else ""
    yield _line(strip_heading(profile, under, width - 2), "bold")
    for name, bars in strip_lines(profile, lead, width - 4):
        text = Text.assemble((f"{name:<8}", "dim"), bars)
        if name == LIVE:
            text.highlight_regex(f"{OVER}+", "red")
        yield Padding(text, (0, 0, 0, 4))
    yield _line(demand_sentence(profile))
    if padding := padding_sentence(profile):
        yield _line(padding)


def _verdict(page: _Page) -> Iterable[RenderableType]:
    """Says what the leading strategy spills, why and where; or that nothing spills or nothing can run."""
    profile, lead = page.profile, page.lead
    yield ""
    if lead is None:
        yield _line(infeasible_sentence(profile), "bold")
        return
    if lead.spill_bytes == 0:
        yield _line(no_spill_sentence(profile, lead), "bold")
    if lead.spill_bytes or lead.compaction_count:
        yield from _lead(profile, lead, page.top, page.width)


def _lead(profile: Profile, lead: Result, top: int, width: int) -> Iterable[RenderableType]:
    if lead.kinds is not None and lead.spill_bytes:
        chosen = ", least spill time" if len(profile.results) > 1 else ""
        yield _line(Text.assemble((f"why ({lead.strategy}{chosen}): ", "bold"), why_line(lead)))
    if lead.breakdown is not None and lead.latency_s:
        where = " · ".join(f"{part} {part_percent(s / lead.latency_s)}" for part, s in time_parts(lead.breakdown) if s)
        yield _line(Text.assemble((f"time ({lead.strategy}): ", "bold"), where))
    if lead.compaction_count:
        moved = f"{count_of(lead.compaction_count, 'compaction move')}, {format_size(lead.compaction_bytes)}"
        yield _line(f"{moved} inside SRAM under {lead.strategy}")
    rows = lead.operators[:top]
    if not rows:
        return
    yield ""
    spilled = size_column([o.spill_bytes for o in rows])
    stalls = time_column([o.stall_s for o in rows])
    for shown in (2, 1):
        figures = Table(
            heads=("spill bytes", "stall", "cause", "victims"),
            cells=[
                (nbytes, stall, shown_cause(operator) or "-", _victims(operator.victims, shown))
                for operator, nbytes, stall in zip(rows, spilled, stalls, strict=True)
            ],
            align="rrll",
        )
        room = width - 2 - figures.width() - 2
        if room >= _SHORT_NAME:
            break
    name_width = max(_SHORTEST_NAME, min(_LONG_NAME, room))
    names = [f"#{o.step} {label(o.name, name_width - len(str(o.step)) - 2)}" for o in rows]
    table = Table(
        heads=("operator", *figures.heads),
        cells=[(name, *row) for name, row in zip(names, figures.cells, strict=True)],
        align=f"l{figures.align}",
        spared=("victims", "cause"),
    )
    yield _line(f"Top operators under {lead.strategy}", "bold")
    yield _drawn(table, width)
    hidden = len(lead.operators) - len(rows)
    if hidden:
        yield Padding(Text(f"... {hidden:,} more (--top {len(lead.operators)})", "dim"), (0, 0, 0, 4))


def _story(page: _Page) -> Iterable[RenderableType]:
    """Tells the history of what --why names, with its first absences."""
    profile, top, width = page.profile, page.top, page.width
    if profile.why is None:
        return
    for title, sentences, absences in story_paragraphs(profile.why):
        yield ""
        yield _line(title, "bold")
        yield from (_line(sentence) for sentence in sentences)
        if not absences:
            continue
        of_one = len({a.buffer for a in absences}) == 1
        for name_width in (20, 14, 10):
            rows = [absence_row(a, with_buffer=not of_one, name_width=name_width) for a in absences[:top]]
            table = Table(heads=COLUMNS, cells=rows, align="lllrrrl", spared=("left after", "waited"))
            if table.width(gap=1) <= width - 2:
                break
        yield _drawn(table, width)
        if len(absences) > top:
            yield Padding(Text(f"... {len(absences) - top:,} more (--top {len(absences)})", "dim"), (0, 0, 0, 4))


def _victims(names: Sequence[str], shown: int) -> str:
    """Lists the first victims and the number of others."""
    more = f" +{len(names) - shown}" if len(names) > shown else ""
    return ", ".join(label(name, 14) for name in names[:shown]) + more


def _findings(page: _Page) -> Iterable[RenderableType]:
    """Reports oscillating buffers, then operators that cannot fit."""
    if oscillating := oscillation_sentences(page.profile):
        yield from ("", *map(_line, oscillating))
    if oversized := oversized_sentence(page.profile):
        yield from ("", _line(oversized))


def _suggestions(page: _Page) -> Iterable[RenderableType]:
    """Tabulates the best suggestions, their cost beside them or, on narrow terminals, below."""
    profile, lead, width = page.profile, page.lead, page.width
    shown = _varied(profile.suggestions, _SUGGESTIONS_SHOWN)
    if not shown:
        return
    spilled = size_column([s.spill_bytes for s in shown])
    arguments = [label(s.argument, _LONGEST_ARGUMENT) for s in shown]
    prices = [label(s.costs, 80) for s in shown]
    saved = [signed_time(-s.saves_s) for s in shown]
    heads = ("latency", "spill bytes", "change")
    if max(map(display_width, arguments)) + max(map(display_width, prices)) <= width - 32:
        rows = list(zip(saved, spilled, arguments, prices, strict=True))
        table, styles = Table(heads=(*heads, "costs"), cells=rows, align="rrll"), [""] * len(rows)
    else:
        pairs = zip(saved, spilled, arguments, prices, strict=True)
        lines = [line for time, size, what, price in pairs for line in ((time, size, what), ("", "", price))]
        table, styles = Table(heads=heads, cells=lines, align="rrl", folded=2), ["", "dim"] * len(shown)
    under = sorted({s.strategy for s in shown if s.change != "strategy"})
    how = f" under {', '.join(under)}" if under else ""
    if lead is not None and under != [lead.strategy]:
        how += f", against {lead.strategy}"
    more = len(profile.suggestions) - len(shown)
    yield ""
    yield _line(f"What would help most (each re-simulated{how})", "bold")
    yield _drawn(table, width, styles)
    if more:
        yield Padding(Text(f"... {more:,} more in the report and in --json", "dim"), (0, 0, 0, 4))


def _varied(suggestions: Sequence[Suggestion], most: int) -> list[Suggestion]:
    """Picks at most ``most``: the best of each kind, then the best of the rest, in the given order."""
    first = {s.change: s for s in reversed(suggestions)}.values()
    ranked = [s for s in suggestions if s in first] + [s for s in suggestions if s not in first]
    taken = ranked[:most]
    return [s for s in suggestions if s in taken]


def _remarks(page: _Page) -> Iterable[RenderableType]:
    """Lists assumptions, notes, folded and removed operators."""
    model = page.profile.model
    lines = [f"assumed, {count_of(a.count, 'time')}: {label(a.what, 300)}" for a in model.assumptions]
    if model.folded_operators:
        lines.append(
            f"{count_of(model.folded_operators, 'operator')} computed from constants alone: folded into weights"
        )
    if model.removed_operators:
        lines.append(f"{count_of(model.removed_operators, 'operator')} removed: nothing reads what they compute")
    lines += [label(note, 300) for note in model.notes]
    if len(lines) > _MAX_REMARKS:
        lines = [*lines[: _MAX_REMARKS - 1], f"{len(lines) - _MAX_REMARKS + 1} more in the report"]
    yield from ["", *(_line(f"note: {line}", "dim") for line in lines)] if lines else []


def _drawn(table: Table, width: int, styles: Sequence[str] = ()) -> RenderableType:
    """Lays out a table with dim heads; ``styles`` has one style a row."""
    heads, *rows = ("\n".join(lines) for lines in table.blocks(width=width, indent=2))
    styled = map(Text, (heads, *rows), ("dim", *(styles or [""] * len(rows))))
    return Text("\n", no_wrap=True, overflow="ignore").join(styled)


def _line(text: str | Text, style: str = "") -> RenderableType:
    shown = Text(text, style=style) if isinstance(text, str) else text
    shown.plain = glued(shown.plain)
    return Padding(shown, (0, 0, 0, 2))


_SECTIONS = (_header, _strategies, _memory, _verdict, _story, _findings, _suggestions, _remarks)
"""The page, top to bottom. A section takes the page, and yields what rich renders: lines (``_line``) and tables."""
