"""For each rule, a plan that breaks only that rule."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from legal_plans import (
    CACHED,
    CACHED_PLAN,
    HELD,
    HELD_PLAN,
    INPLACE,
    INPLACE_PLAN,
    LEGAL,
    NUDGES,
    SPILL,
    SPILL_PLAN,
    STREAM,
    STREAM_PLAN,
    changed,
)
from programs import plan, program, step

from spillprof.ir.loop_nest import Tiling
from spillprof.ir.modes import StepMode
from spillprof.ir.plan import Plan, TransferKind
from spillprof.ir.program import Program
from spillprof.verify import PlanRule, Terms, recount, verify


def rules(p: Program, q: Plan) -> set[PlanRule]:
    return {violation.rule for violation in verify(p, q)}


def added(q: Plan, part: str, index: int, **fields: Any) -> Plan:
    """The plan with a changed copy of an entry at the end of its list."""
    entries = getattr(q, part)
    return replace(q, **{part: (*entries, replace(entries[index], **fields))})


@pytest.mark.parametrize("name", LEGAL)
def test_legal_plans_have_no_violation(name: str) -> None:
    assert verify(*LEGAL[name]) == ()


def test_what_a_step_holds_may_be_in_dram_by_then_or_stay_on_chip() -> None:
    assert verify(HELD, HELD_PLAN) == ()
    stays = changed(HELD_PLAN, "segments", 1, end=8)
    stays = changed(changed(stays, "segments", 3, address=128), "segments", 2, address=0)
    stays = replace(changed(changed(stays, "transfers", 1), "transfers", 1, segment=4), spills=(), capacity_bytes=192)
    assert verify(replace(HELD, capacity_bytes=192), stays) == ()


def test_empty_plan_of_empty_program_is_legal() -> None:
    p = program({}, [])
    assert verify(p, plan(p)) == ()


# x is read by the first and the last step; between them it is off-chip, and DRAM has it anyway.
READ_AGAIN = program({"x": ("input", 64)}, ["x ->", "->", "x ->"])
READ_AGAIN_PLAN = plan(
    READ_AGAIN,
    segments=[("x", 0, 2, 0), ("x", 6, 8, 0)],
    transfers=[("fetch", "x", 0, 0), ("reload", "x", 2, 2, 1)],
    spills=[{"buffer": "x", "last_use_step": 0, "evict_step": 1, "needed_step": 2, "written": False}],
)

A, B, C, A2, Y = 1, 2, 3, 4, 5  # segments of SPILL_PLAN

BROKEN: dict[str, tuple[Program, Plan, PlanRule]] = {
    "buffer that does not exist": (SPILL, changed(SPILL_PLAN, "segments", A, buffer=9), PlanRule.MALFORMED),
    "negative buffer": (SPILL, changed(SPILL_PLAN, "segments", A, buffer=-1), PlanRule.MALFORMED),
    "segment that does not exist": (SPILL, changed(SPILL_PLAN, "transfers", 0, segment=6), PlanRule.MALFORMED),
    "tick after the run": (SPILL, changed(SPILL_PLAN, "segments", Y, end=13), PlanRule.MALFORMED),
    "segment of no time": (SPILL, changed(SPILL_PLAN, "segments", Y, end=10), PlanRule.MALFORMED),
    "issue after the run": (SPILL, changed(SPILL_PLAN, "transfers", 3, issue_step=5), PlanRule.MALFORMED),
    "other reserved part": (SPILL, replace(SPILL_PLAN, reserved_bytes=64), PlanRule.RESERVED),
    "pinned out of its slot": (
        STREAM, replace(changed(STREAM_PLAN, "segments", 0, address=512), capacity_bytes=None), PlanRule.RESERVED,
    ),
    "beyond the capacity": (SPILL, replace(SPILL_PLAN, capacity_bytes=191), PlanRule.OUT_OF_RANGE),
    "made for more memory": (
        SPILL, replace(changed(SPILL_PLAN, "segments", Y, address=192), capacity_bytes=256), PlanRule.OUT_OF_RANGE,
    ),
    "made for infinite memory": (
        SPILL, replace(changed(SPILL_PLAN, "segments", Y, address=192), capacity_bytes=None), PlanRule.OUT_OF_RANGE,
    ),
    "in the reserved part": (INPLACE, changed(INPLACE_PLAN, "segments", 0, address=32), PlanRule.OUT_OF_RANGE),
    "scratch in the reserved part": (INPLACE, changed(INPLACE_PLAN, "scratch", 0, address=0), PlanRule.OUT_OF_RANGE),
    "below zero": (SPILL, changed(SPILL_PLAN, "segments", 0, address=-64), PlanRule.OUT_OF_RANGE),
    "odd address": (
        replace(SPILL, capacity_bytes=256),
        replace(changed(SPILL_PLAN, "segments", Y, address=129), capacity_bytes=256),
        PlanRule.MISALIGNED,
    ),
    "operands share bytes": (SPILL, changed(SPILL_PLAN, "segments", A, address=0), PlanRule.OVERLAP),
    "late write overwritten by scratch": (
        program({"a": 64, "y": ("output", 64)}, ["-> a", step("a -> ", workspaces=[("requant", 64, 2, 2)]), "a -> y"]),
        plan(
            program({"a": 64, "y": ("output", 64)}, ["-> a", "a -> ", "a -> y"]),
            segments=[("a", 1, 5, 0), ("a", 6, 8, 64), ("y", 7, 9, 0)],
            transfers=[("write-back", "a", 2, 2), ("reload", "a", 2, 2, 1), ("drain", "y", 3, 3)],
            spills=[{"buffer": "a", "last_use_step": 1, "evict_step": 2, "needed_step": 2}],
            scratch=[(1, "requant", 64, 0, 5, 6)],
        ),
        PlanRule.OVERLAP,
    ),
    "scratch over an operand": (INPLACE, changed(INPLACE_PLAN, "scratch", 0, address=128), PlanRule.OVERLAP),
    "freed before its last reader": (SPILL, changed(SPILL_PLAN, "segments", C, end=9), PlanRule.OPERAND_ABSENT),
    "result gone before its write phase ends": (
        STREAM, changed(STREAM_PLAN, "segments", 1, end=8), PlanRule.OPERAND_ABSENT,
    ),
    "no workspace": (INPLACE, changed(INPLACE_PLAN, "scratch", 0), PlanRule.SCRATCH_ABSENT),
    "workspace too small": (INPLACE, changed(INPLACE_PLAN, "scratch", 1, size_bytes=31), PlanRule.SCRATCH_ABSENT),
    "workspace ends early": (INPLACE, changed(INPLACE_PLAN, "scratch", 1, end=8), PlanRule.SCRATCH_ABSENT),
    "no staging": (STREAM, changed(STREAM_PLAN, "scratch", 0), PlanRule.SCRATCH_ABSENT),
    "in-place result elsewhere": (
        INPLACE, replace(changed(INPLACE_PLAN, "segments", 2, address=224), capacity_bytes=None), PlanRule.BAD_UPDATE,
    ),
    "on-chip before it is written": (SPILL, changed(SPILL_PLAN, "segments", Y, start=9), PlanRule.BAD_SEGMENT),
    "at two places at once": (SPILL, added(SPILL_PLAN, "segments", Y, start=11, address=0), PlanRule.BAD_SEGMENT),
    "input without a load": (SPILL, changed(SPILL_PLAN, "transfers", 0), PlanRule.NOT_FILLED),
    "return without a reload": (SPILL, changed(SPILL_PLAN, "transfers", 2), PlanRule.NOT_FILLED),
    "weight gone at the end": (CACHED, changed(CACHED_PLAN, "segments", 0, end=8), PlanRule.NOT_STEADY),
    "pinned leaves": (
        STREAM,
        replace(
            changed(added(STREAM_PLAN, "segments", 0, start=6), "segments", 0, end=5),
            transfers=plan(
                replace(STREAM),
                segments=[("p", 1, 5, 16), ("y", 7, 9, 80), ("p", 6, 8, 16)],
                transfers=[("write-back", "p", 1, 2), ("reload", "p", 2, 2, 1), ("drain", "y", 3, 3)],
            ).transfers,
            spills=(
                *plan(STREAM, spills=[{"buffer": "p", "last_use_step": 1, "evict_step": 2, "needed_step": 2}]).spills,
                *STREAM_PLAN.spills,
            ),
        ),
        PlanRule.EVICTED_PINNED,
    ),
    "reload of what was never written": (
        SPILL,
        changed(changed(SPILL_PLAN, "spills", 0, written=False), "transfers", 1),
        PlanRule.NO_DRAM_COPY,
    ),
    "streamed before it was written": (
        program(
            {"a": 64, "y": ("output", 64)},
            ["-> a", step("a -> y", streamed_reads="a", stream_staging_bytes=8)],
        ),
        plan(
            program({"a": 64, "y": ("output", 64)}, ["-> a", "a -> y"]),
            segments=[("a", 1, 3, 0), ("y", 4, 6, 64)],
            transfers=[("drain", "y", 2, 2)],
            spills=[{"buffer": "a", "last_use_step": 0, "evict_step": 1, "needed_step": 1, "written": False,
                     "reloaded": False}],
            streamed=[(1, "a", "in")],
            scratch=[(1, "stream staging", 8, 0, 3, 6)],
        ),
        PlanRule.NO_DRAM_COPY,
    ),
    "wrong size": (SPILL, changed(SPILL_PLAN, "transfers", 0, size_bytes=63), PlanRule.BAD_TRANSFER),
    "second load of one segment": (
        SPILL,
        replace(SPILL_PLAN, transfers=(*SPILL_PLAN.transfers[:3], *SPILL_PLAN.transfers[2:])),
        PlanRule.BAD_TRANSFER,
    ),
    "segment of another buffer": (
        SPILL,
        replace(
            SPILL_PLAN,
            transfers=(
                SPILL_PLAN.transfers[0],
                replace(SPILL_PLAN.transfers[0], segment=A2, issue_step=1),
                *SPILL_PLAN.transfers[1:],
            ),
        ),
        PlanRule.BAD_TRANSFER,
    ),
    "written before it is there": (SPILL, changed(SPILL_PLAN, "transfers", 1, issue_step=0), PlanRule.BAD_TRANSFER),
    "written after it has gone": (
        SPILL,
        changed(SPILL_PLAN, "transfers", 1, issue_step=3, needed_step=3),
        PlanRule.BAD_TRANSFER,
    ),
    "drain of no output": (
        SPILL,
        changed(changed(SPILL_PLAN, "spills", 0, written=False), "transfers", 1, kind=TransferKind.DRAIN),
        PlanRule.BAD_TRANSFER,
    ),
    "final write called a write-back": (
        SPILL,
        replace(
            changed(SPILL_PLAN, "transfers", 3, kind=TransferKind.WRITE_BACK),
            spills=(*SPILL_PLAN.spills, *plan(SPILL, spills=[{"buffer": "y", "last_use_step": 3, "evict_step": 4,
                    "needed_step": None, "forced_by_step": 3, "reloaded": False}]).spills),
        ),
        PlanRule.BAD_TRANSFER,
    ),
    "write-back gone at another step": (
        SPILL, changed(SPILL_PLAN, "transfers", 1, needed_step=3), PlanRule.BAD_TRANSFER,
    ),
    "drain gone at another step": (
        SPILL, changed(SPILL_PLAN, "transfers", 3, needed_step=3, issue_step=3), PlanRule.BAD_TRANSFER,
    ),
    "write-back of what moves on": (
        INPLACE,
        replace(
            INPLACE_PLAN,
            transfers=plan(
                INPLACE,
                segments=[("x", 0, 2, 64), ("a", 1, 4, 96), ("b", 4, 8, 96), ("c", 7, 9, 64), ("c", 9, 11, 96),
                          ("y", 10, 12, 64)],
                transfers=[("fetch", "x", 0, 0), ("write-back", "c", 3, 3), ("drain", "y", 4, 4)],
            ).transfers,
        ),
        PlanRule.BAD_TRANSFER,
    ),
    "written twice": (
        SPILL,
        replace(SPILL_PLAN, transfers=(*SPILL_PLAN.transfers[:2], *SPILL_PLAN.transfers[1:])),
        PlanRule.NEEDLESS_WRITE,
    ),
    "drained twice": (SPILL, added(SPILL_PLAN, "transfers", 3), PlanRule.NEEDLESS_WRITE),
    "input written back": (
        READ_AGAIN,
        replace(
            changed(READ_AGAIN_PLAN, "spills", 0, written=True),
            transfers=plan(
                READ_AGAIN,
                segments=[("x", 0, 2, 0), ("x", 6, 8, 0)],
                transfers=[("fetch", "x", 0, 0), ("write-back", "x", 1, 1), ("reload", "x", 2, 2, 1)],
            ).transfers,
        ),
        PlanRule.NEEDLESS_WRITE,
    ),
    "said to be written": (READ_AGAIN, changed(READ_AGAIN_PLAN, "spills", 0, written=True), PlanRule.BAD_SPILL),
    "said not to be written": (SPILL, changed(SPILL_PLAN, "spills", 0, written=False), PlanRule.BAD_SPILL),
    "forced by a step before": (SPILL, changed(SPILL_PLAN, "spills", 0, forced_by_step=0), PlanRule.BAD_SPILL),
    "streamed gap without a record": (STREAM, changed(STREAM_PLAN, "spills", 0), PlanRule.BAD_SPILL),
    "inputs said to be there": (
        SPILL, replace(changed(SPILL_PLAN, "transfers", 0), inputs_resident=True), PlanRule.OTHER_TERMS,
    ),
    "fetch of a weight in steady state": (
        CACHED, changed(CACHED_PLAN, "transfers", 0, kind=TransferKind.FETCH), PlanRule.BAD_TRANSFER,
    ),
    "scratch for nothing": (
        INPLACE,
        replace(added(INPLACE_PLAN, "scratch", 0, address=256), capacity_bytes=None),
        PlanRule.SCRATCH_UNKNOWN,
    ),
    "move to where it is": (
        INPLACE,
        replace(
            INPLACE_PLAN,
            segments=(*INPLACE_PLAN.segments[:4], replace(INPLACE_PLAN.segments[4], address=64),
                      replace(INPLACE_PLAN.segments[5], address=192)),
            moves=(replace(INPLACE_PLAN.moves[0], to_address=64),),
        ),
        PlanRule.BAD_MOVE,
    ),
    "first load called a reload": (
        SPILL, changed(SPILL_PLAN, "transfers", 0, kind=TransferKind.RELOAD), PlanRule.BAD_TRANSFER,
    ),
    "reload called a first load": (
        SPILL, changed(SPILL_PLAN, "transfers", 2, kind=TransferKind.FETCH), PlanRule.BAD_TRANSFER,
    ),
    "needed at another step": (SPILL, changed(SPILL_PLAN, "transfers", 2, needed_step=2), PlanRule.BAD_TRANSFER),
    "space held later than issue": (SPILL, changed(SPILL_PLAN, "transfers", 2, issue_step=2), PlanRule.BAD_TRANSFER),
    "not in issue order": (
        SPILL, replace(SPILL_PLAN, transfers=tuple(reversed(SPILL_PLAN.transfers))), PlanRule.BAD_TRANSFER,
    ),
    "loaded for nobody": (
        replace(SPILL, capacity_bytes=None),
        replace(
            SPILL_PLAN,
            transfers=plan(
                SPILL,
                segments=[("x", 0, 2, 0), ("a", 1, 5, 64), ("b", 4, 8, 0), ("c", 7, 11, 64), ("a", 9, 11, 0),
                          ("y", 10, 12, 128), ("x", 9, 12, 0)],
                transfers=[("fetch", "x", 0, 0), ("write-back", "a", 2, 2), ("reload", "a", 3, 3, 1),
                           ("reload", "x", 3, 3, 1), ("drain", "y", 4, 4)],
            ).transfers,
            segments=(*SPILL_PLAN.segments, replace(SPILL_PLAN.segments[0], start=9, end=12, address=192)),
            capacity_bytes=None,
        ),
        PlanRule.BAD_TRANSFER,
    ),
    "streamed without need": (
        SPILL,
        replace(SPILL_PLAN, streamed=plan(SPILL, streamed=[(1, "x", "in")]).streamed),
        PlanRule.BAD_STREAM,
    ),
    "streamed in part": (STREAM, changed(STREAM_PLAN, "streamed", 0, size_bytes=511), PlanRule.BAD_STREAM),
    "streamed twice": (STREAM, added(STREAM_PLAN, "streamed", 0), PlanRule.BAD_STREAM),
    "streamed the other way": (STREAM, changed(STREAM_PLAN, "streamed", 0, write=True), PlanRule.BAD_STREAM),
    "streamed while on-chip": (
        STREAM,
        replace(
            STREAM_PLAN,
            capacity_bytes=None,
            segments=(*STREAM_PLAN.segments, replace(STREAM_PLAN.segments[0], buffer=2, start=4, end=9, address=512)),
        ),
        PlanRule.BAD_STREAM,
    ),
    "tiles of unknown loops": (
        STREAM,
        replace(
            STREAM_PLAN,
            modes=(StepMode(step=1, tiling=Tiling(tile=(), order=()), footprint_bytes=0, tiles=1, traffic=()),),
        ),
        PlanRule.BAD_MODE,
    ),
    "move from elsewhere": (INPLACE, added(INPLACE_PLAN, "moves", 0, step=2), PlanRule.BAD_MOVE),
    "move in part": (INPLACE, changed(INPLACE_PLAN, "moves", 0, size_bytes=1), PlanRule.BAD_MOVE),
    "move twice": (INPLACE, added(INPLACE_PLAN, "moves", 0), PlanRule.BAD_MOVE),
    "spill without a record": (SPILL, changed(SPILL_PLAN, "spills", 0), PlanRule.BAD_SPILL),
    "record without a spill": (SPILL, added(SPILL_PLAN, "spills", 0, buffer=2), PlanRule.BAD_SPILL),
    "record twice": (SPILL, added(SPILL_PLAN, "spills", 0), PlanRule.BAD_SPILL),
    "record of another gap": (SPILL, changed(SPILL_PLAN, "spills", 0, last_use_step=0), PlanRule.BAD_SPILL),
    "record of a streamed use": (SPILL, changed(SPILL_PLAN, "spills", 0, reloaded=False), PlanRule.BAD_SPILL),
    "record of a dead buffer": (SPILL, changed(SPILL_PLAN, "spills", 0, needed_step=None), PlanRule.BAD_SPILL),
    "held, but not kept": (HELD, replace(changed(HELD_PLAN, "transfers", 1), spills=()), PlanRule.HELD_LOST),
    "output never written": (SPILL, changed(SPILL_PLAN, "transfers", 3), PlanRule.OUTPUT_LOST),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_broken_plan_breaks_exactly_this_rule(name: str) -> None:
    p, q, rule = BROKEN[name]
    assert rules(p, q) == {rule}, verify(p, q)


def test_every_rule_is_broken_by_some_plan() -> None:
    assert {rule for _, _, rule in BROKEN.values()} == set(PlanRule)


def test_violation_names_step_and_buffer() -> None:
    (violation,) = verify(SPILL, changed(SPILL_PLAN, "segments", C, end=9))
    assert (violation.step, violation.buffer) == (3, C)
    assert violation.message == "'c' is read in step 3, but not on-chip through ticks 9 to 11"


def test_recount_splits_the_spill_from_the_compulsory() -> None:
    traffic = recount(SPILL, SPILL_PLAN)
    assert (traffic.compulsory_read_bytes, traffic.compulsory_write_bytes) == (64, 64)
    assert (traffic.spill_write_bytes, traffic.spill_read_bytes, traffic.streamed_bytes) == (64, 64, 0)


def test_recount_takes_a_streamed_inputs_first_read_as_compulsory() -> None:
    traffic = recount(STREAM, STREAM_PLAN)
    assert (traffic.compulsory_read_bytes, traffic.compulsory_write_bytes) == (512, 64)
    assert (traffic.streamed_read_bytes, traffic.streamed_write_bytes) == (512, 512)


def test_recount_takes_an_outputs_early_write_back_as_compulsory() -> None:
    p = program({"y": ("output", 8)}, ["-> y", "y -> "])
    q = plan(
        p,
        segments=[("y", 1, 3, 0), ("y", 3, 6, 0)],
        transfers=[("write-back", "y", 1, 1), ("reload", "y", 1, 1, 1)],
        spills=[{"buffer": "y", "last_use_step": 0, "evict_step": 1, "needed_step": 1}],
    )
    assert verify(p, q) == ()
    traffic = recount(p, q)
    assert (traffic.compulsory_write_bytes, traffic.spill_write_bytes, traffic.spill_read_bytes) == (8, 0, 8)


def test_recount_counts_streamed_weights_and_moves() -> None:
    p = replace(INPLACE, steps=(replace(INPLACE.steps[0], weight_stream_bytes=1000), *INPLACE.steps[1:]))
    traffic = recount(p, INPLACE_PLAN)
    assert (traffic.compulsory_read_bytes, traffic.moved_bytes, traffic.spill_bytes) == (1032, 32, 0)


def test_cold_run_fetches_its_weights() -> None:
    q = replace(
        CACHED_PLAN,
        transfers=plan(
            CACHED,
            segments=[("w", 0, 9, 0), ("v", 0, 2, 64), ("a", 1, 5, 128), ("y", 4, 6, 64)],
            transfers=[("fetch", "w", 0, 0), ("fetch", "v", 0, 0), ("drain", "y", 2, 2)],
        ).transfers,
        spills=(),
    )
    assert verify(CACHED, q, Terms(cold=True)) == ()
    assert PlanRule.BAD_TRANSFER in rules(CACHED, q)  # in steady state they are reloads
    assert recount(CACHED, q).compulsory_read_bytes == 128


def test_resident_inputs_need_no_load() -> None:
    q = changed(SPILL_PLAN, "transfers", 0)
    q = replace(changed(q, "segments", 0, end=12, address=192), capacity_bytes=None, inputs_resident=True)
    p = replace(SPILL, capacity_bytes=None)
    assert verify(p, q, Terms(inputs_resident=True)) == ()
    assert recount(p, q).compulsory_read_bytes == 0


def test_resident_inputs_stay_from_start_to_end_and_the_plan_has_no_choice() -> None:
    left = replace(changed(SPILL_PLAN, "transfers", 0), inputs_resident=True)
    (violation,) = verify(SPILL, left, Terms(inputs_resident=True))
    assert violation.rule is PlanRule.OTHER_TERMS
    assert violation.message == "'x' is to be on-chip from start to end, but leaves"
    (violation,) = verify(SPILL, SPILL_PLAN, Terms(inputs_resident=True))
    assert violation.message == "the plan says that graph inputs are loaded; they are to be resident"
    (violation,) = verify(SPILL, left)
    assert violation.message == "the plan says that graph inputs are on-chip before the run; they are to be loaded"


def test_cached_weights_are_not_there_before_the_first_inference() -> None:
    cold = changed(changed(CACHED_PLAN, "transfers", 0, kind=TransferKind.FETCH), "spills", 0)
    (violation,) = verify(CACHED, cold, Terms(cold=True))
    assert violation.message == "'w' comes on-chip at tick 0, but nothing fills its space"


def test_a_runtime_that_writes_always_writes_at_each_eviction() -> None:
    p = program({"a": 8}, ["-> a", "a ->", "a ->"])
    q = plan(
        p,
        segments=[("a", 1, 3, 0), ("a", 3, 5, 8), ("a", 6, 8, 0)],
        transfers=[("write-back", "a", 1, 1), ("reload", "a", 1, 1, 1), ("write-back", "a", 2, 2, 1),
                   ("reload", "a", 2, 2, 2)],
        spills=[{"buffer": "a", "last_use_step": 0, "evict_step": 1, "needed_step": 1},
                {"buffer": "a", "last_use_step": 1, "evict_step": 2, "needed_step": 2}],
    )  # fmt: skip
    assert verify(p, q, Terms(rewrites=True)) == ()
    assert rules(p, q) == {PlanRule.NEEDLESS_WRITE}
    once = replace(changed(q, "spills", 1, written=False), transfers=(*q.transfers[:2], q.transfers[3]))
    assert verify(p, once) == ()
    (violation,) = verify(p, once, Terms(rewrites=True))
    assert violation.message == "'a' off-chip from step 2 to step 2: it is not written, as each eviction is to be"
    twice = replace(q, transfers=(*q.transfers[:3], *q.transfers[2:]))
    assert {v.rule for v in verify(p, twice, Terms(rewrites=True))} == {PlanRule.NEEDLESS_WRITE}


def test_dead_buffer_written_back_by_a_late_runtime_may_be_recorded() -> None:
    p = program({"a": 8, "b": 8, "y": ("output", 8)}, ["-> a", "a -> b", "-> y"])
    q = plan(
        p,
        segments=[("a", 1, 6, 0), ("b", 4, 6, 8), ("y", 7, 9, 0)],
        transfers=[("write-back", "a", 2, 2), ("drain", "y", 3, 3)],
        spills=[{"buffer": "a", "last_use_step": 1, "evict_step": 2, "needed_step": None, "reloaded": False}],
    )
    assert verify(p, q) == ()


def test_reload_issued_with_the_write_back_that_makes_its_copy() -> None:
    p = program({"a": 8, "y": ("output", 8)}, ["-> a", "a -> y"])
    q = plan(
        p,
        segments=[("a", 1, 3, 0), ("a", 3, 5, 8), ("y", 4, 6, 0)],
        transfers=[("write-back", "a", 1, 1), ("reload", "a", 1, 1, 1), ("drain", "y", 2, 2)],
        spills=[{"buffer": "a", "last_use_step": 0, "evict_step": 1, "needed_step": 1}],
    )
    assert verify(p, q) == ()


@settings(max_examples=300, deadline=None)
@given(data=st.data(), name=st.sampled_from(sorted(LEGAL)))
def test_any_part_dropped_is_noticed(data: st.DataObject, name: str) -> None:
    p, q = LEGAL[name]
    part = data.draw(st.sampled_from([part for part in NUDGES if getattr(q, part)]))
    index = data.draw(st.integers(0, len(getattr(q, part)) - 1))
    assert verify(p, changed(q, part, index)), (part, index)


@settings(max_examples=300, deadline=None)
@given(data=st.data(), name=st.sampled_from(sorted(LEGAL)))
def test_any_number_changed_is_noticed_or_harmless(data: st.DataObject, name: str) -> None:
    """What may move without harm: an address into free space, an end later, a write earlier, larger scratch."""
    p, q = LEGAL[name]
    part = data.draw(st.sampled_from([part for part in NUDGES if getattr(q, part)]))
    index = data.draw(st.integers(0, len(getattr(q, part)) - 1))
    field = data.draw(st.sampled_from(NUDGES[part]))
    old = getattr(getattr(q, part)[index], field)
    new = data.draw(st.integers(-2, 600).filter(lambda value: value != old))
    found = verify(p, changed(q, part, index, **{field: new}))
    harmless = {
        ("segments", "address"), ("segments", "end"), ("transfers", "issue_step"), ("transfers", "needed_step"),
        ("scratch", "address"), ("scratch", "start"), ("scratch", "end"), ("scratch", "size_bytes"),
    }  # fmt: skip
    assert found or (part, field) in harmless, (part, index, field, old, new)


@settings(max_examples=200, deadline=None)
@given(data=st.data(), name=st.sampled_from(sorted(LEGAL)))
def test_any_shrinking_is_noticed(data: st.DataObject, name: str) -> None:
    """A segment cut at either end, scratch cut at either end or made smaller, less memory."""
    p, q = LEGAL[name]
    part = data.draw(st.sampled_from(["segments", *(["scratch"] if q.scratch else [])]))
    index = data.draw(st.integers(0, len(getattr(q, part)) - 1))
    entry = getattr(q, part)[index]
    tick = data.draw(st.integers(entry.start + 1, max(entry.start + 1, entry.end - 1)))
    field = data.draw(st.sampled_from(["start", "end"]))
    if tick >= entry.end:
        return
    assert verify(p, changed(q, part, index, **{field: tick})), (part, index, field, tick)


def overlapping(p: Program, q: Plan) -> set[tuple[int, int]]:
    """Pairs of segments that share a tick and a byte, by comparing all."""
    pairs = set()
    for i, a in enumerate(q.segments):
        for j, b in enumerate(q.segments[:i]):
            a_top, b_top = a.address + p.buffers[a.buffer].size_bytes, b.address + p.buffers[b.buffer].size_bytes
            if max(a.start, b.start) < min(a.end, b.end) and max(a.address, b.address) < min(a_top, b_top):
                pairs.add((i, j))
    return pairs


@settings(max_examples=200, deadline=None)
@given(
    blocks=st.lists(st.tuples(st.integers(0, 28), st.integers(1, 6), st.integers(0, 12), st.integers(0, 4)), max_size=9)
)
def test_sweep_finds_an_overlap_where_comparing_all_pairs_does(blocks: list[tuple[int, int, int, int]]) -> None:
    p = program({f"b{i}": size for i, (_, _, _, size) in enumerate(blocks)}, ["->"] * 12)
    q = plan(p, segments=[(f"b{i}", start, start + length, at) for i, (start, length, at, _) in enumerate(blocks)])
    assert (PlanRule.OVERLAP in rules(p, q)) == bool(overlapping(p, q))
