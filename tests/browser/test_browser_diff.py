"""The page of a comparison in headless Chromium: no error, no request, inert names, tables that sort and filter."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browsing import Opened, barriers
from profiles import HOSTILE_NAMES, make_profile

from spillprof.ir.profile import Profile
from spillprof.ir.profile_facts import BufferFact, StepFact
from spillprof.report.diff.html import render
from spillprof.studies.diff import compare

pytestmark = pytest.mark.browser
STEPS = 400


def with_buffers(profile: Profile) -> Profile:
    """Each step writes a map that the next one reads; the skips are read now and then."""
    n = len(profile.steps)
    maps = [
        BufferFact(name=f"map_{k}", kind="activation", size_bytes=1 << 20, written_by=k, read_by=(k + 1,)[: n - k - 1])
        for k in range(n)
    ]  # fmt: skip
    skips = [
        BufferFact(name=b.name, kind="activation", size_bytes=b.size_bytes, written_by=2, read_by=b.uses)
        for b in profile.results[0].buffers
    ]
    return replace(profile, buffers=(*maps, *skips))


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs under hostile names: other policies under the same names, one operator more, one under another name."""
    before = with_buffers(make_profile(STEPS))
    swapped = {"lru": "interval", "interval": "lru"}
    results = tuple(replace(r, strategy=swapped.get(r.strategy, r.strategy)) for r in before.results)
    steps = (*before.steps[:-2], StepFact(name=HOSTILE_NAMES[9] * 2, op_type=HOSTILE_NAMES[0]), before.steps[-1])
    model = replace(before.model, path=HOSTILE_NAMES[0], name=HOSTILE_NAMES[1], sha256="1" * 64)
    after = replace(
        before, results=results, steps=steps, model=model, command=HOSTILE_NAMES[5] + HOSTILE_NAMES[7],
        config={**before.config, HOSTILE_NAMES[4]: HOSTILE_NAMES[0]},
    )  # fmt: skip
    path = tmp_path_factory.mktemp("diff") / "diff.html"
    path.write_text(render(compare(before, after, command=HOSTILE_NAMES[0])), "utf-8", errors="backslashreplace")
    return path


@pytest.fixture
def opened(opening: Any, page_file: Path) -> Opened:
    found: Opened = opening(page_file)
    return found


def test_the_page_asks_for_nothing_and_runs_no_name(opened: Opened) -> None:
    page = opened.page
    page.wait_for_timeout(200)
    assert page.query_selector("main img, main script, main b") is None
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.locator("section[aria-labelledby=live] polyline").count() == 2


def test_a_strategy_is_chosen_and_its_table_filtered(opened: Opened) -> None:
    page = opened.page
    page.get_by_role("button", name="lru", exact=True).click()
    visible = page.locator("[data-view]:not([hidden])")
    assert "under lru" in visible.locator("h2").first.inner_text()
    table = visible.locator("[data-table$='/operators']")
    everything = table.locator("tbody tr").count()
    table.locator("[data-filter]").fill("stage1")
    shown = table.locator("tbody tr").all_inner_texts()
    assert 0 < len(shown) < everything
    assert all("stage1" in text for text in shown)
    table.get_by_role("button", name="change", exact=True).click()
    assert table.locator("th[aria-sort]").count() == 1


def test_on_a_phone_nothing_is_wider_than_the_screen(opening: Any, page_file: Path) -> None:
    page = opening(page_file, width=390).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_comparison_has_no_serious_barrier(opening: Any, page_file: Path, scheme: str) -> None:
    assert barriers(opening(page_file, scheme=scheme).page) == []


def test_the_comparison_prints_with_its_figures_and_without_its_controls(opened: Opened, tmp_path: Path) -> None:
    opened.page.get_by_role("button", name="lru", exact=True).click()
    pdf = opened.page.pdf(path=str(tmp_path / "diff.pdf"))
    assert pdf.startswith(b"%PDF")
    assert len(pdf) > 20_000
    opened.page.emulate_media(media="print")
    assert opened.page.locator(".live").first.is_visible()
    assert opened.page.locator("[data-view]:not([hidden]) [data-table$='/operators'] tbody tr").first.is_visible()
    for control in ("nav", ".tools", ".chooser", "#theme"):
        assert not opened.page.locator(control).first.is_visible(), control


def test_rows_are_copied_as_they_are_filtered_and_sorted_by_change(opened: Opened) -> None:
    page = opened.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="lru", exact=True).click()
    table = page.locator("[data-view]:not([hidden]) [data-table$='/operators']")
    rows = page.evaluate("page.data.tables[`${page.view}/operators`]")
    change = [column["title"] for column in rows["columns"]].index("change")
    changes = [abs(row[change]) for row in rows["rows"]]
    assert changes == sorted(changes, reverse=True)
    table.locator("[data-filter]").fill("stage2")
    shown = table.locator("tbody tr").count()
    table.locator("[data-csv]").click()
    lines = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert len(lines) == shown + 1
    assert "change_bytes" in lines[0]
