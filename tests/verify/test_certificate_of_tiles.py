"""Certificates of bounds over all tilings: those that we make hold, changed ones do not."""

from dataclasses import replace

from hypothesis import given, settings
from random_graphs import small_runs
from scale import examples

from spillprof.engine.engine import Engine
from spillprof.engine.run import Run, terms_of
from spillprof.ir.certificate import Certificate, TiledStep
from spillprof.ir.errors import CapacityError
from spillprof.ir.program import Program
from spillprof.planning.bounds.rows import certificate_of
from spillprof.verify.certificate import check_certificate


def certified(run: Run) -> tuple[Program, Certificate] | None:
    """The fitted program and the certificate of its bound; None if no plan is possible."""
    engine = Engine()
    program = engine.fitted(run)
    try:
        bound = engine.bound(program, run)
    except CapacityError:
        return None
    return program, certificate_of(program, run.planning, bound.problem, bound.certificate, bound.certified_cost)


@settings(max_examples=examples(150), deadline=None)
@given(run=small_runs(5))
def test_certificates_hold_and_claim_no_byte_too_much(run: Run) -> None:
    found = certified(run)
    if found is None:
        return
    program, certificate = found
    terms = terms_of(run.planning)
    assert check_certificate(program, certificate, terms) == ()
    more = replace(certificate, spill_bytes_lower=certificate.spill_bytes_lower + (1 << 20))
    assert check_certificate(program, more, terms) != ()
    needy = [replace(row, need_bytes=row.need_bytes + (1 << 20)) for row in certificate.rows]
    if needy:
        assert check_certificate(program, replace(certificate, rows=tuple(needy)), terms) != ()


@settings(max_examples=examples(60), deadline=None)
@given(run=small_runs(4))
def test_tilings_are_stated_only_of_steps_that_do_not_fit(run: Run) -> None:
    found = certified(run)
    if found is None:
        return
    program, certificate = found
    stated = {tiled.step for tiled in certificate.tiled}
    roomy = replace(program, capacity_bytes=1 << 30)
    for i in range(len(program.steps)):
        if i not in stated:
            one = TiledStep(step=i, footprint_bytes=0, excess_bytes=64)
            claim = replace(certificate, capacity_bytes=1 << 30, rows=(), tiled=(one,), spill_bytes_lower=64)
            assert "fits without tiles" in check_certificate(roomy, claim)[0]
    twice = replace(certificate, tiled=(TiledStep(step=0, footprint_bytes=0, excess_bytes=1),) * 2)
    assert "stated twice" in check_certificate(program, twice)[0]
