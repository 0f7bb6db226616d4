"""The engine agrees with the whole analysis, and cache keys include everything that a stage reads."""

import pickle
from collections.abc import Callable
from dataclasses import fields, replace
from enum import StrEnum
from pathlib import Path

import pytest
from graphs import graph
from programs import run_on, target

from spillprof.engine import keys
from spillprof.engine.engine import Engine
from spillprof.engine.run import Run
from spillprof.explain.analyze import analyze
from spillprof.explain.options import AnalyzeOptions
from spillprof.frontends import read_model
from spillprof.ir.graph import Graph
from spillprof.ir.result import Totals
from spillprof.ir.target import Target, load_target
from spillprof.lowering.fitting import fit, unlimited
from spillprof.lowering.lower import lower
from spillprof.lowering.options import ConvAlgorithm, LoweringOptions, WeightsPolicy
from spillprof.planning.bounds.methods import lower_bound
from spillprof.planning.optimal.search import find_optimum
from spillprof.planning.options import Dma, Order, PlanningOptions, Recomputing
from spillprof.planning.planner import make_plan
from spillprof.planning.strategies import STRATEGIES
from spillprof.timing.issue_times import best_issue_times
from spillprof.timing.timeline import simulate

SAMPLES = Path(__file__).parents[2] / "sample_models"
TARGET = load_target("generic-npu")


@pytest.fixture(scope="module")
def unet() -> Graph:
    return read_model(str(SAMPLES / "unet.onnx"))


@pytest.mark.parametrize("dma", list(Dma))
@pytest.mark.parametrize("sram_bytes", [1 << 18, 1 << 20, 12 << 20])
def test_totals_are_those_of_the_analysis(unet: Graph, sram_bytes: int, dma: Dma) -> None:
    machine = TARGET.with_overrides(sram_bytes=sram_bytes)
    options = AnalyzeOptions(
        strategies=("none", *STRATEGIES),
        lowering=LoweringOptions(weights=WeightsPolicy.CACHED),
        planning=PlanningOptions(dma=dma),
    )
    engine, run = Engine(), Run(graph=unet, target=machine, lowering=options.lowering, planning=options.planning)
    profile = analyze(unet, machine, options)
    assert profile.ideal.latency_s == min([engine.ideal_s(run), *(r.latency_s for r in profile.results)])
    for result in profile.results:
        totals = engine.totals(run, result.strategy, "best-fit")
        assert totals == Totals(**{name: getattr(result, name) for name in Totals.__dataclass_fields__})


def test_limits_are_where_tiling_and_then_spilling_end() -> None:
    branches = read_model(str(SAMPLES / "three_branch.onnx"))
    engine, run = Engine(), Run(graph=branches, target=TARGET)
    smallest, most = engine.sram_limits(run)

    def at(sram_bytes: int) -> Totals:
        return engine.totals(run.at(sram_bytes), "interval", "best-fit")

    assert at(smallest).streamed_bytes == 0
    assert at(smallest - TARGET.alignment_bytes).streamed_bytes > 0
    assert at(smallest).spill_bytes > 0
    assert at(most).spill_bytes == 0


def test_an_ideal_is_shared_only_where_as_much_is_reserved(unet: Graph) -> None:
    engine, run = Engine(), Run(graph=unet, target=TARGET)
    small, large, larger = (engine.ideal(run.at(n)) for n in (1 << 20, 1 << 26, 1 << 27))
    assert large.program.reservations == larger.program.reservations != small.program.reservations
    assert larger is large
    assert small is not large
    assert Engine().ideal(run.at(1 << 27)).timeline.makespan_s == large.timeline.makespan_s


def test_the_same_model_is_lowered_once_for_equal_keys(unet: Graph) -> None:
    engine, run = Engine(), Run(graph=unet, target=TARGET)
    first = engine.lowered(run)
    assert engine.lowered(run.on(dram_read_bytes_per_s=1e9)) is first
    assert engine.lowered(replace(run, graph=replace(unet))) is first  # an equal graph
    assert engine.lowered(run.lowered(act_dtype="int8")) is not first
    assert engine.lowered(replace(run, graph=replace(unet, name="other"))) is not first


def test_im2col_blocks_give_each_sram_its_own_program(unet: Graph) -> None:
    engine = Engine()
    run = Run(graph=unet, target=TARGET, lowering=LoweringOptions(conv=ConvAlgorithm.IM2COL))
    assert engine.lowered(run.at(1 << 18)) != engine.lowered(run)


def test_two_engines_share_no_state(unet: Graph) -> None:
    run = Run(graph=unet, target=TARGET.with_overrides(sram_bytes=1 << 20))
    one, other = Engine(), Engine()
    played = one.play(one.fitted(run), run, "optimal")
    assert all(not cache._values for cache in vars(other).values())
    again = other.play(other.fitted(run), run, "optimal")
    assert again is not played
    assert (again.plan, again.timeline.makespan_s) == (played.plan, played.timeline.makespan_s)
    assert one.play(one.fitted(run), run, "optimal") is played


def test_a_pickled_engine_is_empty(unet: Graph) -> None:
    engine, run = Engine(), Run(graph=unet, target=TARGET)
    engine.ideal(run)
    copy: Engine = pickle.loads(pickle.dumps(engine))
    assert all(not cache._values for cache in vars(copy).values())


def test_a_search_raises_the_bound_and_reports_how_it_ended() -> None:
    model = graph(
        {"x": (64,)},
        ["Relu x -> a", "Neg a -> b", "Exp a -> c", "Abs b -> d", "Add c d -> e", "Add e a -> y"],
        outputs="y",
        tensors=dict.fromkeys(("a", "b", "c", "d", "e", "y"), (64,)),
    )
    engine = Engine()
    run = Run(graph=model, target=TARGET.with_overrides(sram_bytes=896))
    fitted = engine.fitted(run)
    assert engine.bound(fitted, run).cost <= engine.bound(fitted, run, searched=True).cost
    assert engine.optimum(fitted, run).search == "complete"


# --- keys: each stage is watched, and reads nothing that its key leaves out


class _Watched:
    """A target, or options, that remember which fields were read."""

    def __init__(self, value: object) -> None:
        self.value, self.read = value, set[str]()

    def __getattr__(self, name: str) -> object:
        found = getattr(type(self.value), name, None)
        if callable(found):
            return found.__get__(self)
        if isinstance(found, property):
            return found.fget(self)  # type: ignore[misc]
        self.read.add(name)
        return getattr(self.value, name)


def reads(value: Target | PlanningOptions, stage: Callable[..., object]) -> set[str]:
    """Fields of a value that a stage reads. ``replace`` reads all of what it copies, so it is let through unseen."""
    watched = _Watched(value)
    stage(watched)
    return watched.read


MACHINES = {
    "plain": TARGET.with_overrides(sram_bytes=1 << 20),
    "curves": replace(
        TARGET, sram_bytes=1 << 20, dram_read_curve=((0, 1e-6), (1 << 20, 2e-5)),
        dram_write_curve=((0, 1e-6), (64, 2e-6)),
        dram_bus_bytes_per_s=30e9, background_bytes_per_s=1e9, cores=2, dram_outstanding=2, reserved_bytes=4096,
    ),
    "cycles": replace(TARGET, sram_bytes=1 << 20, macs_per_s={}, macs_per_cycle={"default": 64.0}, clock_hz=1e9),
}  # fmt: skip


@pytest.mark.parametrize("conv", list(ConvAlgorithm))
def test_lowering_reads_nothing_that_its_key_leaves_out(unet: Graph, conv: ConvAlgorithm) -> None:
    options = LoweringOptions(conv=conv)
    for machine in MACHINES.values():
        read = reads(machine, lambda t: lower(unet, t, options, run_s=lambda program: float(len(program.steps))))
        assert read
        assert not read & keys.unread_by_lowering(options)


@pytest.mark.parametrize("weights", list(WeightsPolicy))
@pytest.mark.parametrize("machine", MACHINES)
def test_fitting_reads_nothing_that_its_key_leaves_out(unet: Graph, machine: str, weights: WeightsPolicy) -> None:
    options = LoweringOptions(weights=weights)
    program = lower(unet, MACHINES[machine], options)
    read = reads(MACHINES[machine].with_overrides(sram_bytes=4 << 20), lambda t: fit(program, t, options))
    assert "sram_bytes" in read
    assert not read & keys.UNREAD_BY_FIT
    assert not reads(MACHINES[machine], lambda t: unlimited(program, t, options)) & keys.UNREAD_BY_FIT


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_planning_reads_nothing_that_its_key_leaves_out(unet: Graph, machine: str, strategy: str) -> None:
    on = MACHINES[machine]
    fitted = fit(lower(unet, on, LoweringOptions()), on, LoweringOptions())
    read = reads(on, lambda t: make_plan(fitted, t, strategy, PlanningOptions()))
    assert read
    assert not read & keys.UNREAD_BY_PLANNING
    if strategy != "optimal":  # which copies its options whole
        read = reads(PlanningOptions(), lambda o: make_plan(fitted, on, strategy, o))
        assert {"placement", "writeback"} <= read | {"placement"}
        assert not read & (keys.OF_THE_PROGRAM | keys.OF_THE_SEARCH | {"dma"})


def test_the_optimum_is_the_same_whatever_its_key_leaves_out(unet: Graph) -> None:
    on = MACHINES["plain"]
    fitted = fit(lower(unet, on, LoweringOptions()), on, LoweringOptions())

    def found(options: PlanningOptions) -> object:
        return find_optimum(fitted, on, options, lambda strategy: make_plan(fitted, on, strategy, options))

    plain = PlanningOptions()
    others = {"dma": Dma.DEMAND, "order": Order.MEMORY, "recompute": Recomputing.RULES, "recompute_tensor": ("a",)}
    assert set(others) == keys.OF_THE_PROGRAM | {"dma"}
    for name, value in others.items():
        assert found(replace(plain, **{name: value})) == found(plain)  # type: ignore[arg-type]


def test_the_bound_is_the_same_whatever_its_key_leaves_out(unet: Graph) -> None:
    on = MACHINES["plain"]
    fitted = fit(lower(unet, on, LoweringOptions()), on, LoweringOptions())
    plain = PlanningOptions()
    unread = [f.name for f in fields(PlanningOptions) if f.name not in keys.OF_THE_BOUND]
    for name in unread:
        other = replace(plain, **{name: _another(name, getattr(plain, name))})
        assert other != plain
        assert lower_bound(fitted, other).cost == lower_bound(fitted, plain).cost, name


def _another(name: str, value: object) -> object:
    """Another value of an option than its default."""
    if isinstance(value, StrEnum):
        return next(member for member in type(value) if member is not value)
    if isinstance(value, bool):
        return not value
    others = {"placement": "first-fit", "optimize_seconds": 1.0}
    return others.get(name, ("a",) if isinstance(value, tuple) else 1)


@pytest.mark.parametrize("machine", MACHINES)
def test_playing_reads_nothing_that_its_key_leaves_out(unet: Graph, machine: str) -> None:
    on = MACHINES[machine]
    fitted = fit(lower(unet, on, LoweringOptions()), on, LoweringOptions())
    plan = make_plan(fitted, on, "lru", PlanningOptions())
    for play in (best_issue_times, simulate):
        read = reads(on, lambda t, play=play: play(fitted, plan, t))
        assert "cores" in read
        assert not read & keys.UNREAD_BY_PLAYING


def test_groups_of_fields_are_apart_and_a_new_field_is_in_every_key() -> None:
    groups = (
        keys.NAMES_FIELDS,
        keys.MEMORY_FIELDS,
        keys.LAYOUT_FIELDS,
        keys.BANDWIDTH_FIELDS,
        keys.COMPUTE_FIELDS,
        keys.ENERGY_FIELDS,
    )
    names = [f.name for f in fields(Target)]
    assert sorted(name for group in groups for name in group) == sorted(names)
    machine = target(sram_bytes=64)
    assert len(keys.target_key(machine, ())) == len(names)
    assert len(keys.planning_key(run_on(machine).planning, ())) == len(fields(PlanningOptions))
