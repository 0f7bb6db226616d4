"""The content security policy of every page allows what the page does, and blocks what is inserted."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from profiles import make_profile

from spillprof.frontends import read_model
from spillprof.ir.metric import Metric
from spillprof.ir.target import load_target
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.options import PlanningOptions
from spillprof.report.diff import html as diff_html
from spillprof.report.gate import history
from spillprof.report.profile import html
from spillprof.report.sweep import html as sweep_html
from spillprof.studies.diff import compare
from spillprof.studies.history import RecordedRun, RunSeries
from spillprof.studies.sweep.cases import SweepModel, make_study
from spillprof.studies.sweep.grid import Grid
from spillprof.studies.sweep.local import InProcess
from spillprof.studies.sweep.result import conclude

pytestmark = pytest.mark.browser
BLOCKS = str(Path(__file__).parents[2] / "sample_models" / "transformer_blocks.onnx")
KINDS = ("report", "sweep", "diff", "history")

WATCH = "addEventListener('securitypolicyviolation', e => { (window.refused ??= []).push(e.effectiveDirective); });"
INTRUDE = """() => {
  const script = document.createElement('script'); script.textContent = 'window.ran = 1'; document.body.append(script);
  const sheet = document.createElement('style'); sheet.textContent = 'h1 { outline: 7px solid }';
  document.head.append(sheet);
  const box = document.createElement('div'); box.innerHTML = `<p id="styled" style="width: 7px">x</p>
    <p id="clicked" onclick="window.ran = 2">x</p>
    <base href="https://example.com/"><form id="form" action="#x"></form>`;
  document.body.append(box);
  document.getElementById('clicked').click();
  document.getElementById('form').requestSubmit();
}"""


def _sweep() -> str:
    models = [SweepModel(model="blocks", graph=read_model(BLOCKS), dims={})]
    study, cases = make_study(models, load_target("generic-npu"), [{}], LoweringOptions(), PlanningOptions())
    run = Grid(cases, [("best-fit", "lru")], {})
    run.at([1 << 19, 1 << 20, 1 << 21], InProcess(study), lambda done, total: None)
    return sweep_html.render(
        conclude(study, cases, run.rows(), within=0.05, complete=True, target={}, config={}, command="spillprof sweep")
    )


def _diff() -> str:
    before = make_profile(hostile=False)
    return diff_html.render(compare(before, replace(before, results=before.results[1:]), command="spillprof diff"))


def _history() -> str:
    runs = tuple(
        RecordedRun(
            commit=f"{k}" * 40, model="m.onnx", target="t", verdict="new", config="", model_sha256="",
            figures=(k, 1000 * k, 10, 10),
        )
        for k in range(1, 6)
    )  # fmt: skip
    return history.html([RunSeries(model="m.onnx", target="t", runs=runs)], [Metric.SPILL_BYTES, Metric.LATENCY])


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """A page of each kind."""
    folder = tmp_path_factory.mktemp("policy")
    report = html.render(make_profile(hostile=False))
    texts = {"report": report, "sweep": _sweep(), "diff": _diff(), "history": _history()}
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, "utf-8")
    return {name: folder / f"{name}.html" for name in texts}


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_does_nothing_that_its_policy_refuses(kind: str, browser: Any, kinds: Mapping[str, Path]) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.add_init_script(WATCH)
    try:
        page.goto(kinds[kind].as_uri())
        if kind != "history":
            page.wait_for_selector("html[data-ready=true]", state="attached")
        page.evaluate("() => { for (const one of document.querySelectorAll('details')) one.open = true; }")
        for chart in page.query_selector_all("[data-figure]"):
            if chart.is_visible():
                chart.scroll_into_view_if_needed()
                chart.wait_for_selector(".main-svg", state="attached")
                chart.hover(position={"x": 200, "y": 60})
        if page.query_selector("#graph-box"):
            page.locator("#graph-box").scroll_into_view_if_needed()
            page.wait_for_selector("#graph-box .op", state="attached")
        for button in page.query_selector_all("button:not([data-step-close])"):
            if button.is_visible() and button.is_enabled():
                button.evaluate("one => one.click()")
        for field in page.query_selector_all("[data-filter]"):
            if field.is_visible():
                field.fill("conv")
        assert page.evaluate("window.refused ?? []") == []
        assert said == []
        if kind == "report":  # bars have the widths that they are given
            bar = ".run .spill, .stack span"
            assert page.locator(bar).count() > 0
            widths = page.eval_on_selector_all(bar, "all => all.map(one => one.getBoundingClientRect().width)")
            assert max(widths) > 2
    finally:
        page.close()


@pytest.mark.parametrize("kind", KINDS)
def test_what_got_into_a_page_neither_runs_nor_styles_nor_leads_elsewhere(
    kind: str, browser: Any, kinds: Mapping[str, Path]
) -> None:
    page = browser.new_page()
    page.add_init_script(WATCH)
    try:
        page.goto(kinds[kind].as_uri())
        page.evaluate(INTRUDE)
        assert page.evaluate("window.ran ?? null") is None
        assert page.evaluate("document.getElementById('styled').getBoundingClientRect().width") > 7
        assert page.evaluate("getComputedStyle(document.querySelector('h1')).outlineWidth") != "7px"
        assert page.evaluate("document.baseURI").startswith("file://")
        assert page.url == kinds[kind].as_uri()
        assert set(page.evaluate("window.refused")) == {
            "script-src-elem", "script-src-attr", "style-src-elem", "style-src-attr", "base-uri", "form-action",
        }  # fmt: skip
    finally:
        page.close()
