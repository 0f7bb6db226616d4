"""Comparisons of two runs, worked out by hand."""

import json
from dataclasses import replace

from diff_runs import PLAIN, PLAIN_CHAIN, SMALL, WIDE, WITH_SKIP, chain, machine, renamed, run
from graphs import graph
from profiles import make_profile, without_spills

from spillprof.explain.analyze import analyze
from spillprof.explain.options import AnalyzeOptions
from spillprof.ir.profile import Profile
from spillprof.ir.profile_json import profile_from_json
from spillprof.studies.diff import Fate, StrategyOutcome, Why, compare


def test_a_run_and_itself_do_not_differ() -> None:
    comparison = compare(run(WITH_SKIP), run(WITH_SKIP))
    (only,) = comparison.strategies
    assert only.outcome is StrategyOutcome.SAME
    assert (only.operators, only.buffers, only.rise_sources, only.fall_sources) == ((), (), (), ())
    assert comparison.differences == comparison.warnings == ()
    assert (comparison.matching.by_name, comparison.matching.added, comparison.matching.removed) == (6, (), ())


def test_renaming_everything_changes_no_figure() -> None:
    comparison = compare(run(WITH_SKIP), run(renamed(WITH_SKIP)))
    assert comparison.strategies[0].outcome is StrategyOutcome.SAME
    assert comparison.strategies[0].operators == comparison.strategies[0].buffers == ()
    assert (comparison.matching.by_name, comparison.matching.by_structure) == (0, 6)


def test_a_skip_that_was_added_is_named_as_the_source() -> None:
    """3,072 bytes hold the chain; with ``a`` live over the wide middle it goes out and comes back: 2 x 1,024."""
    comparison = compare(run(PLAIN_CHAIN), run(WITH_SKIP))
    (only,) = comparison.strategies
    assert only.outcome is StrategyOutcome.WORSE
    assert (only.before.spill_bytes, only.after.spill_bytes) == (0, 2048)
    assert (only.rise_bytes, only.fall_bytes) == (2048, 0)
    (source,) = only.rise_sources
    assert (source.buffer, source.why, source.operators, source.are_new) == ("a", Why.NEW_READER, ("e",), True)
    assert (source.steps, source.share_bytes, source.size_bytes) == (3, 2048, 1024)  # steps 2, 3 and 4
    forced = only.operators[0]
    assert (forced.name, forced.fate, forced.delta_bytes) == ("c", Fate.KEPT, 2048)
    assert (forced.victims_gained, forced.victims_lost) == (("a",), ())
    (moved,) = only.buffers
    assert (moved.name, moved.why, moved.operators) == ("a", Why.NEW_READER, ("e",))
    assert (moved.steps_before, moved.steps_after) == ((0, 1), (0, 4))
    assert [(n.step, n.name, n.op_type) for n in comparison.matching.added] == [(4, "e", "Add")]


def test_the_other_way_round_it_is_what_went_away() -> None:
    (only,) = compare(run(WITH_SKIP), run(PLAIN_CHAIN)).strategies
    assert only.outcome is StrategyOutcome.BETTER
    assert (only.rise_bytes, only.fall_bytes) == (0, 2048)
    (source,) = only.fall_sources
    assert (source.buffer, source.why, source.operators, source.are_new) == ("a", Why.LOST_READER, ("e",), True)
    assert only.operators[0].victims_lost == ("a",)
    assert only.buffers[0].why is Why.LOST_READER


def test_the_source_is_found_in_a_renamed_model_too() -> None:
    (only,) = compare(run(PLAIN_CHAIN), run(renamed(WITH_SKIP))).strategies
    (source,) = only.rise_sources
    assert source.operators == ("other.4.x",)
    (moved,) = only.buffers
    assert (moved.fate, moved.name_before, moved.why) == (Fate.RENAMED, "a", Why.NEW_READER)


def test_a_victim_under_another_name_is_the_same_victim() -> None:
    """Twice the bandwidth: the same spills, other stalls."""
    fast = machine(3072).with_overrides(dram_read_bytes_per_s=2e9, dram_write_bytes_per_s=2e9)
    options = AnalyzeOptions(strategies=("interval",), lowering=PLAIN)
    (only,) = compare(run(WITH_SKIP), analyze(renamed(WITH_SKIP), fast, options)).strategies
    assert only.outcome is StrategyOutcome.BETTER
    assert all(not c.victims_gained and not c.victims_lost and c.delta_bytes == 0 for c in only.operators)
    assert only.operators
    assert only.rise_sources == only.fall_sources == ()


def test_a_smaller_memory_is_a_setting_that_differs() -> None:
    """The same model: nothing is held besides, so nothing but the memory is to be blamed."""
    comparison = compare(run(WITH_SKIP, 4096), run(WITH_SKIP, 3072))
    assert comparison.strategies[0].outcome is StrategyOutcome.WORSE
    assert comparison.strategies[0].rise_sources == ()
    assert [(d.where, d.field, d.before, d.after) for d in comparison.differences] == [
        ("target", "sram_bytes", 4096, 3072)
    ]
    assert comparison.warnings == ()
    assert comparison.strategies[0].buffers[0].why is Why.SAME


def test_another_model_on_another_machine_is_warned_of() -> None:
    other = replace(run(WITH_SKIP, 4096), spillprof_version="0.0.1")
    changed = replace(other, model=replace(other.model, sha256="1" * 64))
    warned = compare(run(PLAIN_CHAIN), changed).warnings
    assert any("machines differ as well as the models, in sram_bytes" in text for text in warned)
    assert any("0.0.1" in text for text in warned)
    older = replace(run(WITH_SKIP), simulator_revision=1)
    assert compare(older, run(WITH_SKIP)).warnings == (
        "the runs were made by different revisions of the simulator: the same model may give other figures",
    )


def test_a_larger_buffer_is_the_source_of_what_it_forces_out() -> None:
    """The middle is twice as wide: 4,096 bytes beside its operand, and the skip has to leave."""
    before = graph(
        {"x": SMALL},
        ops=["Sigmoid x -> a", "Tanh a -> b", "Concat b b -> c", "MaxPool c -> d", "Add d a -> y"],
        tensors=dict.fromkeys("abcdy", SMALL),
        outputs="y",
    )
    after = replace(before, tensors={**before.tensors, "c": replace(before.tensors["c"], shape=WIDE)})
    (only,) = compare(run(before), run(after)).strategies
    assert (only.before.spill_bytes, only.after.spill_bytes) == (0, 2048)
    (source,) = only.rise_sources
    assert (source.buffer, source.why, source.share_bytes) == ("c", Why.LARGER, 2048)


def test_strategies_are_paired_and_the_leading_one_comes_first() -> None:
    before, after = make_profile(60), make_profile(60)
    comparison = compare(before, after)
    assert comparison.strategies[0].after.strategy == "belady"  # every fourth read alone is off-chip
    assert {s.after.strategy for s in comparison.strategies} == {r.strategy for r in before.results}
    infeasible = [s for s in comparison.strategies if not s.after.feasible]
    assert [s.outcome for s in infeasible] == [StrategyOutcome.RUNS_NEITHER]


def test_without_a_common_strategy_the_leading_ones_are_compared() -> None:
    before, after = run(WITH_SKIP, strategies=["lru"]), run(WITH_SKIP, strategies=["interval"])
    (only,) = compare(before, after).strategies
    assert (only.before.strategy, only.after.strategy) == ("lru", "interval")


def test_a_strategy_that_cannot_any_more_is_told_from_one_that_can_now() -> None:
    can = run(WITH_SKIP)
    cannot = replace(
        can, results=tuple(replace(r, feasible=False, reason="no room", operators=()) for r in can.results)
    )
    assert compare(can, cannot).strategies[0].outcome is StrategyOutcome.RUNS_NO_MORE
    assert compare(cannot, can).strategies[0].outcome is StrategyOutcome.RUNS_NOW


def test_spills_that_vanish_are_better_under_every_strategy() -> None:
    profile = make_profile(60)
    comparison = compare(profile, without_spills(profile))
    assert {s.outcome for s in comparison.strategies} <= {StrategyOutcome.BETTER, StrategyOutcome.RUNS_NOW}
    assert all(c.spill_bytes_after == 0 for c in comparison.strategies[0].operators)


def test_changes_of_operators_add_up_to_the_change_of_the_run() -> None:
    for before, after in ((PLAIN_CHAIN, WITH_SKIP), (WITH_SKIP, chain("Add d a -> e", "Add e b -> y"))):
        (only,) = compare(run(before), run(after)).strategies
        delta = only.after.spill_bytes - only.before.spill_bytes
        assert sum(c.delta_bytes for c in only.operators) == delta
        assert sum(c.delta_bytes for c in only.buffers) == delta
        assert only.rise_bytes - only.fall_bytes == delta
        assert sum(c.delta_bytes for c in only.causes) == delta


def test_a_saved_profile_compares_like_the_one_that_was_saved() -> None:
    def saved(profile: Profile) -> Profile:
        return profile_from_json(json.loads(json.dumps(profile.to_json())))

    before, after = run(PLAIN_CHAIN), run(WITH_SKIP)
    assert compare(saved(before), saved(after)).to_json() == compare(before, after).to_json()
    assert compare(saved(before), before).differences == ()
