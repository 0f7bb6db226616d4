"""Every interaction with the report in sequence on one page, for each sample model."""

from pathlib import Path
from typing import Any

import pytest
from browsing import SAMPLES, VIEW, Opened

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("name", SAMPLES)
def test_a_reader_uses_every_part_of_the_page(opening: Any, pages: dict[str, Path], name: str) -> None:
    opened = opening(pages[name])
    page = opened.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened.draw_everything()
    _first_screen(page)
    _zooms_by_dragging(page)
    _reads_charts_as_tables(opened)
    _points_at_a_spill(page)
    _opens_a_step(page)
    _sorts_filters_and_copies(page)
    _walks_the_graph(page)
    _changes_strategy_and_theme(page)


def _first_screen(page: Any) -> None:
    assert page.inner_text("h1")
    assert "spill" in page.inner_text(".verdict").lower()
    page.click("[data-copy=command]")
    assert page.evaluate("navigator.clipboard.readText()") == "spillprof analyze"
    assert page.locator(".cards li").count() >= 7
    bars = page.locator(".run")
    assert bars.count() == 3  # the ideal and two strategies
    for link in page.locator("nav a").all():
        link.click()
        assert page.evaluate("document.activeElement.tagName") in ("H2", "H3")
    assert page.locator("#sizes").is_visible()
    assert "under" in page.inner_text("section[aria-labelledby=sizes] li >> nth=0")


def _zooms_by_dragging(page: Any) -> None:
    chart = page.locator(f"{VIEW} .plot-memory")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.3 * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.45 * box["width"], middle, steps=4)
    page.mouse.move(box["x"] + 0.6 * box["width"], middle, steps=4)
    page.mouse.up()
    page.wait_for_function("() => location.hash.includes('steps=')")
    low, high = (int(text) for text in page.evaluate("location.hash.match(/steps=(\\d+)-(\\d+)/).slice(1)"))
    assert 0 < low < high < page.evaluate("page.data.n_steps")
    ranges = (
        f"([a, b]) => Array.from(document.querySelectorAll('{VIEW} .js-plotly-plot'), n => n.layout.xaxis.range)"
        ".every(([x, y]) => Math.abs(x - a) < 1e-6 && Math.abs(y - b) < 1e-6)"
    )
    page.wait_for_function(ranges, arg=[low, high])
    page.mouse.dblclick(box["x"] + 0.5 * box["width"], middle)
    page.wait_for_function("() => !location.hash.includes('steps=')")
    page.wait_for_function(ranges, arg=[0, page.evaluate("page.data.n_steps")])


def _reads_charts_as_tables(opened: Opened) -> None:
    page = opened.page
    for figure in page.locator("figure").all():
        if not figure.is_visible():
            continue
        assert len(figure.locator("figcaption p").inner_text()) > 10
        plot = figure.locator("[data-figure]")
        if plot.count():
            assert plot.get_attribute("role") == "img"
            assert figure.locator("figcaption p").inner_text() in plot.get_attribute("aria-label")
        summary = figure.locator("summary")
        if summary.count():
            summary.click()
            assert figure.locator("table tbody tr").count() >= 1
            summary.click()


def _points_at_a_spill(page: Any) -> None:
    """An arc says what lies between eviction and reload: steps, idle and waiting time, cause."""
    texts = page.evaluate(
        "Object.entries(page.data.figures).filter(([key]) => key === `${page.view}/arcs`)"
        ".flatMap(([, figure]) => figure.data.flatMap(trace => trace.text || []))"
    )
    assert texts
    assert all("between" in text and "idle" in text and "waited" in text for text in texts)
    chart = page.locator(f"{VIEW} .plot-arcs")
    chart.scroll_into_view_if_needed()
    marker = chart.locator(".scatterlayer .points path").first
    spot = marker.bounding_box()
    page.mouse.move(spot["x"] + spot["width"] / 2, spot["y"] + spot["height"] / 2)
    page.wait_for_function(
        f"() => document.querySelector('{VIEW} .plot-arcs .hoverlayer').textContent.includes('idle')"
    )


def _opens_a_step(page: Any) -> None:
    for chart in ("memory", "spills", "arcs", "addresses", "bus", "waits"):
        node = page.locator(f"{VIEW} .plot-{chart}")
        if not node.count():
            continue
        node.scroll_into_view_if_needed()
        node.click(position={"x": node.bounding_box()["width"] * 0.5, "y": 90})
        assert page.is_visible("#step"), chart
        assert page.inner_text("[data-step-title]").startswith("Step ")
        assert page.locator("[data-step-facts] li").count() >= 1
        assert "buffer" in page.inner_text("[data-step-held]")
        page.keyboard.press("Escape")
        assert page.is_hidden("#step")
    page.locator(f"{VIEW} [data-step-open]").click()
    before = page.inner_text("[data-step-title]")
    page.click("[data-step-by='1']")
    assert page.inner_text("[data-step-title]") != before
    page.click("[data-step-close]")


def _sorts_filters_and_copies(page: Any) -> None:
    for kind in ("operators", "buffers"):
        table = page.locator(f"{VIEW} [data-table$={kind}]")
        rows = table.locator("tbody tr")
        everything = rows.count()
        for k in range(table.locator("thead th").count()):
            header = table.locator("thead th").nth(k)
            header.locator("button").click()
            first = header.get_attribute("aria-sort")
            header.locator("button").click()
            assert {first, header.get_attribute("aria-sort")} == {"ascending", "descending"}
            assert rows.count() == everything
        word = rows.first.locator("td.text").first.inner_text()
        table.locator("[data-filter]").fill(word)
        shown = rows.all_inner_texts()
        assert 1 <= len(shown) <= everything
        assert all(word.lower() in text.lower() for text in shown)
        table.locator("[data-csv]").click()
        lines = page.evaluate("navigator.clipboard.readText()").splitlines()
        assert len(lines) == len(shown) + 1
        table.locator("[data-filter]").fill("")
        assert rows.count() == everything
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.hasAttribute('data-filter')")


def _walks_the_graph(page: Any) -> None:
    box = page.locator("#graph-box")
    box.scroll_into_view_if_needed()
    page.wait_for_selector("#graph-box .op")
    place = "document.querySelector('#graph-box svg > g').getAttribute('transform')"
    page.click("[data-graph-zoom=fit]")
    before = page.evaluate(place)
    frame = box.bounding_box()
    page.mouse.move(frame["x"] + 12, frame["y"] + frame["height"] - 12)
    page.mouse.down()
    page.mouse.move(frame["x"] + 60, frame["y"] + frame["height"] - 60, steps=3)
    page.mouse.up()
    moved = page.evaluate(place)
    assert moved != before
    page.mouse.move(frame["x"] + 100, frame["y"] + 100)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -120)
    page.keyboard.up("Control")
    page.wait_for_function(f"before => {place} !== before", arg=moved)
    page.click("[data-graph-zoom=fit]")
    op = box.locator(".op").first
    step = op.get_attribute("data-node")  # a large graph is drawn anew around it
    op.click()
    assert f"Step {step} of" in page.inner_text("[data-step-title]")
    page.keyboard.press("Escape")


def _changes_strategy_and_theme(page: Any) -> None:
    for button in page.locator("[data-strategy]").all():
        button.click()
        assert button.get_attribute("aria-pressed") == "true"
        assert f"under {button.inner_text()}" in page.inner_text(f"{VIEW} h2 >> nth=0")
    ground = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(ground)
    page.click("#theme")
    assert page.evaluate(ground) != before
