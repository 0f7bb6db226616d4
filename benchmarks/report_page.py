"""The HTML report of long runs in headless Chromium: size of the file, seconds until it can be used, seconds of a zoom.

    python benchmarks/report_page.py [--sizes 10000,100000] [--strategies lru,interval]

The programs are those of benchmarks/scale.py, at a third of the memory that would hold them without spills. *Usable*:
from opening the file until the operators table is filtered. *Charts*: all of one strategy, drawn one after the other.
*Zoom*: from the end of the drag until every chart shows the new range, the median of five.
"""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import sync_playwright
from scale import random_graph

from spillprof.explain.analyze import analyze
from spillprof.explain.options import AnalyzeOptions
from spillprof.ir.target import load_target
from spillprof.report.profile.html import render

SRAM_BYTES = 256 << 10
VIEW = "[data-view]:not([hidden])"


def main() -> None:
    """One line for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="10000,100000")
    parser.add_argument("--strategies", default="lru,interval")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    arguments = parser.parse_args()
    strategies = tuple(arguments.strategies.split(","))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=arguments.chromium, args=["--no-sandbox", "--disable-gpu"])
        for n in map(int, arguments.sizes.split(",")):
            path = Path(folder) / f"{n}.html"
            target = load_target("generic-npu").with_overrides(sram_bytes=SRAM_BYTES)
            profile = analyze(random_graph(n), target, AnalyzeOptions(strategies=strategies))
            started = time.perf_counter()
            path.write_text(render(profile), "utf-8")
            rendered_s = time.perf_counter() - started
            mib = path.stat().st_size / (1 << 20)
            usable_s, charts_s, zoom_s, zoom_cpu_s, step_s = measured(
                browser.new_page(viewport={"width": 1280, "height": 900}), path
            )
            print(
                f"{n:>8,} operators: {mib:.2f} MiB, written in {rendered_s:.2f} s; usable {usable_s:.2f} s, "
                f"charts {charts_s:.2f} s, zoom {zoom_s:.3f} s ({zoom_cpu_s:.3f} s CPU), another step {step_s:.3f} s",
                flush=True,
            )


def measured(page: Any, path: Path) -> tuple[float, float, float, float, float]:
    """Seconds until usable, of all charts, of a zoom (by the clock, and of CPU) and of a step in the panel."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    started = time.perf_counter()
    page.goto(path.as_uri())
    page.locator(f"{VIEW} [data-table$=operators] [data-filter]").fill("1")
    usable_s = time.perf_counter() - started
    started = time.perf_counter()
    for node in page.query_selector_all(f"{VIEW} [data-figure]"):
        node.scroll_into_view_if_needed()
        node.wait_for_selector(".main-svg", state="attached")
    charts_s = time.perf_counter() - started
    n = page.evaluate("page.data.n_steps")
    zooms, busy, steps = [], [], []
    for k in range(5):
        low = n * (k + 1) // 10
        before_s = _cpu_s(session)
        zooms.append(
            page.evaluate(
                "async ([low, high]) => { const from = performance.now(); await charts.zoom([low, high]);"
                " document.body.getBoundingClientRect(); return (performance.now() - from) / 1000; }",
                [low, low + n // 20],
            )
        )
        busy.append(_cpu_s(session) - before_s)
        steps.append(
            page.evaluate(
                "step => { const from = performance.now(); page.tell('pick', step);"
                " document.body.getBoundingClientRect(); return (performance.now() - from) / 1000; }",
                low,
            )
        )
    page.close()
    return usable_s, charts_s, median(zooms), median(busy), median(steps)


def _cpu_s(session: Any) -> float:
    """CPU seconds of the page's main thread so far."""
    metrics = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
    return float(metrics["TaskDuration"])


if __name__ == "__main__":
    main()
