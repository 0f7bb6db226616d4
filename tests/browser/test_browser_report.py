"""The HTML report in headless Chromium: no error, no request, names inert, tables and charts work."""

from dataclasses import replace
from pathlib import Path

import pytest
from browsing import Opened
from profiles import HOSTILE_NAMES, make_profile

from spillprof.report.profile.html import render

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    """A report whose lead strategy has hostile names in its tables and charts, and more than 100 operators."""
    profile = make_profile(1500)
    results = []
    for result in profile.results:
        operators = [replace(o, name=HOSTILE_NAMES[i % 10], victims=HOSTILE_NAMES[:2]) if i < 10 else o
                     for i, o in enumerate(result.operators)]  # fmt: skip
        renamed = dict(
            zip(("skip_0", "skip_1", "skip_2", "skip_3"), (HOSTILE_NAMES[i] for i in (0, 4, 7, 9)), strict=True)
        )
        results.append(replace(
            result, operators=tuple(operators),
            arcs=tuple(replace(a, buffer=renamed.get(a.buffer, a.buffer)) for a in result.arcs),
            residencies=tuple(replace(r, buffer=renamed.get(r.buffer, r.buffer)) for r in result.residencies),
            buffers=tuple(replace(b, name=renamed.get(b.name, b.name)) for b in result.buffers),
        ))  # fmt: skip
    peak = tuple(replace(b, name=HOSTILE_NAMES[i]) for i, b in enumerate(profile.peak_buffers))
    model = replace(profile.model, name=HOSTILE_NAMES[0], notes=HOSTILE_NAMES)
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render(replace(profile, results=tuple(results), peak_buffers=peak, model=model)), "utf-8")
    return path


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_opens_without_error_or_request_and_fits_the_window(browser, report, width, scheme):
    opened = Opened(browser, report, width=width, scheme=scheme)
    opened.draw_everything()
    page = opened.page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") is (scheme == "light")
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != ground
    opened.check_and_close()


def test_hostile_names_stay_text_in_tables_charts_and_tooltips(browser, report):
    opened = Opened(browser, report)
    page = opened.page
    page.wait_for_function("() => window.Plotly")
    scripts = page.evaluate("document.scripts.length")
    for button in page.query_selector_all("[data-strategy]")[:2]:  # the names are the same under all
        button.click()
        opened.draw_everything()
        for node in page.query_selector_all(".js-plotly-plot"):
            if node.is_visible():
                node.scroll_into_view_if_needed()
                for share in (0.3, 0.5, 0.7):
                    node.hover(position={"x": node.bounding_box()["width"] * share, "y": 100})
    page.fill("[data-view]:not([hidden]) [data-table$=operators] [data-filter]", "onerror")
    assert page.locator("[data-view]:not([hidden]) [data-table$=operators] tbody tr").count() >= 1
    assert page.evaluate("document.scripts.length") == scripts
    assert page.locator("img, iframe, b, [onerror], [onclick]").count() == 0
    assert HOSTILE_NAMES[0] in page.inner_text("h1")
    opened.check_and_close()


def test_operators_sort_filter_and_page(browser, report):
    opened = Opened(browser, report)
    page = opened.page
    table = page.locator("[data-view]:not([hidden]) [data-table$=operators]")
    status, rows = table.locator("[data-status]"), table.locator("tbody tr")
    total = int(status.inner_text().rsplit(" ", 1)[1])
    assert total > 100
    assert rows.count() == 100
    table.locator("thead th", has_text="step").locator("button").click()
    steps = [int(text.replace(",", "")) for text in table.locator("tbody td:first-child").all_inner_texts()]
    assert steps == sorted(steps)
    assert table.locator("th[aria-sort=ascending]").count() == 1
    table.locator("thead th", has_text="step").locator("button").click()
    steps = [int(text.replace(",", "")) for text in table.locator("tbody td:first-child").all_inner_texts()]
    assert steps == sorted(steps, reverse=True)
    table.locator("[data-page='1']").click()
    assert status.inner_text().startswith("101 to ")
    table.locator("[data-filter]").fill("fragmentation")
    assert 0 < rows.count() < total
    assert all("fragmentation" in text for text in rows.all_inner_texts())
    table.locator("[data-filter]").fill("no such operator")
    assert rows.count() == 0
    assert "nothing matches" in status.inner_text()
    opened.check_and_close()


def test_state_lives_in_the_address(browser, report):
    opened = Opened(browser, report)
    page = opened.page
    page.click("[data-strategy]:has-text('lru')")
    page.locator("[data-view]:not([hidden]) [data-table$=operators] [data-filter]").fill("stage2")
    fragment = page.evaluate("location.hash")
    opened.check_and_close()
    again = Opened(browser, report, fragment=fragment)
    view = again.page.locator("[data-view]:not([hidden])")
    assert "under lru" in view.locator("h2").first.inner_text()
    assert view.locator("[data-table$=operators] [data-filter]").input_value() == "stage2"
    assert all("stage2" in text for text in view.locator("[data-table$=operators] tbody tr").all_inner_texts())
    again.check_and_close()


def test_charts_share_one_zoom(browser, report):
    opened = Opened(browser, report, fragment="#steps=100-200")
    opened.draw_everything()
    visible = "[data-view]:not([hidden])"
    ranges = (
        f"Array.from(document.querySelectorAll('{visible} .js-plotly-plot'), "
        "node => node.layout.xaxis.range.map(Math.round))"
    )
    opened.page.wait_for_function(f"() => JSON.stringify({ranges}) === JSON.stringify(Array(5).fill([100, 200]))")
    opened.page.evaluate(
        f"Plotly.relayout(document.querySelector('{visible} .plot-memory'), "
        "{'xaxis.range[0]': 10, 'xaxis.range[1]': 50}).then(() => 0)"
    )
    opened.page.wait_for_function(f"() => JSON.stringify({ranges}) === JSON.stringify(Array(5).fill([10, 50]))")
    assert opened.page.evaluate("location.hash") == "#steps=10-50"
    opened.page.click("[data-view]:not([hidden]) [data-reset]")
    opened.page.wait_for_function(f"() => JSON.stringify({ranges}) === JSON.stringify(Array(5).fill([0, 1500]))")
    opened.check_and_close()


def test_without_javascript_the_lead_strategy_can_be_read(browser, report):
    context = browser.new_context(java_script_enabled=False, viewport={"width": 1000, "height": 800})
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.locator(".view:visible").count() == 1
    assert page.locator(".view:visible [data-table$=operators] tbody tr").count() == 100
    assert not page.is_visible("#theme")
    context.close()


@pytest.mark.slow
def test_ten_thousand_operators_fit_a_file_that_a_browser_can_use(browser, tmp_path):
    """From navigation to a filtered table and all charts drawn."""
    path = tmp_path / "large.html"
    path.write_text(render(make_profile(10_000)), "utf-8")
    assert path.stat().st_size < 6 * 2**20
    opened = Opened(browser, path)
    opened.page.locator("[data-view]:not([hidden]) [data-table$=operators] [data-filter]").fill("stage1")
    opened.draw_everything()
    opened.check_and_close()


@pytest.mark.slow
def test_a_hundred_thousand_operators_open_and_say_what_is_left_out(browser, tmp_path):
    profile = make_profile(100_000)
    path = tmp_path / "larger.html"
    path.write_text(render(replace(profile, results=profile.results[:1])), "utf-8")
    assert path.stat().st_size < 8 * 2**20
    opened = Opened(browser, path, fragment="#step=77777&x=time")
    opened.draw_everything()
    assert "this page leaves something out" in opened.page.inner_text("footer")
    assert opened.page.inner_text("[data-step-title]") == "Step 77,777 of 100,000"
    assert opened.page.locator("#graph-box").count() == 0
    opened.check_and_close()
