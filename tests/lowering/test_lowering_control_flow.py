"""If, Loop and Scan: one step, its bodies costed."""

from graphs import graph, lowered, op, picture

from spillprof.lowering.macs import operator_macs
from spillprof.lowering.options import WeightsPolicy
from spillprof.model.program import Phase

X, Y = (2, 4), (2, 8)


def product(width, *, name):
    """A body that multiplies the captured x by a weight of its own and narrows the result."""
    return graph({}, ["MatMul x w -> m", "ReduceSum m -> r"], "r", weights={"w": (4, width)},
                 tensors={"x": X, "m": (2, width), "r": (2, 1)}, name=name)  # fmt: skip


def conditional():
    ops = [op("If c -> y", captures="x", subgraphs=[product(8, name="then"), product(16, name="else")])]
    return graph({"c": ("bool", ()), "x": X}, ops, "y", tensors={"y": (2, 1)})


def test_if_is_one_step_that_reads_its_captures():
    assert picture(lowered(conditional())) == ["If c x -> y"]


def test_if_costs_its_larger_branch():
    """2 x 4 x 16 products, weights 4 x 16 x 4 B, and m (128 B) live beside the result."""
    program = lowered(conditional())
    (step,) = program.steps
    assert step.macs == 128
    assert (step.weight_stream_bytes, program.weight_bytes) == (256, 256)
    assert [(w.purpose, w.size_bytes, w.first, w.last) for w in step.workspaces] == [
        ("body", 128, Phase.READ, Phase.WRITE)
    ]
    assert step.mac_dtype == "float32"
    assert [(a.what, a.count) for a in program.assumptions] == [("conditionals are costed by their larger branch", 1)]


def test_weights_of_a_body_are_cached_under_a_name_of_their_own():
    program = lowered(conditional(), weights=WeightsPolicy.CACHED)
    assert picture(program) == ["If c x y/w -> y"]


def test_captured_weight_counts_if_the_costed_branch_reads_it():
    def branch(weight):
        return graph({}, [f"Add x {weight} -> r"], "r", weights={weight: X}, tensors={"x": X, "r": X})

    ops = [op("If c -> y", captures="x v w", subgraphs=[branch("v"), branch("w")])]
    g = graph({"c": ("bool", ()), "x": X}, ops, "y", weights={"v": X, "w": X}, tensors={"y": X})
    assert lowered(g).weight_bytes == 32


def loop_body(outputs):
    inputs = {"i": ("int64", ()), "go": ("bool", ()), "s": X}
    ops = ["MatMul s w -> s2", "Identity go -> g2"]
    return graph(inputs, ops, outputs, weights={"w": (4, 4)}, tensors={"s2": X, "g2": ("bool", ())})


def test_loop_costs_its_trip_count_where_its_stacked_output_tells():
    body = loop_body("g2 s2 s2")
    loop = op("Loop n c s -> last all", subgraphs=[body])
    g = graph({"s": X, "n": ("int64", ())}, [loop], "last all", weights={"c": ("bool", ())},
              tensors={"last": X, "all": (5, 2, 4)})  # fmt: skip
    assert operator_macs(loop, g) == 5 * 2 * 4 * 4
    assert lowered(g).assumptions == ()


def test_loop_of_unknown_length_counts_once_and_says_so():
    body = loop_body("g2 s2")
    g = graph({"s": X, "n": ("int64", ())}, [op("Loop n c s -> last", subgraphs=[body])], "last",
              weights={"c": ("bool", ())}, tensors={"last": X})  # fmt: skip
    program = lowered(g)
    assert program.steps[0].macs == 32
    what = [(a.what, a.count) for a in program.assumptions]
    assert what == [("loops of unknown trip count are costed as one iteration", 1)]


def test_scan_costs_the_length_of_its_scanned_axis():
    body = graph({"s": X, "e": X}, ["MatMul e w -> m", "Add s m -> s2"], "s2 s2", weights={"w": (4, 4)},
                 tensors={"m": X, "s2": X})  # fmt: skip
    scan = op("Scan s xs -> last all", subgraphs=[body], num_scan_inputs=1, scan_input_axes=(1,))
    g = graph({"s": X, "xs": (2, 7, 4)}, [scan], "last all", tensors={"last": X, "all": (7, 2, 4)})
    program = lowered(g)
    assert program.steps[0].macs == 7 * 32
    # m and s2 live at once in the body: 2 x 32 B
    assert [w.size_bytes for w in program.steps[0].workspaces] == [64]


def test_nested_bodies_add_up():
    inner = op("If c -> r", captures="x", subgraphs=[product(8, name="a"), product(16, name="b")])
    outer = graph({}, [inner, "Neg r -> q"], "q", tensors={"x": X, "c": ("bool", ()), "r": (2, 1), "q": (2, 1)})
    g = graph({"c": ("bool", ()), "x": X}, [op("If c -> y", captures="x", subgraphs=[outer, outer])], "y",
              tensors={"y": (2, 1)})  # fmt: skip
    program = lowered(g)
    (step,) = program.steps
    assert (step.macs, program.weight_bytes) == (128, 256)
    # r (8 B) is written while the inner branch holds m (128 B)
    assert step.workspaces[0].size_bytes == 136
    assert [a.count for a in program.assumptions] == [2]
