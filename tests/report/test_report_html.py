"""The HTML report as text, and its figures as data. Browser behaviour: tests/browser."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from profiles import HOSTILE_NAMES, make_profile, without_spills

from spillprof.ir.result import SpillArc
from spillprof.report.page import HTML_ROWS, MAX_ROWS, script_json, share_classes, share_rules, templates_dir, to_html
from spillprof.report.profile import step_figures as figures
from spillprof.report.profile.html import render
from spillprof.report.profile.html_sections import operators_table
from spillprof.report.profile.verdict import lead_result, verdict
from spillprof.report.text import label


@pytest.fixture(scope="module")
def profile():
    return make_profile()


@pytest.fixture(scope="module")
def page(profile):
    return render(profile)


class _Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text.append(data)


def _parse(page: str) -> _Tags:
    parser = _Tags()
    parser.feed(page)
    return parser


def test_report_is_the_same_text_every_time_and_holds_no_date(page):
    assert render(make_profile()) == page


def test_report_refers_to_no_other_file(page):
    parsed = _parse(page)
    addresses = [value for key, value in parsed.attributes if key in ("src", "href", "srcset", "action", "data")]
    assert addresses
    assert all(value.startswith(("#", "data:,")) for value in addresses)
    assert not {"iframe", "object", "embed", "img", "base", "form"} & set(parsed.tags)
    assert not [key for key, _ in parsed.attributes if key.startswith("on")]


def test_policy_names_what_the_page_carries_by_hash_and_nothing_else(page):
    (content,) = re.findall(r'http-equiv="Content-Security-Policy" content="(.*?)"', page)
    policy = dict(part.split(" ", 1) for part in content.split("; "))
    scripts = re.findall(r"<script(?! type=.application/json)[^>]*>(.*?)</script>", page, re.DOTALL)
    styles = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert len(scripts) == 4  # two of its own; plotly and dagre, which are run when they are needed
    assert len(styles) == 1
    assert policy == {
        "default-src": "'none'",
        "script-src": " ".join(_hash(scripts[k]) for k in (0, 3, 1, 2)),
        "style-src": f"{_hash(styles[0])} {_hash('')}",
        "style-src-attr": f"'unsafe-hashes' {_hash('font-weight:bold')}",
        "img-src": "data: blob:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert not [value for key, value in _parse(page).attributes if key == "style"]


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@pytest.mark.parametrize(
    ("percent", "classes"),
    [(0, "w0 t0"), (0.04, "w0 t0"), (0.06, "w0 t1"), (12.34, "w12 t3"), (99.96, "w100 t0"), (250, "w100 t0"),
     (-1, "w0 t0")],
)  # fmt: skip
def test_a_share_is_a_class_of_its_whole_and_one_of_its_tenth(percent, classes):
    assert share_classes(percent) == classes
    rules = share_rules()
    for name in classes.split():
        assert rules.count(f".{name} {{") == 1


def test_report_says_verdict_and_shows_every_strategy(page, profile):
    text = " ".join("".join(_parse(page).text).split())
    assert verdict(profile) in text
    assert "infeasible: step 41 needs 33.1 MiB at once" in text
    for result in profile.results:
        assert (f"under {result.strategy}" in text) is result.feasible
    assert "Assumed 3 times: operator Foo is elementwise" in text
    assert "spillprof analyze models/residual_cnn.onnx --sram 32MB" in text


def test_hostile_names_are_text_and_never_tags(profile):
    operators = tuple(replace(lead_result(profile).operators[0], name=name, victims=(name,)) for name in HOSTILE_NAMES)
    result = replace(lead_result(profile), operators=operators)
    evil = replace(
        profile, results=(result,), command=HOSTILE_NAMES[0], model=replace(profile.model, notes=HOSTILE_NAMES)
    )
    page = render(evil)
    parsed = _parse(page)
    assert parsed.tags.count("script") == _parse(render(profile)).tags.count("script")
    assert "img" not in parsed.tags
    text = "".join(parsed.text)
    for name in HOSTILE_NAMES:
        assert label(name, 64) in text
    assert "\x1b" not in page
    assert "\u202e" not in page
    page.encode("utf-8")


def test_script_json_cannot_end_its_script():
    text = script_json({"</script>": "<!-- & \u2028\u2029"})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {"</script>": "<!-- & \u2028\u2029"}


def test_a_run_without_spills_and_one_that_cannot_run_have_reports(profile):
    quiet = render(without_spills(profile))
    assert "Nothing spills at 48 MiB; the smallest SRAM without tiling is 26 MiB." in quiet
    infeasible = render(replace(profile, results=(profile.results[2],)))
    assert "No strategy can run this in 32 MiB of SRAM" in infeasible


def test_a_model_without_steps_has_a_report(profile):
    model = replace(profile.model, steps=0, operators=0, peak_live_bytes=0, peak_step=0)
    results = tuple(replace(r, operators=(), buffers=(), arcs=(), residencies=(), in_use_bytes=(), oscillations=(),
                            spill_bytes=0) for r in profile.results)  # fmt: skip
    empty = replace(profile, model=model, steps=(), live_bytes=(), peak_buffers=(), oversized=(), results=results)
    assert "residual_cnn" in render(empty)


def test_large_report_stays_below_six_mebibytes():
    assert len(render(make_profile(10_000)).encode("utf-8")) < 6 * 2**20


def test_first_hundred_operators_are_html_and_the_rest_is_data():
    large = make_profile(3000)
    lead = lead_result(large)
    assert len(lead.operators) > HTML_ROWS
    table = operators_table(lead)
    assert len(table.rows) == min(len(lead.operators), MAX_ROWS)
    assert table.total == len(lead.operators)


def test_thinned_curve_keeps_the_extremes_of_each_stretch():
    values = [0] * 10_000
    values[1234], values[8765] = 7, -3
    curve = figures.curve(values)
    assert len(curve.steps) <= figures.MAX_POINTS
    assert curve.total == 10_000
    assert {1234, 8765} <= set(curve.steps.tolist())
    assert list(curve.steps) == sorted(set(curve.steps.tolist()))
    short = figures.curve([3, 1, 2])
    assert short.values.tolist() == [3, 1, 2]


def test_arc_rises_to_the_buffers_size_halfway_between_eviction_and_use():
    arc = SpillArc(buffer="b", size_bytes=2 << 20, last_use_step=1, evict_step=2, needed_step=10, written=True,
                   reloaded=True, cause="capacity", idle_s=0.0, wait_s=0.0)  # fmt: skip
    x, y = figures.arc_outline([arc, arc])
    assert len(x) == 20
    assert (x[0], x[8]) == (2, 10)
    assert y[x == 6].tolist() == [2, 2]
    assert np.isnan(x[9])
    assert np.isnan(y[19])


def test_figures_have_a_few_traces_however_many_buffers_there_are():
    large = make_profile(3000)
    for figure in figures.timeline_figures(large, lead_result(large)):
        assert len(figure.traces) <= 6
        assert not [trace for trace in figure.traces if isinstance(trace.get("x"), list) and len(trace["x"]) > 50]
    assert not [f for f in figures.timeline_figures(large, lead_result(large)) if f.layout.get("shapes")]
    assert "of 3,000 steps are drawn" in figures.memory_figure(large, lead_result(large)).note


def test_memory_is_compared_with_what_is_live_and_staged_together(profile):
    tight = replace(profile, target=replace(profile.target, sram_bytes=max(profile.live_bytes) + 1))
    assert "with weight staging, exceeds the memory at " in render(tight)
    assert "with weight staging, never exceeds it by itself" in render(profile)
    assert figures.wanted_bytes(profile)[5] == profile.live_bytes[5] + profile.reserved.weight_staging_bytes


def test_bars_of_live_buffers_are_equally_thick(profile):
    widths = {trace["width"] for trace in figures.live_figure(profile).traces}
    assert len(figures.live_figure(profile).traces) == 2
    assert widths == {0.75}


def test_peak_curve_holds_the_rises_only():
    curve = figures.peak_curve([1, 3, 2, 5, 4])
    assert (curve.steps.tolist(), curve.values.tolist(), curve.total) == ([0, 1, 3], [1, 3, 5], 5)
    assert figures.peak_curve([]).total == 0


def test_templates_are_found():
    assert (templates_dir() / "report.html.jinja").is_file()


def test_markdown_of_the_method_becomes_plain_html():
    text = (
        "# A <b>\n\nOne `x<y` **two**\nthree [four](http://example.invalid).\n\n- a\n- b\n  c\n\n"
        "| p | q |\n| --- | --- |\n| 1 | `2` |\n\n```\n<x>\n```\n"
    )
    assert to_html(text, top_level=3).splitlines() == [
        "<h3>A &lt;b&gt;</h3>",
        "<p>One <code>x&lt;y</code> <strong>two</strong>",
        "three <span>four</span>.</p>",
        "<ul>",
        "<li>a</li>",
        "<li>b",
        "c</li>",
        "</ul>",
        '<div class="scroll"><table>',
        *("<thead>", "<tr>", '<th scope="col">p</th>', '<th scope="col">q</th>', "</tr>", "</thead>"),
        *("<tbody>", "<tr>", "<td>1</td>", "<td><code>2</code></td>", "</tr>", "</tbody>"),
        "</table></div>",
        "<pre><code>&lt;x&gt;",
        "</code></pre>",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "a <img src=x onerror=alert(1)> b",
        "![words](http://example.invalid/x.png)",
        "<http://example.invalid>",
        "[a](javascript:alert(1)) [b](http://example.invalid 'title')",
        "| a | b |\n| --: | :-: |\n| <b>x</b> | [y](http://example.invalid) |",
        "[r]\n\n[r]: http://example.invalid",
        "```html onload=x\n<script>\n```",
    ],
)
def test_documents_load_and_run_nothing_whatever_they_say(text: str) -> None:
    tags = _Tags()
    tags.feed(to_html(text, top_level=3))
    assert set(tags.tags) <= {"p", "span", "code", "pre", "div", "table", "thead", "tbody", "tr", "th", "td"}
    assert {name for name, _ in tags.attributes} <= {"class", "scope"}
