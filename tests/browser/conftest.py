"""A browser, and pages of sample models to open in it."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import SAMPLES, Opened

from spillprof.explain.analyze import analyze
from spillprof.explain.options import AnalyzeOptions
from spillprof.frontends import read_model
from spillprof.ir.profile import Profile
from spillprof.ir.target import load_target
from spillprof.report.profile.html import render


@pytest.fixture(scope="session")
def browser():
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _missing("playwright is not installed")
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        _missing("no chromium on this machine")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The report of each sample model."""
    folder = tmp_path_factory.mktemp("pages")
    paths = {name: folder / f"{name}.html" for name in SAMPLES}
    for name, path in paths.items():
        path.write_text(render(_analyzed(name)), "utf-8")
    return paths


@pytest.fixture
def opening(browser: Any) -> Iterator[Any]:
    """Opens pages, and checks at the end that none asked for anything or failed."""
    opened: list[Opened] = []

    def _open(path: Path, **options: Any) -> Opened:
        opened.append(Opened(browser, path, **options))
        return opened[-1]

    yield _open
    for one in opened:
        one.check_and_close()


def _missing(reason: str) -> None:
    if os.environ.get("SPILLPROF_REQUIRE_BROWSER") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def _analyzed(name: str) -> Profile:
    graph = read_model(str(Path(__file__).parents[2] / "sample_models" / f"{name}.onnx"))
    target = load_target("generic-npu").with_overrides(sram_bytes=SAMPLES[name])
    return analyze(
        graph, target, AnalyzeOptions(strategies=("lru", "interval"), what_if=True), command="spillprof analyze"
    )
