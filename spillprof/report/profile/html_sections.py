"""The tables of the HTML report, and its plain sections: a heading, sentences, figures, a table.

One function of SECTIONS each. The template renders whatever they return, in their order, so a section is added here
alone.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from spillprof.ir.profile import Profile
from spillprof.ir.result import Result
from spillprof.ir.story import Absence
from spillprof.ir.units import format_size
from spillprof.report.page import BRIEF_ROWS, HTML_ROWS, DataTable, make_table
from spillprof.report.profile.bound_words import optimism_sentence
from spillprof.report.profile.demand import wanted_bytes
from spillprof.report.profile.size_figures import size_section, sweep_command
from spillprof.report.profile.step_figures import MAX_LIVE, Figure, largest_residencies
from spillprof.report.profile.story import COLUMNS as ABSENCE_COLUMNS
from spillprof.report.profile.story import absence_row, story_paragraphs
from spillprof.report.profile.verdict import lead_result, recompute_sentences, shown_cause
from spillprof.report.text import count_of, label


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """What stands under one heading, top to bottom. Texts are plain: the template escapes them."""

    id: str
    title: str
    link: str = ""
    """What the bar at the top of the page calls it; empty: the bar does not name it."""
    paragraphs: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    """Sentences of a list."""
    figures: tuple[tuple[Figure, str, str], ...] = ()
    """(figure, title, sentence)."""
    table: DataTable | None = None
    command: tuple[str, str] = ("", "")
    """(words, command line) below all."""


def page_sections(profile: Profile) -> tuple[Section, ...]:
    """The sections between the strategies and the timeline, in the order of SECTIONS."""
    return tuple(section for make in SECTIONS for section in make(profile))


def _story(profile: Profile) -> Iterator[Section]:
    paragraphs = story_paragraphs(profile.why) if profile.why else ()
    for number, (title, sentences, absences) in enumerate(paragraphs, start=1):
        yield Section(
            id=f"story-{number}", title=title, points=sentences, table=absences_table(title, absences)
        )  # fmt: skip


def _recompute(profile: Profile) -> Iterator[Section]:
    if sentences := recompute_sentences(profile):
        yield Section(
            id="recompute",
            title="Operators that run twice",
            paragraphs=(" ".join(sentences),),
            table=recomputed_table(profile),
        )


def _suggestions(profile: Profile) -> Iterator[Section]:
    lead = lead_result(profile)
    against = f" Savings are against {lead.strategy}, for the same work." if lead else ""
    if profile.suggestions:
        yield Section(
            id="what-if",
            title="What would help most",
            link="What helps",
            paragraphs=(
                "Every line is a run of its own with that one change: added to the command line it gives exactly these "
                f"figures.{against}",
            ),
            table=suggestions_table(profile),
        )


def _sizes(profile: Profile) -> Iterator[Section]:
    found = size_section(profile)
    yield Section(
        id="sizes",
        title="Larger and smaller memories",
        link="Memory sizes",
        paragraphs=() if found.figures else (" ".join(found.sentences),),
        points=found.sentences if found.figures else (),
        figures=found.figures,
        table=found.table,
        command=("All strategies, and more sizes:", label(sweep_command(profile), 400)),
    )


def _oversized(profile: Profile) -> Iterator[Section]:
    count = len(profile.oversized)
    if count:
        yield Section(
            id="oversized",
            title="Operators that run in tiles",
            paragraphs=(
                f"{count_of(count, 'operator')} {'passes' if count == 1 else 'pass'} operands through DRAM in tiles: "
                f"because all of them together do not fit into {format_size(profile.target.sram_bytes)}, or to leave "
                "room for other tensors. The tiles, the order of the loops and what stays on-chip are those of the "
                f"best plan; what moves is counted pass by pass. {optimism_sentence(profile)}".rstrip(),
            ),
            table=oversized_table(profile),
        )


SECTIONS: tuple[Callable[[Profile], Iterator[Section]], ...] = (_story, _recompute, _suggestions, _sizes, _oversized)


def operators_table(result: Result) -> DataTable:
    """Lists steps that spill or stall, most spill bytes first."""
    return make_table(
        f"Operators by spill bytes under {result.strategy}",
        "step:count, operator, type, spill bytes:size, written:size, reloaded:size, streamed:size, stall:time, "
        "waits for, bound by, cause, victims",
        result.operators,
        lambda o: (o.step, label(o.name, 64), label(o.op_type, 24), o.spill_bytes, o.spill_write_bytes,
                   o.spill_read_bytes, o.streamed_bytes, o.stall_s,
                   None if o.stall_buffer is None else label(o.stall_buffer, 32), o.bound, shown_cause(o),
                   _names(o.victims)),
    )  # fmt: skip


def buffers_table(result: Result) -> DataTable:
    """Lists buffers that were spilled or streamed, most spill bytes first."""
    oscillating = {o.buffer for o in result.oscillations}
    return make_table(
        f"Buffers by spill bytes under {result.strategy}",
        "buffer, kind, size:size, first step:count, last step:count, uses:count, spills:count, spill bytes:size, "
        "oscillates",
        result.buffers,
        lambda b: (label(b.name, 64), b.kind, b.size_bytes, b.start, b.end, len(b.uses), b.spill_count, b.spill_bytes,
                   "yes" if b.name in oscillating else None),
    )  # fmt: skip


def oscillations_table(result: Result) -> DataTable:
    """Lists oscillating buffers, and what a dedicated slot would change in the whole run."""
    return make_table(
        f"Oscillating buffers under {result.strategy}",
        "buffer, size:size, spills:count, its spill bytes:size, all spill bytes if pinned:size, "
        "latency if pinned:time, change:time, dedicated slot",
        result.oscillations,
        lambda o: (label(o.buffer, 64), o.size_bytes, o.spill_count, o.spill_bytes, o.pinned_spill_bytes,
                   o.pinned_latency_s, None if o.pinned_latency_s is None else o.pinned_latency_s - result.latency_s,
                   "not tried" if not o.tried else "does not fit" if o.pinned_latency_s is None else "re-simulated"),
    )  # fmt: skip


def memory_table(profile: Profile, result: Result) -> DataTable:
    """Lists the maximum use in equal stretches of steps."""
    n, live = len(result.in_use_bytes), wanted_bytes(profile)
    edges = sorted({i * n // BRIEF_ROWS for i in range(BRIEF_ROWS + 1)})
    return make_table(
        "Greatest memory use by stretch of steps",
        "from step:count, to step:count, in use:size, live:size",
        tuple(pairwise(edges)),
        lambda stretch: (stretch[0], stretch[1] - 1, max(result.in_use_bytes[slice(*stretch)]),
                         max(live[slice(*stretch)], default=None)),
    )  # fmt: skip


def spills_table(result: Result) -> DataTable:
    """Lists the steps with most spill bytes."""
    return make_table(
        "Steps with most spill bytes",
        "step:count, operator, written:size, reloaded:size, streamed:size",
        result.operators,
        lambda o: (o.step, label(o.name, 48), o.spill_write_bytes, o.spill_read_bytes, o.streamed_bytes),
        limit=BRIEF_ROWS,
    )  # fmt: skip


def arcs_table(result: Result) -> DataTable:
    """Lists spills and stretches off-chip after a streamed use, by bytes x steps."""
    heaviest = sorted(result.arcs, key=lambda a: -a.size_bytes * (a.needed_step - a.evict_step + 1))
    return make_table(
        f"Spills from eviction to reload under {result.strategy}",
        "buffer, size:size, evicted at step:count, needed at step:count, steps between:count, idle:time, "
        "waited:time, cause, written back",
        heaviest,
        lambda a: (label(a.buffer, 48), a.size_bytes, a.evict_step, a.needed_step,
                   max(a.needed_step - a.evict_step - 1, 0), a.idle_s, a.wait_s, a.cause,
                   ("yes" if a.written else "no") if a.evicted else "streamed"),
    )  # fmt: skip


def addresses_table(result: Result) -> DataTable:
    """Lists the residencies of largest bytes x steps."""
    largest = sorted(largest_residencies(result), key=lambda r: -r.size_bytes * (r.end_step - r.start_step))
    return make_table(
        "The largest residencies (bytes x steps)",
        "buffer, kind, from step:count, to step:count, address:count, size:size",
        largest,
        lambda r: (label(r.buffer, 48), r.kind, int(r.start_step), int(r.end_step), r.address, r.size_bytes),
        limit=BRIEF_ROWS, total=len(result.residencies),
    )  # fmt: skip


def live_table(profile: Profile) -> DataTable:
    """Lists the buffers live at the peak step."""
    return make_table(
        "Buffers live at the peak",
        "buffer, kind, size:size, first step:count, last step:count, at the peak",
        profile.peak_buffers,
        lambda b: (label(b.name, 48), b.kind, b.size_bytes, b.start, b.end, "used" if b.used_here else "waits"),
        limit=MAX_LIVE,
    )  # fmt: skip


def oversized_table(profile: Profile) -> DataTable:
    """Lists operators that run in tiles, largest demand first."""
    return make_table(
        "Operators that run in tiles",
        "step:count, operator, needs at once:size, tiles move:size, beyond the ideal:size, further passes:size, tiling",
        sorted(profile.oversized, key=lambda o: -o.demand_bytes),
        lambda o: (
            o.step, label(o.name, 64), o.demand_bytes, o.streamed_bytes, o.beyond_bytes, o.passes_bytes,
            label(o.tiling, 300) if o.tiling else "loops unknown: once each, assumed",
        ),
        limit=HTML_ROWS,
    )  # fmt: skip


def recomputed_table(profile: Profile) -> DataTable:
    """Lists operators that run twice, in program order."""
    return make_table(
        "Operators that run twice",
        "step:count, makes again, MACs:count, computes:time, weights again:size, transfers saved:size",
        profile.recomputed,
        lambda r: (r.step, label(r.buffer, 64), r.macs, r.compute_s, r.weight_bytes, r.saves_bytes + r.weight_bytes),
        limit=HTML_ROWS,
    )  # fmt: skip


def suggestions_table(profile: Profile) -> DataTable:
    """Lists re-simulated changes."""
    return make_table(
        "What would help most (each re-simulated)",
        "change, saves:time, latency:time, spill bytes:size, saves bytes:size, saves energy:energy, under, costs",
        profile.suggestions,
        lambda s: (label(s.argument, 400), s.saves_s, s.latency_s, s.spill_bytes, s.saves_bytes,
                   s.saves_j, s.strategy, label(s.costs, 80)),
        limit=HTML_ROWS,
    )  # fmt: skip


def absences_table(title: str, absences: Sequence[Absence]) -> DataTable:
    """Lists when a buffer was off-chip, or which buffers an operator evicted."""
    return make_table(
        title,
        ", ".join(("buffer", *ABSENCE_COLUMNS)),
        absences,
        lambda a: (label(a.buffer, 64), *absence_row(a, with_buffer=False)),
        limit=HTML_ROWS,
    )


def _names(names: Sequence[str]) -> str:
    """Joins the first three names and the number of others."""
    more = f" +{len(names) - 3}" if len(names) > 3 else ""
    return ", ".join(label(name, 32) for name in names[:3]) + more
