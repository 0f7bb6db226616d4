"""Modes and gaps chosen together, against every choice: the optimum reaches the best, the bound stays below."""

from collections.abc import Mapping, Sequence
from math import prod

from all_choices import AllChoices
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_graphs import Draw, small_runs
from scale import examples

from spillprof.engine.engine import Engine
from spillprof.engine.run import Run
from spillprof.ir.loop_nest import LoopNest, Tiling
from spillprof.ir.modes import OperandTraffic, StepMode, StepNest
from spillprof.ir.program import Program
from spillprof.planning.bounds.methods import lower_bound
from spillprof.planning.placements import PERFECT
from spillprof.planning.planner import make_plan, optimize
from spillprof.planning.strategies import STRATEGIES
from spillprof.planning.tiling.menus import menu
from spillprof.planning.traffic import count_traffic
from spillprof.verify.nest import recount_nest

MOST_COMBINATIONS = 20_000
MOST_GAPS = 9
SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)


def menus(program: Program, choices: AllChoices) -> dict[int, list[StepMode | None]]:
    """The ways to run each step that is over capacity if nothing leaves, or that may read a part of a buffer."""
    found = {i: [item.mode for item in menu(program, i)] for i, step in enumerate(program.steps) if step.nest}
    full = choices.over_full()
    return {i: ways for i, ways in found.items() if i in full or any(reads_less(program, mode) for mode in ways)}


def reads_less(program: Program, mode: StepMode | None) -> bool:
    if mode is None:
        return False
    reads = [each for each in mode.traffic if each.buffer in program.steps[mode.step].reads]
    return any(each.read_bytes < program.buffers[each.buffer].moved_bytes for each in reads)


def can_be_tried(choices: AllChoices, ways: Mapping[int, Sequence[StepMode | None]]) -> bool:
    return prod(map(len, ways.values())) <= MOST_COMBINATIONS and sum(bool(g.idle) for g in choices.gaps) <= MOST_GAPS


@settings(max_examples=examples(300), deadline=None, suppress_health_check=SLOW)
@given(run=small_runs(4, placement=PERFECT))
def test_the_optimum_is_the_best_of_all_modes_and_gaps_and_the_bound_below_it(run: Run) -> None:
    program = Engine().fitted(run)
    choices = AllChoices(program)
    ways = menus(program, choices)
    if not can_be_tried(choices, ways):
        return
    best = choices.best(ways)
    assert best is not None
    bound = lower_bound(program, run.planning)
    assert bound.cost <= best
    found = optimize(program, run.target, run.planning)
    assert found.bound.cost <= best
    assert {count_traffic(program, plan).spill_bytes for plan in found.plans} == {best}


@settings(max_examples=examples(60), deadline=None, suppress_health_check=SLOW)
@given(run=small_runs(4), strategy=st.sampled_from(STRATEGIES))
def test_no_plan_moves_less_than_the_best_gaps_in_its_modes(run: Run, strategy: str) -> None:
    program = Engine().fitted(run)
    choices = AllChoices(program)
    if not can_be_tried(choices, {}):
        return
    plan = make_plan(program, run.target, strategy, run.planning)
    best = choices.better({mode.step: mode for mode in plan.modes})
    assert best is not None
    assert count_traffic(program, plan).spill_bytes >= best


# --- tilings that no planner of ours would choose


@st.composite
def any_tilings(draw: Draw, nest: LoopNest, held: frozenset[int]) -> Tiling:
    """Any tiling with these operands held: no family, no search."""
    tile = tuple(
        axis.size if position in nest.whole else draw(st.integers(1, axis.size))
        for position, axis in enumerate(nest.axes)
    )
    # loops that only held operands depend on are not of the family: cut inside, they would spare double buffers
    followed = frozenset().union(*(operand.axes for p, operand in enumerate(nest.operands) if p not in held))
    tile = tuple(size if a in followed else nest.axes[a].size for a, size in enumerate(tile))
    cut = [position for position, axis in enumerate(nest.axes) if tile[position] < axis.size]
    streamed = [p for p, operand in enumerate(nest.operands) if p not in held and not operand.is_output]
    return Tiling(
        tile=tile,
        order=tuple(draw(st.permutations(cut))),
        held=held,
        line_buffered=frozenset(p for p in streamed if draw(st.booleans())),
    )


def counted(program: Program, i: int, own: StepNest, tiling: Tiling) -> StepMode:
    """The mode that a tiling is, counted by the verifier's code."""
    step = program.steps[i]
    operands = (*step.reads, *step.writes)
    count = recount_nest(
        own.nest, tiling, accumulator_bits=own.accumulator_bits, alignment_bytes=program.alignment_bytes
    )
    read: dict[int, int] = {}
    written: dict[int, int] = {}
    repeated = 0
    for p, (operand, place) in enumerate(zip(own.nest.operands, own.places, strict=True)):
        if p in tiling.held:
            continue
        if place is None:
            repeated += max(0, count.read_bytes[p] - operand.nbytes)
        else:
            b = operands[place]
            read[b] = read.get(b, 0) + count.read_bytes[p]
            written[b] = written.get(b, 0) + count.written_bytes[p]
    traffic = tuple(
        OperandTraffic(buffer=b, read_bytes=read[b], written_bytes=written[b], passes=1, transfers=1) for b in read
    )
    return StepMode(
        step=i, tiling=tiling, footprint_bytes=count.footprint_bytes, tiles=1, traffic=traffic,
        weight_repeat_bytes=repeated,
    )  # fmt: skip


@st.composite
def any_modes(draw: Draw) -> tuple[Run, dict[int, StepMode | None]]:
    """A way to run each step of a small graph, drawn at random, in a memory that it fits."""
    run = draw(small_runs(4))
    program = Engine().fitted(run)
    modes: dict[int, StepMode | None] = {}
    for i, step in enumerate(program.steps):
        own = step.nest
        if own is None or draw(st.integers(0, 3)) == 0:
            continue
        held = own.operands_at(place for place in own.places if place is not None and draw(st.booleans()))
        if len(held) < len(own.places):
            modes[i] = counted(program, i, own, draw(any_tilings(own.nest, held)))
    least, unit = program.reserved_bytes + AllChoices(program).least_pool(modes), run.target.alignment_bytes
    room = draw(st.sampled_from([0, 0, 1, 2, 5])) * max(buffer.size_bytes for buffer in program.buffers) // 4
    return run.at(-(-(least + room) // unit) * unit), modes


@settings(max_examples=examples(300), deadline=None, suppress_health_check=SLOW)
@given(case=any_modes())
def test_the_bound_is_below_tilings_drawn_at_random(case: tuple[Run, dict[int, StepMode | None]]) -> None:
    run, modes = case
    program = Engine().fitted(run)
    choices = AllChoices(program)
    if not can_be_tried(choices, {}):
        return
    moved = choices.better(modes)
    assert moved is not None  # the memory was drawn so
    assert lower_bound(program, run.planning).cost <= moved
