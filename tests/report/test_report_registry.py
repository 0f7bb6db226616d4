"""One row registers an export, and one function a section: commands, help, completion, docs and page follow."""

from collections.abc import Iterator
from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest
from profiles import make_profile

from spillprof.cli import run
from spillprof.cli.formats import completing_suffixes
from spillprof.ir.profile import Profile
from spillprof.report.exports import registry
from spillprof.report.exports.registry import EXPORTS, Export, Subject, export_for, exports_of, suffixes_of
from spillprof.report.exports.tables import TABLES
from spillprof.report.profile import html, html_sections
from spillprof.report.profile.html_sections import Section
from spillprof.report.text import printable

ROOT = Path(__file__).parents[2]


def spilled_names(profile: Profile) -> str:
    """A renderer as a newcomer writes one: a value in, text out."""
    names = {buffer.name for result in profile.results for buffer in result.buffers}
    return "".join(f"{printable(name)}\n" for name in sorted(names))


def test_a_registered_export_is_written_by_every_command_of_its_subject(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = Export(
        subject=Subject.PROFILE,
        suffix=".names.txt",
        name="names",
        help="names of the buffers that spill",
        renderer=f"{__name__}:spilled_names",
    )
    for command in ("analyze", "report"):  # their help lists formats when they are imported
        import_module(f"spillprof.cli.{command}")
    monkeypatch.setattr(registry, "EXPORTS", (*EXPORTS, row))
    monkeypatch.chdir(tmp_path)
    model = str(ROOT / "sample_models" / "unet.onnx")
    analyze = ["analyze", model, "--sram", "12MB", "--strategy", "lru", "--what-if", "off"]
    assert run([*analyze, "-o", "a.names.txt", "-o", "a.json"]) == 0
    assert run(["report", "a.json", "-o", "b.names.txt"]) == 0
    names = Path("a.names.txt").read_text("utf-8")
    assert "up0/join\n" in names
    assert Path("b.names.txt").read_text("utf-8") == names
    assert run([*analyze, "-o", "a.txt"]) == 2
    assert ".names.txt" in capsys.readouterr().err


@pytest.mark.parametrize("export", EXPORTS, ids=lambda e: f"{e.subject}-{e.name}{e.suffix}")
def test_every_row_names_functions_that_take_what_it_says(export: Export) -> None:
    for path in filter(None, (export.renderer, export.check)):
        module, _, name = path.partition(":")
        assert callable(getattr(import_module(module), name))
    module, _, name = export.renderer.partition(":")
    _, *keywords = signature(getattr(import_module(module), name)).parameters.values()
    wanted = {parameter.name for parameter in keywords if parameter.default is parameter.empty}
    assert wanted == {*export.takes, *dict(export.settings)}


@pytest.mark.parametrize("subject", Subject)
def test_suffixes_are_unique_and_every_subject_has_one(subject: Subject) -> None:
    suffixes = suffixes_of(subject)
    assert len(set(suffixes)) == len(suffixes) > 0
    assert all(suffix.startswith(".") and suffix == suffix.lower() for suffix in suffixes)


def test_the_longest_suffix_counts() -> None:
    assert export_for(Subject.PROFILE, "x.TRACE.json").name == "trace"
    assert export_for(Subject.PROFILE, "trace.json").name == "json"


def test_every_table_is_registered() -> None:
    assert {dict(e.settings)["table"] for e in exports_of(Subject.PROFILE) if e.settings} == set(TABLES)


def test_completion_offers_the_suffixes_that_go_on_from_what_is_typed() -> None:
    complete = completing_suffixes(Subject.PROFILE)
    assert complete(None, None, "out/unet.s") == [f"out/unet.{s}" for s in (
        "spills.csv", "steps.csv", "suggestions.csv", "sizes.csv", "speedscope.json", "spill.onnx")]  # type: ignore[arg-type] # fmt: skip
    assert complete(None, None, "unet") == [f"unet{suffix}" for suffix in suffixes_of(Subject.PROFILE)]  # type: ignore[arg-type]
    assert complete(None, None, "") == []  # type: ignore[arg-type]


def test_the_list_in_the_docs_is_current() -> None:
    assert "\n".join(registry.markdown_list()) in (ROOT / "docs" / "exports.md").read_text("utf-8")


def test_a_section_of_the_page_is_one_function(monkeypatch: pytest.MonkeyPatch) -> None:
    def busiest(profile: Profile) -> Iterator[Section]:
        yield Section(id="busiest", title="The <busiest> steps", link="Busiest", paragraphs=("One & only.",))

    monkeypatch.setattr(html_sections, "SECTIONS", (*html_sections.SECTIONS, busiest))
    page = html.render(make_profile())
    assert '<a href="#busiest">Busiest</a>' in page
    assert '<h2 id="busiest">The &lt;busiest&gt; steps</h2>\n  <p>One &amp; only.</p>' in page
