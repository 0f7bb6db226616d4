"""A comparison as text and Markdown: every figure, every name escaped."""

import re
from dataclasses import replace

import pytest
from profiles import HOSTILE_NAMES, make_profile, without_spills

from spillprof.ir.profile import Profile
from spillprof.report.diff import html as diff_html
from spillprof.report.diff import text as diff_text
from spillprof.report.diff.wording import diff_verdict
from spillprof.studies.diff import ProfileDiff, compare


def hostile(profile: Profile) -> Profile:
    """Names from the model everywhere else too."""
    model = replace(profile.model, path=HOSTILE_NAMES[1], name=HOSTILE_NAMES[0])
    return replace(
        profile,
        model=model,
        target=replace(profile.target, name=HOSTILE_NAMES[2]),
        config={**profile.config, HOSTILE_NAMES[4]: HOSTILE_NAMES[3], "pin": [HOSTILE_NAMES[6]]},
        command=HOSTILE_NAMES[7],
    )


@pytest.fixture(scope="module")
def comparison() -> ProfileDiff:
    """What spilled under one policy against another, with names that attack."""
    before = make_profile(90)
    before = replace(before, results=tuple(r for r in before.results if r.strategy in ("lru", "interval")))
    swapped = {"lru": "interval", "interval": "lru"}
    after = replace(
        before, results=tuple(replace(r, strategy=swapped.get(r.strategy, r.strategy)) for r in before.results)
    )
    return compare(before, hostile(after))


@pytest.mark.parametrize("width", [80, 100, 140])
def test_the_page_keeps_to_its_width_and_to_printable_text(comparison: ProfileDiff, width: int) -> None:
    page = diff_text.render(comparison, width=width)
    assert max(map(len, page.splitlines())) <= width
    assert all(line.isprintable() for line in page.splitlines())


def test_operators_are_cut_off_and_the_page_says_so(comparison: ProfileDiff) -> None:
    page = diff_text.render(comparison, top=3)
    hidden = len(comparison.strategies[0].operators) - 3
    assert hidden > 0
    assert f"... {hidden} more (--top {hidden + 3})" in page


def test_markdown_lets_no_name_out_of_its_cell(comparison: ProfileDiff) -> None:
    text = diff_text.render_markdown(comparison)
    assert all(line.isprintable() for line in text.splitlines())
    assert "<img" not in re.sub(r"`[^`]*`", "", text)
    rows = [line for line in text.splitlines() if line.startswith("| #")]
    assert rows
    assert {len(re.findall(r"(?<!\\)\|", re.sub(r"`[^`]*`", "", row))) for row in rows} == {6}


def test_the_verdict_of_spills_that_vanish() -> None:
    profile = make_profile(60, hostile=False)
    text = diff_verdict(compare(profile, without_spills(profile)))
    assert text.startswith("Better under ")
    assert "→ 0, −" in text
    assert "sram_bytes 32 MiB" in text


def test_the_verdict_of_two_equal_runs() -> None:
    profile = make_profile(60, hostile=False)
    assert diff_verdict(compare(profile, profile)).endswith("Model and settings are the same.")


def test_the_verdict_where_nothing_can_run() -> None:
    profile = make_profile(60, hostile=False)
    none = replace(profile, results=tuple(replace(r, feasible=False, reason="too small") for r in profile.results))
    assert "can no longer be planned" in diff_verdict(compare(profile, none))
    assert diff_verdict(compare(none, none)).startswith("Neither run can be planned")
    assert "it can be planned now" in diff_verdict(compare(none, profile))
    for pair in ((profile, none), (none, none), (none, profile), (profile, replace(profile, results=()))):
        comparison = compare(*pair)
        assert diff_text.render(comparison)
        assert diff_text.render_markdown(comparison)
        assert diff_html.render(comparison)


def test_the_page_escapes_every_name(comparison: ProfileDiff) -> None:
    page = diff_html.render(comparison)
    body = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert "<img" not in body
    assert "onerror=alert(1)>" not in body
    assert "\x1b" not in page
    assert page == diff_html.render(comparison)


def test_a_large_comparison_is_a_small_page() -> None:
    before = make_profile(10_000)
    after = replace(before, results=tuple(without_spills(before).results))
    assert len(diff_html.render(compare(before, after)).encode("utf-8", "backslashreplace")) < 1_500_000
