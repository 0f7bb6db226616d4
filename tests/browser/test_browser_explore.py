"""Interactions with the report of a real model: time axis, one step, graph, print, accessibility."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browsing import SAMPLES, VIEW, barriers
from profiles import HOSTILE_NAMES, make_profile

from spillprof.report.profile.html import render

pytestmark = pytest.mark.browser


def _wait_for_ranges(page: Any, low: float, high: float) -> None:
    """Until all six charts of the shown strategy have these x ranges: those out of view follow when there is time."""
    page.wait_for_function(
        "([view, low, high]) => { const found = Array.from(document.querySelectorAll(`${view} .js-plotly-plot`),"
        " node => node.layout.xaxis.range); const near = (a, b) => Math.abs(a - b) <= 1e-6 * Math.max(1, Math.abs(b));"
        " return found.length === 6 && found.every(([a, b]) => near(a, low) && near(b, high)); }",
        arg=[VIEW, low, high],
    )


def _seconds(page: Any, step: float) -> float:
    """When a step starts under the shown strategy, in the unit of the axis."""
    found: float = page.evaluate("step => charts.clocks[page.view].time(step) / page.data.time_unit.factor", step)
    return found


@pytest.mark.parametrize("name", ["transformer_blocks", "three_branch"])
def test_charts_count_steps_or_time(opening: Any, pages: dict[str, Path], name: str) -> None:
    opened = opening(pages[name])
    opened.draw_everything()
    page = opened.page
    steps = page.evaluate("page.data.n_steps")
    _wait_for_ranges(page, 0, steps)
    page.click(f"{VIEW} [data-axis=time]")
    assert page.evaluate("location.hash") == "#x=time"
    _wait_for_ranges(page, 0, _seconds(page, steps))
    assert page.evaluate(f"document.querySelector('{VIEW} .plot-bus').layout.xaxis.title.text").startswith("time, ")
    page.click(f"{VIEW} [data-axis=step]")
    _wait_for_ranges(page, 0, steps)
    assert page.evaluate("location.hash") == ""


def test_zoom_in_time_keeps_the_same_steps_on_the_other_axis(opening: Any, pages: dict[str, Path]) -> None:
    opened = opening(pages["unet"], fragment="#steps=4-10&x=time")
    opened.draw_everything()
    _wait_for_ranges(opened.page, _seconds(opened.page, 4), _seconds(opened.page, 10))
    opened.page.click(f"{VIEW} [data-axis=step]")
    _wait_for_ranges(opened.page, 4, 10)


def test_buttons_zoom_and_move_all_charts_by_keyboard(opening: Any, pages: dict[str, Path]) -> None:
    opened = opening(pages["unet"])
    opened.draw_everything()
    page = opened.page
    for button, low, high in (
        ("[data-zoom='0.5']", 6, 18), ("[data-pan='0.5']", 12, 24), ("[data-pan='0.5']", 12, 24),
        ("[data-zoom='0.5']", 15, 21), ("[data-pan='-0.5']", 12, 18), ("[data-zoom='2']", 9, 21),
        ("[data-zoom='2']", 0, 24),
    ):  # fmt: skip
        page.focus(f"{VIEW} {button}")
        page.keyboard.press("Enter")
        _wait_for_ranges(page, low, high)
    assert "steps=" not in page.evaluate("location.hash")
    page.evaluate("page.tell('pick', 20)")
    page.click(f"{VIEW} [data-zoom='0.5']")
    _wait_for_ranges(page, 12, 24)  # the step that is marked stays in it


def test_clock_turns_steps_into_seconds_and_back(opening: Any, pages: dict[str, Path]) -> None:
    page = opening(pages["unet"]).page
    for step in (0, 3.25, 11, 23.5, 24):
        back = page.evaluate(f"charts.clocks[0].step(charts.clocks[0].time({step}))")
        assert back == pytest.approx(step, abs=1e-3)
    first_s = page.evaluate("charts.clocks[0].time(0)")
    assert first_s == pytest.approx(page.evaluate("page.data.views[0].waits.find(wait => wait[0] === 0)[1]"), rel=1e-5)


def test_click_in_a_chart_opens_its_step(opening: Any, pages: dict[str, Path]) -> None:
    opened = opening(pages["transformer_blocks"])
    opened.draw_everything()
    page = opened.page
    chart = page.locator(f"{VIEW} .plot-memory")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    share = 15.5 / 89
    chart.click(position={"x": 52 + share * (box["width"] - 64), "y": 120})
    assert page.inner_text("[data-step-title]") == "Step 15 of 89"
    assert "gelu_scaled" in page.inner_text("[data-step-name]")
    assert page.locator("[data-step-here] li").count() >= 2
    assert "step=15" in page.evaluate("location.hash")
    page.wait_for_function(f"() => document.querySelector('{VIEW} .plot-memory').layout.shapes.length === 1")


def test_step_is_reached_and_left_by_keyboard(opening: Any, pages: dict[str, Path]) -> None:
    page = opening(pages["transformer_blocks"]).page
    button = page.locator(f"{VIEW} [data-step-open]")
    button.focus()
    page.keyboard.press("Enter")
    assert page.is_visible("#step")
    first = page.inner_text("[data-step-title]")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("[data-step-title]") != first
    page.keyboard.press("Home")
    assert page.inner_text("[data-step-title]") == "Step 0 of 89"
    page.keyboard.press("Escape")
    assert page.is_hidden("#step")
    assert page.evaluate("document.activeElement.hasAttribute('data-step-open')")
    assert page.evaluate("location.hash") == ""


def test_row_of_an_operator_opens_its_step_with_victims_and_cause(opening: Any, pages: dict[str, Path]) -> None:
    page = opening(pages["transformer_blocks"]).page
    link = page.locator(f"{VIEW} [data-table$=operators] tbody button.step-link").first
    step = int(link.inner_text())
    link.focus()
    page.keyboard.press("Enter")
    assert page.inner_text("[data-step-title]") == f"Step {step} of 89"
    facts = page.inner_text("[data-step-facts]")
    assert "Sent away before it" in facts
    assert "cause: " in facts
    assert page.locator("[data-step-away] li").count() >= 1


def test_address_brings_back_strategy_step_zoom_and_axis(opening: Any, pages: dict[str, Path]) -> None:
    opened = opening(pages["transformer_blocks"], fragment="#strategy=interval&step=16&steps=10-30&x=time")
    opened.draw_everything()
    page = opened.page
    assert "under interval" in page.inner_text(f"{VIEW} h2")
    assert page.inner_text("[data-step-title]") == "Step 16 of 89"
    assert page.get_attribute(f"{VIEW} [data-axis=time]", "aria-pressed") == "true"
    _wait_for_ranges(page, _seconds(page, 10), _seconds(page, 30))


def test_small_graph_is_whole_and_spilled_edges_carry_bytes_and_a_dash(opening: Any, pages: dict[str, Path]) -> None:
    page = opening(pages["unet"]).page
    page.locator("#graph-box").scroll_into_view_if_needed()
    page.wait_for_selector("#graph-box .op")
    assert page.locator("#graph-box .op").count() == 24
    spilled = page.locator("#graph-box .edge.spilled")
    assert spilled.count() > 0
    assert spilled.count() == page.locator("#graph-box .edge-label").count()
    assert "All 24 steps" in page.inner_text("[data-graph-status]")
    dashes = page.evaluate(
        "Array.from(document.querySelectorAll('ul.legend path'), path => getComputedStyle(path).strokeDasharray)"
    )
    assert len(set(dashes)) == len(dashes) == 4


def test_graph_moves_zooms_and_opens_steps(opening: Any, pages: dict[str, Path]) -> None:
    page = opening(pages["transformer_blocks"]).page
    page.locator("#graph-box").scroll_into_view_if_needed()
    page.wait_for_selector("#graph-box .op")
    assert page.locator("#graph-box .op").count() == 32
    place = "document.querySelector('#graph-box svg > g').getAttribute('transform')"
    before = page.evaluate(place)
    page.click("[data-graph-zoom='1.25']")
    larger = page.evaluate(place)
    assert larger != before
    page.focus("#graph-box")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(place) != larger
    page.click("[data-graph-zoom=fit]")
    page.locator("#graph-box .op").nth(3).focus()
    page.keyboard.press("Enter")
    assert page.is_visible("#step")
    chosen = page.locator("#graph-box .op[aria-pressed=true]")
    assert f"Step {chosen.get_attribute('data-node')} " in page.inner_text("[data-step-title]")


def test_hostile_names_stay_text_in_panel_and_graph(opening: Any, tmp_path: Path) -> None:
    profile = make_profile(40)
    buffers = tuple(replace(b, name=HOSTILE_NAMES[i] if i < 10 else b.name) for i, b in enumerate(profile.buffers))
    path = tmp_path / "hostile.html"
    path.write_text(render(replace(profile, buffers=buffers)), "utf-8")
    opened = opening(path, fragment="#step=5")
    opened.draw_everything()
    page = opened.page
    scripts = page.evaluate("document.scripts.length")
    page.locator("#graph-box").scroll_into_view_if_needed()
    page.wait_for_selector("#graph-box .op")
    for _ in range(12):
        page.locator("[data-step-by='1']").click()
    assert page.locator("#graph-box .op").count() == 40
    assert page.locator("img, iframe, b, [onerror], [onclick]").count() == 0
    assert page.evaluate("document.scripts.length") == scripts


@pytest.mark.parametrize(("name", "scheme"), [*((name, "light") for name in SAMPLES), ("transformer_blocks", "dark")])
def test_no_serious_barrier_for_assistive_technology(
    opening: Any, pages: dict[str, Path], name: str, scheme: str
) -> None:
    opened = opening(pages[name], scheme=scheme, fragment="#step=3")
    opened.draw_everything()
    page = opened.page
    page.locator("#graph-box").scroll_into_view_if_needed()
    page.wait_for_selector("#graph-box .op")
    assert barriers(page) == []


def test_report_prints_to_pdf_with_its_charts(opening: Any, pages: dict[str, Path], tmp_path: Path) -> None:
    page = opening(pages["three_branch"]).page
    page.wait_for_function("() => window.Plotly")
    pdf = page.pdf(path=str(tmp_path / "report.pdf"))
    assert pdf.startswith(b"%PDF")
    assert len(pdf) > 50_000
    assert page.locator(f"{VIEW} .js-plotly-plot").count() == 6


@pytest.mark.parametrize("width", [390, 1280])
def test_open_panel_fits_the_window(opening: Any, pages: dict[str, Path], width: int) -> None:
    page = opening(pages["unet"], width=width, fragment="#step=7").page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.querySelector('#step').scrollWidth") <= width
