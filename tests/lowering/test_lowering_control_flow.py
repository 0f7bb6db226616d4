"""If, Loop and Scan in one step (``--control-flow step``): its bodies costed, their memory a workspace."""

from graphs import graph, lowered, op, picture

from spillprof.ir.graph import TripBasis, Trips
from spillprof.ir.program import Phase
from spillprof.lowering.options import Control, WeightsPolicy

X, Y = (2, 4), (2, 8)


def in_one_step(g, **options):
    return lowered(g, control=Control.STEP, **options)


def product(width, *, name):
    """A body that multiplies the captured x by a weight of its own and narrows the result."""
    return graph({}, ["MatMul x w -> m", "ReduceSum m -> r"], "r", weights={"w": (4, width)},
                 tensors={"x": X, "m": (2, width), "r": (2, 1)}, name=name)  # fmt: skip


def conditional():
    ops = [op("If c -> y", captures="x", subgraphs=[product(8, name="then"), product(16, name="else")])]
    return graph({"c": ("bool", ()), "x": X}, ops, "y", tensors={"y": (2, 1)})


def test_if_is_one_step_that_reads_its_captures():
    assert picture(in_one_step(conditional())) == ["If c x -> y"]


def test_if_costs_the_branch_that_needs_more_memory():
    """2 x 4 x 16 products, weights 4 x 16 x 4 B, and m (128 B) live beside the result."""
    program = in_one_step(conditional())
    (step,) = program.steps
    assert step.macs == 128
    assert (step.weight_stream_bytes, program.weight_bytes) == (256, 256)
    assert [(w.purpose, w.size_bytes, w.first, w.last) for w in step.workspaces] == [
        ("body", 128, Phase.READ, Phase.WRITE)
    ]
    assert step.mac_dtype == "float32"
    assert [(a.what, a.count) for a in program.assumptions] == [
        (
            "If 'y': else (2 operators, 128 MACs, 160 B live) is taken, not then (2 operators, 64 MACs, 96 B live), "
            "which needs no more memory (--branch y=then or else)",
            1,
        )
    ]


def test_weights_of_a_body_are_cached_under_a_name_of_their_own():
    program = in_one_step(conditional(), weights=WeightsPolicy.CACHED)
    assert picture(program) == ["If c x y/w -> y"]


def test_what_only_the_other_branch_captures_is_held_but_not_read():
    def branch(weight, size):
        return graph({}, [f"Softmax {weight} -> r"], "r", tensors={weight: size, "r": size})

    ops = ["Softmax x -> v", "Softmax x -> w",
           op("If c -> y", captures="v w", subgraphs=[branch("v", X), branch("w", Y)])]  # fmt: skip
    g = graph({"c": ("bool", ()), "x": X}, ops, "y", tensors={"v": X, "w": Y, "y": Y})
    assert picture(in_one_step(g, fold=False)) == ["Softmax x -> v", "Softmax x -> w", "If c w -> y"]
    program = in_one_step(g)
    assert picture(program) == ["Softmax x -> v", "Softmax x -> w", "If c w -> y"]
    assert [[program.buffers[b].name for b in step.holds] for step in program.steps] == [[], [], ["v"]]


def loop_body(outputs):
    inputs = {"i": ("int64", ()), "go": ("bool", ()), "s": X}
    ops = ["MatMul s w -> s2", "Identity go -> g2"]
    return graph(inputs, ops, outputs, weights={"w": (4, 4)}, tensors={"s2": X, "g2": ("bool", ())})


def test_loop_costs_all_its_trips():
    loop = op("Loop n c s -> last all", subgraphs=[loop_body("g2 s2 s2")], trips=5)
    g = graph({"s": X, "n": ("int64", ())}, [loop], "last all", weights={"c": ("bool", ())},
              tensors={"last": X, "all": (5, 2, 4)})  # fmt: skip
    program = in_one_step(g)
    assert program.steps[0].macs == 5 * 2 * 4 * 4
    # a trip touches s, w, s2 and the condition twice; results are written and weights fetched once
    assert program.steps[0].touched_bytes == 5 * (32 + 64 + 32 + 2) + 32 + 160 + 65
    assert [a.what for a in program.assumptions] == ["Loop 'last': its 5 trips are one step, weights fetched once"]


def test_loop_of_unknown_length_runs_twice_and_says_so():
    g = graph({"s": X, "n": ("int64", ())}, [op("Loop n c s -> last", subgraphs=[loop_body("g2 s2")])], "last",
              weights={"c": ("bool", ())}, tensors={"last": X})  # fmt: skip
    program = in_one_step(g)
    assert program.steps[0].macs == 2 * 32
    (assumption,) = program.assumptions
    assert assumption.what.startswith("Loop 'last': taken to run 2 times")
    assert "--trips last=N" in assumption.what


def test_unknown_length_follows_from_the_size_of_what_is_stacked():
    loop = op("Loop n c s -> - all", subgraphs=[loop_body("g2 s2 s2")], trips=Trips(count=2, basis=TripBasis.ASSUMED))
    g = graph({"s": X, "n": ("int64", ())}, [loop], "all", weights={"c": ("bool", ())}, tensors={"all": (7, 2, 4)})
    assert in_one_step(g).steps[0].macs == 7 * 32


def test_scan_costs_the_length_of_its_scanned_axis():
    body = graph({"s": X, "e": X}, ["MatMul e w -> m", "Add s m -> s2"], "s2 s2", weights={"w": (4, 4)},
                 tensors={"m": X, "s2": X})  # fmt: skip
    scan = op("Scan s xs -> last all", subgraphs=[body], num_scan_inputs=1, scan_input_axes=(1,), trips=7)
    g = graph({"s": X, "xs": (2, 7, 4)}, [scan], "last all", tensors={"last": X, "all": (7, 2, 4)})
    program = in_one_step(g)
    assert program.steps[0].macs == 7 * 32
    # m and s2 live at once in the body: 2 x 32 B
    assert [w.size_bytes for w in program.steps[0].workspaces] == [64]


def test_nested_bodies_add_up():
    inner = op("If c -> r", captures="x", subgraphs=[product(8, name="a"), product(16, name="b")])
    outer = graph({}, [inner, "Neg r -> q"], "q", tensors={"x": X, "c": ("bool", ()), "r": (2, 1), "q": (2, 1)})
    g = graph({"c": ("bool", ()), "x": X}, [op("If c -> y", captures="c x", subgraphs=[outer, outer])], "y",
              tensors={"y": (2, 1)})  # fmt: skip
    program = in_one_step(g)
    (step,) = program.steps
    assert (step.macs, program.weight_bytes) == (128, 256)
    # r (8 B) is written while the inner branch holds m (128 B)
    assert step.workspaces[0].size_bytes == 136
