"""Sections of the HTML report that are plain: a heading, sentences, figures, a table. One function of SECTIONS each.

The template renders whatever they return, in their order, so a section is added here alone.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from spillprof.ir.profile import Profile
from spillprof.ir.units import format_size
from spillprof.report.html_table import DataTable
from spillprof.report.profile.html_tables import absences_table, oversized_table, recomputed_table, suggestions_table
from spillprof.report.profile.size_figures import size_section, sweep_command
from spillprof.report.profile.step_figures import Figure
from spillprof.report.profile.story import story_paragraphs
from spillprof.report.profile.verdict import lead_result, recompute_sentences
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
            title="Operators too large for the memory",
            paragraphs=(
                f"{count_of(count, 'operator')} cannot run in {format_size(profile.target.sram_bytes)} whatever is "
                f"spilled, and {'passes' if count == 1 else 'pass'} operands through DRAM in tiles. Streamed bytes are "
                "those of whole operands; the last column is what running producer and consumer tile by tile could "
                "remove.",
            ),
            table=oversized_table(profile),
        )


SECTIONS: tuple[Callable[[Profile], Iterator[Section]], ...] = (_story, _recompute, _suggestions, _sizes, _oversized)
