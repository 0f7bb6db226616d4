"""Files, folders and links that the documentation names exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", "CONTRIBUTING.md", *(str(p.relative_to(ROOT)) for p in sorted((ROOT / "docs").rglob("*.md")))]
PATH = re.compile(r"(?:[\w-]+/)+[\w.-]*\w")
FOLDERS = (ROOT, ROOT / "spillprof")
TOPS = {path.name for folder in FOLDERS for path in folder.iterdir() if path.is_dir()}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_names_files_that_exist(page: str) -> None:
    text = re.sub(r"^ *```.*?^ *```$", "", (ROOT / page).read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    words = {word for code in re.findall(r"`([^`]+)`", text) for word in code.split() if PATH.fullmatch(word)}
    named = {word for word in words if word.split("/")[0] in TOPS}
    assert [path for path in sorted(named) if not any((f / path).exists() for f in FOLDERS)] == []


@pytest.mark.parametrize("page", PAGES)
def test_links_of_a_page_lead_somewhere(page: str) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", (ROOT / page).read_text("utf-8"))
    assert [link for link in links if not ((ROOT / page).parent / link).exists()] == []
