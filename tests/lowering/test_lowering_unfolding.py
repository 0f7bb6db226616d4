"""If, Loop and Scan unfolded: the same operators as in a model written without control flow."""

import sys
from dataclasses import replace

import pytest
from graphs import MACHINE, PLAIN, graph, lowered, op, picture
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import run_on

from spillprof.analysis.inspection import inspect_graph
from spillprof.engine.engine import Engine
from spillprof.ir.graph import Graph, TripBasis, Trips
from spillprof.ir.target import Target
from spillprof.lowering import bodies
from spillprof.lowering.fitting import fit
from spillprof.lowering.lower import lower
from spillprof.lowering.options import Control, LoweringOptions
from spillprof.planning.liveness import live_bytes_by_step
from spillprof.planning.strategies import STRATEGIES
from spillprof.planning.traffic import count_traffic

X, COND, INT = (4,), ("bool", ()), ("int64", ())
UNFOLDED = replace(PLAIN, control=Control.UNFOLD)
"""Nothing done but the unfolding."""


def peak(g: Graph, options: LoweringOptions = UNFOLDED) -> int:
    return inspect_graph(g, MACHINE, options).peak_live_bytes


def unary(source: str, result: str = "r", size: tuple[int, ...] = X) -> Graph:
    """A branch of one operator that captures its operand."""
    return graph({}, [f"Softmax {source} -> {result}"], result, tensors={source: X, result: size})


# If


def test_branch_that_does_not_read_a_tensor_releases_it_when_the_condition_is_known():
    """``a`` (16 B) is read by the branch that needs less; the other holds 2 x 64 B beside its 16 B result."""
    wide = graph({}, ["Expand b -> m", "Softmax m -> n", "ReduceSum n -> r"], "r",
                 tensors={"b": X, "m": (16,), "n": (16,), "r": X})  # fmt: skip
    ops = ["Softmax x -> a", "Softmax x -> b", op("If c -> y", captures="a b", subgraphs=[unary("a"), wide])]
    g = graph({"c": COND, "x": X}, ops, "y", tensors={"a": X, "b": X, "y": X})
    program = lowered(g, inplace=False, fold=False)
    assert picture(program) == [
        "Softmax x -> a", "Softmax x -> b", "If c ->",
        "Expand b -> y/else/m", "Softmax y/else/m -> y/else/n", "ReduceSum y/else/n -> y",
    ]  # fmt: skip
    # a and c are gone after the decision
    assert live_bytes_by_step(program, stored=False).tolist() == [1 + 16 + 16, 1 + 16 + 32, 1 + 32, 16 + 64, 128, 80]


def test_tensor_that_only_the_branch_keeps_alive_counts_as_its_cost():
    """Both branches write 16 B; one holds the 400 B of ``big``, which nobody needs otherwise."""
    ops = ["Expand x -> big", "Softmax x -> b",
           op("If c -> y", captures="b big", subgraphs=[
               graph({}, ["Softmax b -> m", "Softmax m -> r"], "r", tensors={"b": X, "m": X, "r": X}),
               graph({}, ["ReduceSum big -> r"], "r", tensors={"big": (100,), "r": X}),
           ])]  # fmt: skip
    tensors = {"big": (100,), "b": X, "y": X}
    assert picture(lowered(graph({"c": COND, "x": X}, ops, "y", tensors=tensors)))[-1] == "ReduceSum big -> y"
    # read once more behind the If, it is there in either branch: of equal peaks the first with equal products
    ops = [*ops, "ReduceSum big -> z"]
    program = lowered(graph({"c": COND, "x": X}, ops, "y z", tensors={**tensors, "z": X}))
    assert picture(program)[-2:] == ["Softmax y/then/m -> y", "ReduceSum big -> z"]


def test_of_branches_that_are_equal_the_one_that_computes_more_is_taken_then_the_first():
    product = graph({}, ["MatMul x w -> r"], "r", weights={"w": (4, 4)}, tensors={"x": X, "r": X})

    def taken(first, second):
        g = graph({"c": COND, "x": X}, [op("If c -> y", captures="x", subgraphs=[first, second])], "y",
                  tensors={"y": X})  # fmt: skip
        return lowered(g).control_flow[0]

    assert [b.runs for b in taken(unary("x"), product).bodies] == [0, 1]
    assert [b.runs for b in taken(product, unary("x")).bodies] == [1, 0]
    assert [b.runs for b in taken(unary("x"), unary("x")).bodies] == [1, 0]


def test_branch_that_passes_a_tensor_through_is_a_view():
    passing = graph({}, [], "x x", tensors={"x": X})
    ops = [op("If c -> y z", captures="x", subgraphs=[passing, passing]), "Add y z -> s"]
    g = graph({"c": COND, "x": X}, ops, "s", tensors={"y": X, "z": X, "s": X})
    assert picture(lowered(g)) == ["If c ->", "Add x -> x=>s"]


def test_if_whose_result_nobody_reads_is_left_out_with_its_condition():
    ops = ["Greater x -> c", op("If c -> y", captures="x", subgraphs=[unary("x"), unary("x")]), "Softmax x -> z"]
    program = lowered(graph({"x": X}, ops, "z", tensors={"c": COND, "y": X, "z": X}))
    assert picture(program) == ["Softmax x -> z"]
    assert program.removed_operators == 2


def test_result_that_is_read_earlier_in_the_file_keeps_its_if():
    ops = ["Softmax y -> z", op("If c -> y", captures="x", subgraphs=[unary("x"), unary("x")])]
    program = lowered(graph({"c": COND, "x": X}, ops, "z", tensors={"y": X, "z": X}))
    assert picture(program) == ["If c ->", "Softmax x -> y", "Softmax y -> z"]


def test_each_branch_says_what_it_costs():
    product = graph({}, ["MatMul x w -> m", "ReduceSum m -> r"], "r", weights={"w": (4, 8)},
                    tensors={"x": X, "m": (8,), "r": X})  # fmt: skip
    g = graph({"c": COND, "x": X}, [op("If c -> y", captures="x", subgraphs=[unary("x"), product])], "y",
              tensors={"y": X})  # fmt: skip
    (fact,) = lowered(g).control_flow
    # x dies in either branch: 16 + 16, and 32 for m beside x or y
    assert [(b.name, b.runs, b.operators, b.macs, b.peak_live_bytes) for b in fact.bodies] == [
        ("then", 0, 1, 0, 32), ("else", 1, 2, 32, 48)
    ]  # fmt: skip


# Loop


def step_body(operators: str = "Softmax s -> t;Add t k -> s2", stacked: str = "") -> Graph:
    """A trip: the state through two operators, the second reads a captured ``k``."""
    return graph({"i": INT, "go": COND, "s": X}, operators.split(";"), f"go s2 {stacked}",
                 tensors={"t": X, "k": X, "s2": X})  # fmt: skip


def loop_model(trips: int | Trips, results: str = "y", *, stacked: str = "", tail: str = "") -> Graph:
    loop = op(f"Loop n - h -> {results}", captures="k", subgraphs=[step_body(stacked=stacked)], trips=trips)
    count = trips if isinstance(trips, int) else trips.count
    ops = (
        ["Softmax x -> k", "Softmax x -> h", loop, *tail.split(";")]
        if tail
        else ["Softmax x -> k", "Softmax x -> h", loop]
    )
    return graph({"x": X}, ops, results.replace("-", ""), weights={"n": INT},
                 tensors={"k": X, "h": X, "y": X, "all": (count, *X)})  # fmt: skip


def test_loop_of_three_trips_is_what_one_would_write_by_hand():
    unrolled = graph(
        {"x": X},
        ["Softmax x -> k", "Softmax x -> h", "Softmax h -> t0", "Add t0 k -> s0", "Softmax s0 -> t1",
         "Add t1 k -> s1", "Softmax s1 -> t2", "Add t2 k -> y"],
        "y", tensors=dict.fromkeys(("k", "h", "t0", "s0", "t1", "s1", "t2", "y"), X),
    )  # fmt: skip
    assert picture(lowered(loop_model(3))) == [
        "Softmax x -> k", "Softmax x -> h", "Softmax h -> y/0/t", "Add y/0/t k -> y/0/t=>y/0/s2",
        "Softmax y/0/s2 -> y/1/t", "Add y/1/t k -> y/1/t=>y/1/s2",
        "Softmax y/1/s2 -> y/2/t", "Add y/2/t k -> y/2/t=>y",
    ]  # fmt: skip
    assert same_figures(loop_model(3), unrolled)


def test_capture_lives_to_the_last_trip_and_no_longer():
    facts = {t.name: t.last_use for t in inspect_graph(loop_model(3), MACHINE, UNFOLDED).tensors}
    assert facts["k"] == 7  # the Add of the last trip


def test_loop_whose_length_depends_on_data_decides_before_each_trip_and_at_the_end():
    program = lowered(loop_model(Trips(count=2, basis=TripBasis.GIVEN)), fold=False)
    assert [line.split()[0] for line in picture(program)] == [
        "Softmax", "Softmax", "Loop", "Softmax", "Add", "Loop", "Softmax", "Add", "Loop"
    ]  # fmt: skip


def test_loop_that_never_runs_passes_its_state_on():
    program = lowered(loop_model(0, "y all", stacked="s2"))
    assert picture(program) == ["Softmax x -> h"]
    assert program.buffers[-1].tensors == ("h", "y")


def test_stacked_output_is_collected_in_one_buffer_slice_by_slice():
    program = lowered(loop_model(3, "- all", stacked="s2"), fold=False, inplace=False)
    appends = [step for step in program.steps if step.op_type == "ScanAppend"]
    assert [step.touched_bytes for step in appends] == [32, 32, 32]  # a slice read and written
    assert [len(step.updates) for step in appends] == [0, 1, 1]
    # the stack (48 B) from the first trip on, k, and the state going through two operators
    assert int(live_bytes_by_step(program, stored=False).max()) == 48 + 16 + 16 + 16


def test_weight_of_a_body_is_one_weight_in_every_trip():
    body = graph(
        {"i": INT, "go": COND, "s": X}, ["MatMul s w -> s2"], "go s2", weights={"w": (4, 4)}, tensors={"s2": X}
    )
    g = graph({"x": X}, [op("Loop n - x -> y", subgraphs=[body], trips=5)], "y", weights={"n": INT}, tensors={"y": X})
    program = lowered(g)
    assert program.weight_bytes == 64
    assert [step.weight_stream_bytes for step in program.steps] == [64] * 5


def test_growing_state_has_its_own_size_in_every_trip():
    def trip(n: int) -> Graph:
        return graph({"i": INT, "go": COND, "s": (n,)}, ["Concat s k -> s2"], "go s2", tensors={"k": X, "s2": (n + 4,)})

    loop = op("Loop n - x -> y", captures="k", subgraphs=[trip(4), trip(8), trip(12)], trips=3)
    g = graph({"x": X, "k": X}, [loop], "y", weights={"n": INT}, tensors={"y": (16,)})
    program = lowered(g)
    assert [b.payload_bytes for b in program.buffers] == [16, 16, 32, 48, 64]
    assert peak(g) == 48 + 64 + 16


def test_loop_that_would_unfold_too_far_is_one_step_and_says_so():
    program = lowered(loop_model(bodies.UNFOLD_LIMIT))
    assert [step.op_type for step in program.steps] == ["Softmax", "Softmax", "Loop"]
    assert any("trips are one step" in a.what for a in program.assumptions)
    assert not program.control_flow[0].is_unfolded


def test_limit_that_no_run_reaches_is_no_trip_count():
    program = lowered(loop_model(Trips(count=2**62, basis=TripBasis.AT_MOST)))
    assert program.control_flow[0].trips == "assumed"
    assert program.control_flow[0].bodies[0].runs == 2


# Scan


def scan_model(axis: int, shape: tuple[int, ...]) -> Graph:
    body = graph({"s": X, "e": X}, ["Add s e -> s2"], "s2 s2", tensors={"s2": X})
    scan = op("Scan h xs -> last all", subgraphs=[body], num_scan_inputs=1, scan_input_axes=(axis,), trips=3)
    return graph({"h": X, "xs": shape}, [scan], "last all", tensors={"last": X, "all": (3, 4)})


def test_scan_reads_its_slices_where_they_lie_if_they_lie_in_one_piece():
    along = [line for line in picture(lowered(scan_model(0, (3, 4)))) if line.startswith("Add")]
    assert along[0] == "Add h xs -> h=>last/0/s2"
    across = lowered(scan_model(1, (4, 3)))
    assert [s.op_type for s in across.steps][:3] == ["ScanSlice", "Add", "ScanAppend"]
    assert across.steps[0].touched_bytes == 32
    assert "ScanSlice" not in str(picture(lowered(scan_model(1, (4, 3)), replace(MACHINE, strided_views=True))))


def test_scan_of_the_first_version_has_a_batch_and_stays_one_step():
    scan = replace(scan_model(0, (3, 4)).operators[0], inputs=("", "h", "xs"))
    g = replace(scan_model(0, (3, 4)), operators=(scan,))
    assert [step.op_type for step in lowered(g).steps] == ["Scan"]


# Nesting, names, depth


def test_if_in_a_loop_in_a_scan():
    choice = op("If go -> u", name="choose", captures="s", subgraphs=[unary("s"), unary("s")])
    inner = graph({"i": INT, "go": COND, "s": X}, [choice], "go u", tensors={"u": X})
    loop = op(
        "Loop n - s -> t", name="again", captures="", subgraphs=[inner], trips=Trips(count=2, basis=TripBasis.GIVEN)
    )
    body = graph({"s": X, "e": X}, [loop, "Add t e -> s2"], "s2 t", weights={"n": INT}, tensors={"t": X, "s2": X})
    scan = op("Scan h xs -> last all", name="scan", captures="n", subgraphs=[body], num_scan_inputs=1, trips=2)
    g = graph({"h": X, "xs": (2, 4)}, [scan], "last all", weights={"n": INT}, tensors={"last": X, "all": (2, 4)})
    program = lowered(g, fold=False)
    names = [step.name for step in program.steps if step.op_type == "Softmax"]
    assert names == [f"scan/{i}/again/{k}/choose/then/r" for i in range(2) for k in range(2)]
    assert [(f.op_type, f.inside) for f in program.control_flow] == [
        ("Scan", ""), ("Loop", "scan/0"), ("If", "scan/0/again/0")
    ]  # fmt: skip
    assert len({s.name for s in program.steps}) == len(program.steps)


def test_names_of_the_model_that_look_like_unfolded_ones_stay_apart():
    ops = [op("Softmax x -> y/then/r", name="y/then/r"), op("If c -> y", captures="x", subgraphs=[deep(), deep()]),
           "Add y y/then/r -> z"]  # fmt: skip
    g = graph({"c": COND, "x": X}, ops, "z", tensors={"y/then/r": X, "y": X, "z": X})
    program = lowered(g)
    assert len({s.name for s in program.steps}) == len(program.steps)
    assert len({b.name for b in program.buffers}) == len(program.buffers)


def deep() -> Graph:
    return graph({}, ["Softmax x -> r", "Softmax r -> q"], "q", tensors={"x": X, "r": X, "q": X})


def nested(levels: int) -> Graph:
    body = unary("x")
    for _ in range(levels):
        inner = op("If c -> r", captures="c x", subgraphs=[body, unary("x")])
        body = graph({}, [inner], "r", tensors={"c": COND, "x": X, "r": X})
        body = replace(body, captures=("c", "x"))
    return replace(graph({"c": COND, "x": X}, body.operators, "r", tensors={"r": X}), name="nested")


@pytest.mark.parametrize("control", Control)
def test_deeply_nested_bodies_need_no_recursion(control: Control):
    depth = 2000
    assert depth > sys.getrecursionlimit()
    program = lower(nested(depth), MACHINE, LoweringOptions(control=control))
    assert len(program.steps) == (depth + 1 if control is Control.UNFOLD else 1)
    assert max(len(step.name) for step in program.steps) < 400
    said = [a for a in program.assumptions if a.what.startswith("If 'r'")]
    assert len(program.assumptions) <= 21
    assert sum(a.count for a in program.assumptions) == (depth if control is Control.UNFOLD else len(said))


# Any body


@st.composite
def bodies_by_hand(draw: st.DrawFn) -> tuple[Graph, Graph]:
    """A loop over a random body, and the same written out trip by trip."""
    trips = draw(st.integers(1, 4))
    count = draw(st.integers(1, 5))
    sizes = [draw(st.sampled_from([(1,), (4,), (9,)])) for _ in range(count)]
    known = {"s": X, "k": X, "h": X}
    reads = []
    for i in range(count):
        sources = draw(st.lists(st.sampled_from(["s", "k", *(f"v{j}" for j in range(i))]), min_size=1, max_size=3))
        reads.append(sources)
        known[f"v{i}"] = sizes[i]
    state = draw(st.sampled_from([f"v{i}" for i in range(count)]))
    sizes[int(state[1:])] = known[state] = X
    ops = [f"Concat {' '.join(r)} -> v{i}" for i, r in enumerate(reads)]
    body = graph(
        {"i": INT, "go": COND, "s": X}, ops, f"go {state}", tensors={n: known[n] for n in known if n not in "sh"}
    )
    start = ["Softmax x -> k", "Softmax k -> h"]
    loop = op("Loop n - h -> y", captures="k", subgraphs=[body], trips=trips)
    end = draw(st.sampled_from([[], ["Add y k -> z"]]))
    outputs = "z" if end else "y"
    plain = {"k": X, "h": X, "y": X, "z": X}
    looped = graph({"x": X}, [*start, loop, *end], outputs, weights={"n": INT}, tensors=plain)
    written, tensors, before = list(start), dict(plain), "h"
    for trip in range(trips):
        names = {"s": before, "k": "k", **{f"v{i}": f"t{trip}v{i}" for i in range(count)}}
        if trip == trips - 1:
            names[state] = "y"
        for i, sources in enumerate(reads):
            result = names[f"v{i}"]
            tensors[result] = sizes[i]
            written.append(f"Concat {' '.join(names[n] for n in sources)} -> {result}")
        before = names[state]
    return looped, graph({"x": X}, [*written, *end], outputs, tensors=tensors)


@settings(max_examples=60, deadline=None)
@given(bodies_by_hand())
def test_any_loop_equals_the_same_trips_written_out(pair: tuple[Graph, Graph]):
    assert same_figures(*pair)


def same_figures(looped: Graph, written: Graph) -> bool:
    """Whether two models have the same peaks, and the same plans in a memory of two thirds of that."""
    for options in (UNFOLDED, LoweringOptions()):
        assert peak(looped, options) == peak(written, options)
        mine, theirs = (lowered(g, control=Control.UNFOLD, **_switches(options)) for g in (looped, written))
        assert [s.op_type for s in mine.steps] == [s.op_type for s in theirs.steps]
        target = MACHINE.with_overrides(sram_bytes=max(2 * peak(looped, options) // 3, 64))
        for strategy in STRATEGIES[:2]:
            assert spills(mine, target, options, strategy) == spills(theirs, target, options, strategy)
    return True


def _switches(options: LoweringOptions) -> dict[str, object]:
    return {name: getattr(options, name) for name in ("fuse", "inplace", "views", "fold")}


def spills(program, target: Target, options: LoweringOptions, strategy: str) -> tuple[int, int]:
    """(spill bytes, all bytes) of a plan, verified."""
    fitted = fit(program, target, options)
    plan = Engine().play(fitted, run_on(target), strategy).plan
    traffic = count_traffic(fitted, plan)
    return traffic.spill_bytes, traffic.compulsory_read_bytes + traffic.compulsory_write_bytes
