"""The three rules of recomputation against spilling, each on a program worked by hand."""

from dataclasses import replace

from programs import program, run_on, step, target

from spillprof.engine.engine import Engine
from spillprof.engine.recompute.choices import Costs, GapVerdict, Proposal
from spillprof.engine.recompute.rules import judged_gaps
from spillprof.engine.recompute.search import recomputed
from spillprof.ir.program import BufferKind, Program
from spillprof.lowering.transforms import Recompute
from spillprof.planning.options import PlanningOptions, Recomputing
from spillprof.planning.planner import make_plan
from spillprof.verify import verify

COSTS_S_PER_BYTE = 1.0  # of a transfer


def costs(step_s: list[float]) -> Costs:
    return Costs(step_s=step_s, read_s=lambda n: n * COSTS_S_PER_BYTE, write_s=lambda n: n * COSTS_S_PER_BYTE)


def judged(p: Program, step_s: list[float]) -> list[Proposal]:
    plan = make_plan(p, target(), "interval", PlanningOptions())
    assert not verify(p, plan)
    return judged_gaps(p, plan, costs(step_s))


def skip(*, late: str = "a, r, d -> y", r_bytes: int = 10) -> Program:
    """a (100) is made of r, read at once by op2 and again by op5. In between b and c (100 each) fill 230 bytes."""
    return program(
        {"x": ("input", 10), "r": r_bytes, "a": 100, "b": 100, "c": 100, "d": 10, "y": ("output", 10)},
        ["x -> r", "r -> a", "a -> b", "b -> c", "c -> d", late],
        capacity=230,
    )


def test_cheap_with_available_operand_is_recomputed():
    """Moving a costs 200 s, computing it 1 s; r is on-chip, as op5 reads it."""
    (found,) = judged(skip(), [1.0] * 6)
    assert found.choice == Recompute(buffer=2, use_step=5)
    assert found.verdict is GapVerdict.RECOMPUTE
    assert (found.saves_s, found.saves_bytes) == (199.0, 200)


def test_an_output_saves_only_its_reload_as_its_write_is_compulsory():
    p = skip()
    p = replace(p, buffers=tuple(replace(b, kind=BufferKind.OUTPUT) if b.name == "a" else b for b in p.buffers))
    (found,) = judged(p, [1.0] * 6)
    assert (found.verdict, found.saves_s, found.saves_bytes) == (GapVerdict.RECOMPUTE, 99.0, 100)


def test_alignment_padding_is_never_moved_and_so_not_saved():
    """a takes 100 bytes and moves 90, both ways."""
    p = skip()
    p = replace(p, buffers=tuple(replace(b, moved_bytes=90) if b.name == "a" else b for b in p.buffers))
    (found,) = judged(p, [1.0] * 6)
    assert (found.saves_s, found.saves_bytes) == (179.0, 180)


def test_dear_with_available_operand_is_spilled():
    """Computing a takes 150 s: less than 200 s, but not clearly."""
    (found,) = judged(skip(), [1.0, 150.0, 1.0, 1.0, 1.0, 1.0])
    assert found.verdict is GapVerdict.SPILL
    assert found.saves_s == 50.0


def test_dear_with_evicted_operand_is_spilled_carefully():
    """r (120 bytes) is dead by op2, and to keep it 120 bytes are free nowhere: writing and reading it costs 240 s."""
    (found,) = judged(skip(late="a, d -> y", r_bytes=120), [1.0] * 6)
    assert found.verdict is GapVerdict.SPILL_CAREFULLY
    assert found.saves_s == 200 - 1 - 240


def test_dead_operand_is_available_if_it_fits_free_space():
    """r (10 bytes) is dead by op2, but 20 bytes are free all the way."""
    (found,) = judged(skip(late="a, d -> y"), [1.0] * 6)
    assert found.verdict is GapVerdict.RECOMPUTE


def test_operand_that_is_an_input_costs_a_read():
    """a is made of x (120 bytes), which the next steps push out; DRAM has it: 120 s to read, none to write."""
    p = program(
        {"x": ("input", 120), "a": 100, "b": 100, "c": 100, "d": 10, "y": ("output", 10)},
        ["x -> a", "a -> b", "b -> c", "c -> d", "a, d -> y"],
        capacity=230,
    )
    (found,) = judged(p, [1.0] * 5)
    assert found.saves_s == 200 - 1 - 120
    assert found.verdict is GapVerdict.SPILL_CAREFULLY


def test_weights_that_stream_again_count():
    p = program(
        {"x": ("input", 10), "r": 10, "a": 100, "b": 100, "c": 100, "d": 10, "y": ("output", 10)},
        ["x -> r", step("r -> a", weight_stream_bytes=30), "a -> b", "b -> c", "c -> d", "a, r, d -> y"],
        capacity=230,
    )
    (found,) = judged(p, [1.0] * 6)
    assert (found.saves_s, found.saves_bytes) == (200 - 1 - 30, 200 - 30)


def test_first_use_is_left_out():
    """To make a only where it is first read is another order, not a second run."""
    p = program(
        {"x": ("input", 10), "r": 10, "a": 100, "b": 100, "c": 100, "d": 10, "y": ("output", 10)},
        ["x -> r", "r -> a", "r -> b", "b -> c", "c -> d", "a, r, d -> y"],
        capacity=230,
    )
    assert judged(p, [1.0] * 6) == []


def test_savings_are_taken_and_show_in_the_totals():
    machine = target(sram_bytes=230)
    found = recomputed(skip(), run_on(machine, recompute=Recomputing.RULES), Engine())
    assert found is not None
    assert [(c.buffer, c.step, c.saves_bytes) for c in found.copies] == [("a", 5, 200)]
    assert (found.before.spill_bytes, found.after.spill_bytes) == (200, 0)
    assert found.after.latency_s < found.before.latency_s
    assert [s.name for s in found.program.steps][5:] == ["op1 (recomputed)", "op5"]
    assert recomputed(skip(), run_on(machine), Engine()) is None
