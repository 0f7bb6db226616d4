"""Proof methods, cut-off searches and meanings of causes: stated on every page, and true of the run."""

from dataclasses import replace

import pytest
from profiles import make_profile, without_spills

from spillprof.ir.profile import Profile, RecomputeFacts
from spillprof.ir.story import ANY_CHANGE
from spillprof.planning.bounds import methods
from spillprof.planning.optimal.search import SOLVER
from spillprof.report.profile import bound_words, html, markdown, terminal
from spillprof.report.profile.bound_words import bound_scope, proof_sentence, proof_word, search_sentences
from spillprof.report.profile.verdict import lead_result, meaning, verdict

PLAIN = make_profile(40, hostile=False)
LOWER = PLAIN.bounds.spill_bytes_lower


def bounded(**changes) -> Profile:
    return replace(PLAIN, bounds=replace(PLAIN.bounds, **changes))


def pages(profile: Profile) -> tuple[str, str, str]:
    """Terminal, HTML and Markdown, each on one line."""
    texts = terminal.render(profile, color=False), html.render(profile), markdown.render(profile)
    return tuple(" ".join(text.split()) for text in texts)


def test_a_certified_bound_names_its_method():
    assert proof_word(PLAIN.bounds) == "proven, certified"
    assert bound_scope(PLAIN).startswith("Lower bound (proven by a linear program, certified): no plan")
    assert "spillprof verify MODEL --certificate" in proof_sentence(PLAIN)
    for page in pages(PLAIN):
        assert "proven by a linear program, certified" in page


def test_a_solvers_bound_says_so_and_shows_what_is_certified():
    profile = bounded(proven_by=SOLVER, spill_bytes_lower=LOWER, certified_bytes=LOWER - 1, certified_by="local ratio")
    assert proof_word(profile.bounds) == "proven, solver"
    assert f"proven by a solver; {LOWER - 1:,} B certified" in bound_scope(profile)  # they would print alike
    sentence = proof_sentence(profile)
    assert SOLVER in sentence
    assert f"{LOWER:,} B" in sentence
    assert f"{LOWER - 1:,} B), by local ratio" in sentence
    text, page, table = pages(profile)
    assert "proven, solver" in text
    assert "How the lower bound is proven" in page
    assert f"({LOWER - 1:,} B), by local ratio" in page
    assert "| lower bound (proven, solver) |" in table


def test_no_bound_is_claimed_by_a_method_where_nothing_must_spill():
    profile = without_spills(PLAIN)
    assert proof_word(profile.bounds) == "proven"
    assert proof_sentence(profile) == ""
    assert bound_scope(profile).startswith("Lower bound: no plan")


def test_every_method_of_the_planner_has_words():
    assert (methods.NOTHING_FORCED, methods.ONLY_FORCED) == (bound_words.NOTHING, bound_words.FORCED)
    known = ("equal weights", "local ratio", "linear program", "knapsack cover", methods.ONLY_FORCED)
    for name in known:
        assert "solver" not in bound_scope(bounded(proven_by=name, certified_by=name))


CUT_OFF = replace(
    bounded(search="cut off by the time limit, 10 s (--optimize-seconds)"),
    recompute=RecomputeFacts(
        operators=0, macs=0, compute_s=0.0, weight_bytes=0, judge="interval", spill_bytes_before=9, spill_bytes=9,
        latency_s_before=1.0, latency_s=1.0, dear_gaps=0, dear_and_far_gaps=0, cheap_gaps=0,
        search="the integer program: ended at its limit of work (--optimize-seconds N searches longer)",
    ),
    untried=("narrower types", "more bandwidth"),
)  # fmt: skip


def test_what_was_cut_off_stands_on_every_page():
    for page in pages(CUT_OFF):
        for sentence in (
            "Strategy optimal: cut off by the time limit, 10 s",
            "Operators to run twice: the integer program: ended at its limit of work",
            "What would help: for want of runs not tried: narrower types, more bandwidth.",
        ):
            assert sentence in page


def test_where_no_run_was_made_nothing_is_listed():
    (sentence,) = search_sentences(replace(PLAIN, untried=(ANY_CHANGE,)))
    assert sentence.startswith("What would help: nothing was tried")


def test_nothing_is_said_of_searches_that_were_done():
    assert search_sentences(PLAIN) == []
    assert search_sentences(bounded(search="complete")) == []
    assert search_sentences(bounded(search="nodes")) == ["Strategy optimal: the integer program has too many nodes."]


@pytest.mark.parametrize("searched", [True, False])
def test_capacity_is_left_in_the_best_order_only_where_one_was_searched(searched: bool):
    lead = replace(lead_result(PLAIN), order_searched=searched)
    where = "in the best order found" if searched else "in this order; no other was searched"
    assert meaning("capacity", lead) == f"left with the best policy known {where}"
    profile = replace(PLAIN, results=tuple(lead if r.strategy == lead.strategy else r for r in PLAIN.results))
    assert where in html.render(profile)
    if "for want of capacity" in verdict(profile):
        assert ("for want of capacity in this order" in verdict(profile)) == (not searched)


def test_kinds_are_not_worded_as_runs_that_nobody_made():
    lead = replace(lead_result(PLAIN), causes=None)
    assert meaning("capacity", lead) == "more was needed at once than fits"


def searched(spill_bytes: int, latency_s: float) -> Profile:
    """PLAIN with a result of ``optimal`` beside the others."""
    lead = lead_result(PLAIN)
    found = replace(lead, strategy="optimal", spill_bytes=spill_bytes, latency_s=latency_s)
    return replace(PLAIN, results=(*PLAIN.results, found))


def test_fewest_bytes_in_more_time_are_said_on_every_page():
    lead = lead_result(PLAIN)
    sentence = f"not the least time: {lead.strategy} moves more than optimal, but ends 1 ms earlier."
    for page in pages(searched(lead.spill_bytes - 1, lead.latency_s + 1e-3)):
        assert sentence in page


def test_nothing_is_said_where_the_fewest_bytes_are_fastest_too():
    lead = lead_result(PLAIN)
    assert "not the least time" not in bound_scope(searched(lead.spill_bytes - 1, lead.latency_s - 1e-9))
    assert "not the least time" not in bound_scope(searched(lead.spill_bytes, lead.latency_s + 1e-3))
    assert "not the least time" not in bound_scope(PLAIN)
