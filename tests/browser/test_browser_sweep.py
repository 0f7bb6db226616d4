"""The page of a sweep in headless Chromium: no error, no request, names inert, charts drawn."""

from pathlib import Path
from typing import Any

import pytest
from profiles import HOSTILE_NAMES

from spillprof.frontends import read_model
from spillprof.ir.target import load_target
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.options import PlanningOptions
from spillprof.report.sweep.html import render
from spillprof.studies.sweep.cases import SweepModel, make_study
from spillprof.studies.sweep.grid import Grid
from spillprof.studies.sweep.local import InProcess
from spillprof.studies.sweep.result import conclude

pytestmark = pytest.mark.browser
BLOCKS = str(Path(__file__).parents[2] / "sample_models" / "transformer_blocks.onnx")


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of one model under hostile names, and of one that cannot be read."""
    graph = read_model(BLOCKS)
    sources = [SweepModel(model=name, graph=graph, dims={name: 1}) for name in HOSTILE_NAMES[:3]]
    sources.append(SweepModel(model=HOSTILE_NAMES[3], graph=None, dims={}, error=HOSTILE_NAMES[4]))
    target = load_target("generic-npu")
    study, cases = make_study(sources, target, [{}], LoweringOptions(), PlanningOptions())
    run = Grid(cases, [("best-fit", "lru"), ("first-fit", "interval")], {})
    run.at([1 << 19, 1 << 20, 1200 << 10, 1 << 21], InProcess(study), lambda done, total: None)
    sweep = conclude(
        study, cases, run.rows(), within=0.05, complete=False, target={"name": HOSTILE_NAMES[0]}, config={},
        command=HOSTILE_NAMES[0],
    )  # fmt: skip
    path = tmp_path_factory.mktemp("sweep") / "sweep.html"
    path.write_text(render(sweep), "utf-8", errors="backslashreplace")
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_asks_for_nothing_and_runs_no_name(opening: Any, page_file: Path, scheme: str) -> None:
    page = opening(page_file, scheme=scheme).page
    for figure in page.query_selector_all("[data-figure]"):
        figure.scroll_into_view_if_needed()
    page.wait_for_function("() => document.querySelectorAll('.js-plotly-plot').length === 9")
    assert page.query_selector("main img, main script, main b") is None


def test_all_points_are_in_a_table_that_sorts(opening: Any, page_file: Path) -> None:
    page = opening(page_file).page
    assert page.locator("#points + *").count() > 0
    assert page.locator("[data-table='all/points'] tbody tr").count() == 32
    page.get_by_role("button", name="latency", exact=True).click()
    assert page.locator("[data-table='all/points'] th[aria-sort]").count() == 1
