"""Certificates: the verifier derives the problem itself, accepts valid proofs, and refuses others."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import program, step
from random_programs import planning_options, random_program, streaming_case

from spillprof.ir.certificate import Certificate, certificate_from_json
from spillprof.ir.errors import CapacityError, PlanError
from spillprof.ir.json_values import json_values
from spillprof.ir.program import Program
from spillprof.planning.bounds.covering import covering
from spillprof.planning.bounds.methods import lower_bound
from spillprof.planning.bounds.rows import certificate_of
from spillprof.planning.options import Inputs, PlanningOptions, Start, WriteBack
from spillprof.verify.certificate import check_certificate, cover_facts

OPTIONS = planning_options("inputs", "writeback", "release", "start")


def certificate(p: Program, options: PlanningOptions) -> Certificate:
    bound = lower_bound(p, options)
    return certificate_of(p, options, bound.problem, bound.certificate, bound.cost)


def agree(p: Program, options: PlanningOptions) -> None:
    """The verifier's facts are the planner's."""
    facts = cover_facts(
        p,
        inputs_resident=options.inputs is Inputs.RESIDENT,
        steady_state=options.start is Start.STEADY,
        writes_always=options.writeback is WriteBack.ALWAYS,
    )
    problem = covering(p, options)
    keys = [(gap.buffer, gap.last_use) for gap in problem.gaps]
    assert [max(0, lacks) for lacks in facts.lacking_bytes] == list(problem.excess_bytes)
    assert facts.own_bytes == dict(zip(keys, problem.gap_costs, strict=True))
    assert facts.shared_bytes == problem.write_costs
    assert facts.forced_bytes == problem.forced_cost
    for i, over in problem.spanning.items():
        assert set(facts.spanning[i]) == {keys[g] for g in over}


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**9), options=OPTIONS)
def test_what_a_certificate_claims_is_proven_by_it(seed: int, options: PlanningOptions) -> None:
    p = random_program(seed)
    agree(p, options)
    assert check_certificate(p, certificate(p, options)) == ()


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**9), options=OPTIONS)
def test_the_same_with_streamed_operands(seed: int, options: PlanningOptions) -> None:
    case = streaming_case(seed)
    if case is None:
        return
    try:
        proof = certificate(case[0], options)
    except CapacityError:  # a resident input that some step streams
        assert options.inputs is Inputs.RESIDENT
        return
    agree(case[0], options)
    assert check_certificate(case[0], proof) == ()


# --- tampering


def two_waiting() -> Program:
    """s (40) and t (31) wait while step 3 needs a + b = 120, in all 191 > 156: s must leave, t alone would not do."""
    return program(
        {"x": ("input", 10), "s": 40, "t": 31, "a": 60, "b": 60, "c": 30, "y": ("output", 10)},
        ["x -> s", "x -> t", "x -> a", "a -> b", "b -> c", "c, s, t -> y"],
        capacity=156,
    )


def proof() -> Certificate:
    found = certificate(two_waiting(), PlanningOptions())
    assert check_certificate(two_waiting(), found) == ()
    assert found.spill_bytes_lower == 80
    assert any(row.apart for row in found.rows)
    return found


def with_row(c: Certificate, **changes: Any) -> Certificate:
    """One of its rows with a set apart, changed."""
    k = next(k for k, row in enumerate(c.rows) if row.apart)
    return replace(c, rows=(*c.rows[:k], replace(c.rows[k], **changes), *c.rows[k + 1 :]))


def refused(c: Certificate, *words: str) -> None:
    (problem,) = check_certificate(two_waiting(), c)
    for word in words:
        assert word in problem


def test_a_larger_bound_than_the_rows_prove_is_refused() -> None:
    refused(replace(proof(), spill_bytes_lower=81), "prove 80 bytes, not 81")


def test_a_smaller_bound_is_proven_too() -> None:
    assert check_certificate(two_waiting(), replace(proof(), spill_bytes_lower=79)) == ()


def test_rows_that_weigh_more_do_not_prove_more() -> None:
    found = proof()
    heavy = replace(found, rows=tuple(replace(row, weight=3 * row.weight) for row in found.rows))
    assert check_certificate(two_waiting(), replace(heavy, spill_bytes_lower=81))


def test_a_row_that_is_left_out_leaves_less_proven() -> None:
    found = proof()
    refused(replace(found, rows=found.rows[1:]), "prove")


def test_negative_weights_are_refused() -> None:
    refused(with_row(proof(), weight=-1), "negative")


def test_a_gap_apart_twice_is_refused() -> None:
    row = next(row for row in proof().rows if row.apart)
    refused(with_row(proof(), apart=row.apart * 2, apart_after=row.apart_after * 2), "twice")


def test_gaps_that_are_not_there_are_refused() -> None:
    refused(with_row(proof(), apart=("nobody",)), "no gaps over step")
    refused(with_row(proof(), apart_after=(5,)), "no gaps over step")
    refused(with_row(proof(), apart_after=()), "not given as a buffer and a step")


def test_wrong_sizes_are_refused() -> None:
    refused(with_row(proof(), need_bytes=191), "need_bytes is 191, the program lacks")
    refused(with_row(proof(), need_bytes=1), "the rows prove", "not 80")  # true, but it proves less
    small = replace(
        two_waiting(), buffers=tuple(replace(b, size_bytes=b.size_bytes - 1) for b in two_waiting().buffers)
    )
    assert check_certificate(small, proof())


def test_a_step_that_is_not_there_is_refused() -> None:
    refused(with_row(proof(), step=6), "no step 6")
    refused(with_row(proof(), step=-1), "no step -1")


def test_another_capacity_is_refused() -> None:
    refused(replace(proof(), capacity_bytes=155), "capacity_bytes is 155, the program's is 156")
    assert check_certificate(replace(two_waiting(), capacity_bytes=157), proof())


def test_a_scale_that_is_not_positive_is_refused() -> None:
    refused(replace(proof(), scale=0), "scale is 0")


def test_a_streamed_input_after_a_fetch_is_read_again() -> None:
    # x (40) is fetched for step 0, and step 2, which cannot hold it, reads it once more.
    p = program(
        {"x": ("input", 40), "a": 20, "b": 30, "y": ("output", 10)},
        ["x -> a", "a -> b", step("b, x -> y", streamed_reads="x", stream_staging_bytes=4)],
        capacity=64,
    )
    assert certificate(p, PlanningOptions()).spill_bytes_lower == 40
    assert check_certificate(p, certificate(p, PlanningOptions())) == ()


# --- files


def as_json(c: Certificate) -> Any:
    return json.loads(json.dumps(json_values(c)))


def test_a_certificate_survives_its_file() -> None:
    found = proof()
    assert certificate_from_json(as_json(found)) == found
    assert certificate_from_json({"bounds": {"certificate": as_json(found)}}) == found


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "other"}, {"rows": None}, {"rows": [7]}, {"rows": [{"step": 1.5}]}, {"steps": "6"}, {"scale": True},
    ],
)  # fmt: skip
def test_malformed_certificates_are_errors(change: dict[str, Any]) -> None:
    with pytest.raises(PlanError):
        certificate_from_json({**as_json(proof()), **change})


@pytest.mark.parametrize("data", [None, [], {}, {"bounds": None}, {"bounds": {"certificate": None}}])
def test_a_file_without_a_certificate_says_so(data: Any) -> None:
    with pytest.raises(PlanError, match="no certificate"):
        certificate_from_json(data)
