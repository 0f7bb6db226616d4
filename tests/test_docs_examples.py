"""Commands on the pages print what the pages show."""

import re
import runpy
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = runpy.run_path(str(ROOT / "docs" / "make_examples.py"))


def _text(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


@cache
def _blocks(page: str) -> str:
    """Everything between fences, blanks as one."""
    return " ".join(" ".join(re.findall(r"^```\w+\n(.*?)^```$", _text(page), re.MULTILINE | re.DOTALL)).split())


@pytest.mark.slow
@pytest.mark.parametrize("page", EXAMPLES["PAGES"])
def test_pages_show_what_the_commands_print(page: str) -> None:
    assert EXAMPLES["renewed"](_text(page)) == _text(page), f"run: python docs/make_examples.py {page}"


@pytest.mark.parametrize("page", EXAMPLES["PAGES"])
def test_figures_in_bold_stand_in_an_output_of_the_page(page: str) -> None:
    prose = re.sub(r"^```\w+\n.*?^```$", "", _text(page), flags=re.MULTILINE | re.DOTALL)
    bold = [" ".join(text.split()) for text in re.findall(r"\*\*(.+?)\*\*", prose, re.DOTALL)]
    figures = [text for text in bold if any(c.isdigit() for c in text)]
    assert len(figures) >= 5
    assert [figure for figure in figures if figure not in _blocks(page)] == []


def test_pictures_are_light_and_shown() -> None:
    shown = {
        (page.parent / link).resolve()
        for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
        for link in re.findall(r"!\[[^]]+\]\(([^)]+)\)", page.read_text("utf-8"))
    }
    pictures = {path.resolve() for kind in ("*.png", "*.svg") for path in (ROOT / "docs").rglob(kind)}
    assert pictures == shown
    assert [path.name for path in pictures if path.stat().st_size > 250_000] == []


def test_a_block_is_renewed_with_the_paragraphs_asked_for() -> None:
    page = (
        "<!-- folder: sample_models/unet.onnx -->\n"
        "<!-- save: say.py -->\n```python\nprint('a', 'b', 'c', 'd', 'e', sep='\\n\\n')\n```\n"
        "<!-- show: 2 4 -->\n```console\n$ python say.py\nold\n```\n"
        "<!-- exit: 2 -->\n```console\n$ spillprof inspect absent.onnx\nold\n```\n"
        "```text\n$ make tea\nleft alone\n```\n"
    )
    new = EXAMPLES["renewed"](page)
    assert "$ python say.py\n  ...\n\nb\n\n  ...\n\nd\n\n  ...\n```" in new
    assert "$ spillprof inspect absent.onnx\n```" in new
    assert new.endswith("```text\n$ make tea\nleft alone\n```\n")


def test_a_command_that_ends_otherwise_is_no_example() -> None:
    with pytest.raises(AssertionError, match="ended with 2"):
        EXAMPLES["renewed"]("```console\n$ spillprof inspect absent.onnx\n```\n")
