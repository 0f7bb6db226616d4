"""Stored sizes, and workspaces of convolutions."""

import pytest
from graphs import MACHINE, buffer_named, graph, lowered, op

from spillprof.ir.errors import CapacityError
from spillprof.ir.program import Convolution, Phase, Workspace
from spillprof.lowering.fitting import fit
from spillprof.lowering.options import ConvAlgorithm, LoweringOptions, WeightsPolicy
from spillprof.timing.compute import step_times_s

X, W, Y = (1, 4, 8, 8), (16, 4, 3, 3), (1, 16, 6, 6)


def conv(target=MACHINE, algorithm=ConvAlgorithm.DIRECT, *, x=X, w=W, y=Y, dtype="float32", **attributes):
    """Workspaces of a single convolution as ``(purpose, bytes, first, last)``."""
    g = graph({"x": (dtype, x)}, [op("Conv x w -> y", **attributes)], "y", weights={"w": w}, tensors={"y": y})
    (step,) = lowered(g, target, conv=algorithm).steps
    return [(w.purpose, w.size_bytes, w.first, w.last) for w in step.workspaces]


def test_size_is_rounded_up_to_the_alignment():
    g = graph({"x": (5,)}, ["Softmax x -> y"], "y", tensors={"y": (17,)})
    program = lowered(g, MACHINE.with_overrides(alignment_bytes=64))
    assert [(b.payload_bytes, b.moved_bytes, b.size_bytes) for b in program.buffers] == [(20, 20, 64), (68, 68, 128)]


def test_weights_are_aligned_but_not_padded():
    g = graph({"x": X}, ["Conv x w -> y"], "y", weights={"w": (16, 3, 3, 3)}, tensors={"y": Y})
    target = MACHINE.with_overrides(channel_align=16, alignment_bytes=64)
    weight = buffer_named(lowered(g, target, weights=WeightsPolicy.CACHED), "w")
    assert (weight.payload_bytes, weight.size_bytes) == (1728, 1728)


def test_packed_types_round_up_to_whole_bytes():
    g = graph({"x": ("int4", (3,))}, ["Cast x -> y"], "y", tensors={"y": ("int8", (3,))})
    assert [b.payload_bytes for b in lowered(g).buffers] == [2, 3]


def test_direct_convolution_needs_nothing():
    assert conv() == []


def test_accumulators_lie_in_sram_where_the_target_says_so():
    """16 x 6 x 6 outputs of 4 B, while computing and writing."""
    target = MACHINE.with_overrides(accumulator_bytes_per_output=4)
    assert conv(target) == [("accumulator", 2304, Phase.COMPUTE, Phase.WRITE)]
    g = graph({"x": (2, 8)}, ["MatMul x w -> m", "Softmax m -> y"], "y", weights={"w": (8, 4)},
              tensors={"m": (2, 4), "y": (2, 4)})  # fmt: skip
    expected = Workspace(purpose="accumulator", size_bytes=32, first=Phase.COMPUTE, last=Phase.WRITE)
    assert [s.workspaces for s in lowered(g, target).steps] == [(expected,), ()]


def test_accumulators_lie_beside_what_the_algorithm_needs():
    """Whatever the algorithm, 16 x 6 x 6 sums of 4 B are there until they are written."""
    target = MACHINE.with_overrides(accumulator_bytes_per_output=4)
    accumulator = ("accumulator", 2304, Phase.COMPUTE, Phase.WRITE)
    assert conv(target, ConvAlgorithm.IM2COL) == [("im2col", 5184, Phase.READ, Phase.COMPUTE), accumulator]
    assert conv(target, ConvAlgorithm.WINOGRAD) == [
        ("winograd input tiles", 2304, Phase.READ, Phase.COMPUTE),
        ("winograd output tiles", 9216, Phase.COMPUTE, Phase.WRITE),
        accumulator,
    ]
    g = graph({"x": X}, ["Conv x w -> y"], "y", weights={"w": W}, tensors={"y": Y})
    (step,) = lowered(g, target, conv=ConvAlgorithm.IM2COL).steps
    assert step.convolution.workspace_bytes == 5184 + 2304


def test_blocks_of_im2col_leave_room_for_the_accumulator():
    """Beside 1024 + 2304 B of operands, 1280 B of weights staged and 2304 B of sums, 10 KiB have room for 23 rows."""
    target = MACHINE.with_overrides(accumulator_bytes_per_output=4, sram_bytes=10240)
    assert conv(target, ConvAlgorithm.IM2COL)[0] == ("im2col", 18 * 144, Phase.READ, Phase.COMPUTE)
    shared = target.with_overrides(shared_workspace=True)
    assert conv(shared, ConvAlgorithm.IM2COL)[0] == ("im2col", 18 * 144, Phase.READ, Phase.COMPUTE)
    g = graph({"x": X}, ["Conv x w -> y"], "y", weights={"w": W}, tensors={"y": Y})
    fitted = fit(lowered(g, shared, conv=ConvAlgorithm.IM2COL), shared, LoweringOptions(conv=ConvAlgorithm.IM2COL))
    assert [r.size_bytes for r in fitted.reservations if r.what == "shared workspace"] == [18 * 144]
    assert fitted.steps[0].streamed_reads == ()


def test_im2col_matrix_of_one_group():
    """C/groups x 3 x 3 x 6 x 6 elements of 4 B, while reading and computing."""
    assert conv(algorithm=ConvAlgorithm.IM2COL) == [("im2col", 4 * 9 * 36 * 4, Phase.READ, Phase.COMPUTE)]
    grouped = conv(algorithm=ConvAlgorithm.IM2COL, w=(16, 2, 3, 3), group=2)
    assert grouped == [("im2col", 2 * 9 * 36 * 4, Phase.READ, Phase.COMPUTE)]


def test_im2col_takes_the_element_type_of_the_input():
    assert conv(algorithm=ConvAlgorithm.IM2COL, dtype="int8")[0][1] == 4 * 9 * 36


def test_im2col_goes_in_equal_blocks_of_positions_past_half_of_the_memory():
    """36 positions of 144 B: half of 8 KiB holds 28. In 2 KiB not even the operands fit: no block can help."""

    def size(sram):
        return conv(MACHINE.with_overrides(sram_bytes=sram), ConvAlgorithm.IM2COL)[0][1]

    assert (size(10368), size(10367)) == (36 * 144, 18 * 144)
    assert size(8192) == 18 * 144
    assert size(2048) == 144  # less than a position is no block


def test_im2col_cuts_a_batch_too():
    """Two images of 36 positions: beside operands of 6656 B and staging of 1024 B, 8 KiB have room for three."""
    target = MACHINE.with_overrides(sram_bytes=8192)
    batch = conv(target, ConvAlgorithm.IM2COL, x=(2, *X[1:]), y=(2, *Y[1:]))
    assert batch == [("im2col", 3 * 144, Phase.READ, Phase.COMPUTE)]


def test_im2col_of_a_sequence_blocks_along_it():
    target = MACHINE.with_overrides(sram_bytes=400)
    one = conv(target, ConvAlgorithm.IM2COL, x=(1, 2, 12), w=(3, 2, 3), y=(1, 3, 10))
    assert one == [("im2col", 5 * 24, Phase.READ, Phase.COMPUTE)]  # 10 x 24 B > 200 B


def test_winograd_transforms_input_and_output_tiles():
    """3 x 3 tiles of 2 x 2 outputs; 16 elements of 4 B a tile and channel."""
    assert conv(algorithm=ConvAlgorithm.WINOGRAD) == [
        ("winograd input tiles", 16 * 4 * 9 * 4, Phase.READ, Phase.COMPUTE),
        ("winograd output tiles", 16 * 16 * 9 * 4, Phase.COMPUTE, Phase.WRITE),
    ]


def test_winograd_of_anything_but_three_by_three_at_stride_one_is_direct():
    assert conv(algorithm=ConvAlgorithm.WINOGRAD, w=(16, 4, 1, 1), y=(1, 16, 8, 8)) == []
    assert conv(algorithm=ConvAlgorithm.WINOGRAD, y=(1, 16, 3, 3), strides=(2, 2)) == []
    assert conv(algorithm=ConvAlgorithm.WINOGRAD, y=(1, 16, 4, 4), dilations=(2, 2)) == []


SLOW = MACHINE.with_overrides(macs_per_s={"default": 1e6}, conv_time_factors={"im2col": 0.8, "winograd": 0.5})
"""The 20,736 multiply-accumulates of the convolution take 20.7 ms directly, 16.6 ms as im2col, 10.4 ms as winograd."""


def test_auto_takes_the_fastest_under_half_of_the_memory():
    """Winograd needs 2304 + 9216 B at once; the matrix has 36 rows of 144 B and may come in blocks."""

    def spaces(sram):
        return [w[:2] for w in conv(SLOW.with_overrides(sram_bytes=sram), ConvAlgorithm.AUTO)]

    assert spaces(2 * 11520) == [("winograd input tiles", 2304), ("winograd output tiles", 9216)]
    assert spaces(2 * 11520 - 1) == [("im2col", 5184)]
    assert spaces(2 * 144) == [("im2col", 144)]
    assert spaces(2 * 144 - 1) == []


def test_auto_counts_a_launch_for_each_block():
    """At 1 ms a launch, six blocks take 22.6 ms, direct takes 21.7 ms."""
    target = SLOW.with_overrides(launch_overhead_s=1e-3)
    assert [w[0] for w in conv(target.with_overrides(sram_bytes=2 * 11520 - 1), ConvAlgorithm.AUTO)] == ["im2col"]
    assert conv(target.with_overrides(sram_bytes=2 * 864), ConvAlgorithm.AUTO) == []


def test_auto_goes_by_the_factors_of_the_target():
    """im2col is the fastest here; where nothing is faster than direct, no workspace is taken."""
    factors = {"im2col": 0.5, "winograd": 1.5}
    assert [w[0] for w in conv(SLOW.with_overrides(conv_time_factors=factors), ConvAlgorithm.AUTO)] == ["im2col"]
    assert conv(SLOW.with_overrides(conv_time_factors={}), ConvAlgorithm.AUTO) == []


def test_auto_knows_that_a_workspace_is_written_and_read():
    """Where bytes decide, half of the multiplications are no gain: 5632 B pass directly, 28,672 B with winograd."""
    target = SLOW.with_overrides(macs_per_s={"default": 1e12})
    assert conv(target, ConvAlgorithm.AUTO) == []


def test_what_passes_a_workspace_is_touched_twice():
    g = graph({"x": X}, ["Conv x w -> y"], "y", weights={"w": W}, tensors={"y": Y})
    operands = 1024 + 2304 + 2304
    touched = {c: lowered(g, conv=c).steps[0].touched_bytes for c in ConvAlgorithm}
    assert touched == {
        ConvAlgorithm.DIRECT: operands,
        ConvAlgorithm.IM2COL: operands + 2 * 5184,
        ConvAlgorithm.WINOGRAD: operands + 2 * 11520,
        ConvAlgorithm.AUTO: operands,
    }


def test_a_convolution_says_what_it_fell_back_from():
    g = graph({"x": X}, ["Conv x w -> y"], "y", weights={"w": W}, tensors={"y": Y})
    program = lowered(g, SLOW.with_overrides(sram_bytes=8192), conv=ConvAlgorithm.AUTO)
    (step,) = program.steps
    assert step.convolution == Convolution(algorithm="im2col", fastest="winograd", workspace_bytes=3 * 864, blocks=2)
    assert step.launches == 2
    assert [note.split(" (")[0] for note in program.notes] == [
        "convolutions: 1 im2col with up to 2.53 KiB of workspace",
        "1 of 1 convolutions runs with a slower algorithm, as the workspace of the fastest passes half of the SRAM or "
        "pushes out more than it wins: 1 from winograd to im2col",
        "1 of 1 convolutions runs in blocks of the im2col matrix, 2 in all, one launch each",
    ]


def test_the_multiply_accumulates_of_a_convolution_take_the_factor_of_its_algorithm():
    g = graph({"x": X}, ["Conv x w -> c", "Gemm c v -> y"], "y", weights={"w": W, "v": (4,)}, tensors={"c": Y, "y": Y})
    target = MACHINE.with_overrides(conv_time_factors={"im2col": 1.5, "direct": 1.25})

    def factors(algorithm):
        return [step.macs_time_factor for step in lowered(g, target, conv=algorithm).steps]

    assert factors(ConvAlgorithm.IM2COL) == [1.5, 1.0]
    assert factors(ConvAlgorithm.DIRECT) == [1.25, 1.0]
    assert factors(ConvAlgorithm.WINOGRAD) == [1.0, 1.0]
    fast_sram = target.with_overrides(sram_bytes_per_s=1e30, launch_overhead_s=0.0)
    direct_s, im2col_s = (
        step_times_s(lowered(g, fast_sram, conv=each), fast_sram)[0]
        for each in (ConvAlgorithm.DIRECT, ConvAlgorithm.IM2COL)
    )
    assert im2col_s / direct_s == pytest.approx(1.5 / 1.25)


def test_a_workspace_that_takes_all_of_the_memory_is_an_error_that_names_the_way_out():
    g = graph({"x": X}, ["Conv x w -> y"], "y", weights={"w": W}, tensors={"y": Y})
    options, small = LoweringOptions(conv=ConvAlgorithm.WINOGRAD), MACHINE.with_overrides(sram_bytes=8192)
    with pytest.raises(CapacityError) as caught:
        fit(lowered(g, small, conv=options.conv), small, options)
    assert caught.value.message == "what stays on-chip for the whole run needs 12.2 KiB, SRAM is 8 KiB"
    assert "or use --conv auto" in (caught.value.hint or "")


def test_quantised_convolution_finds_its_kernel():
    ops = ["QLinearConv x s z w s z s z -> y"]
    g = graph({"x": ("uint8", X)}, ops, "y", weights={"w": ("int8", W), "s": (), "z": ("uint8", ())},
              tensors={"y": ("uint8", Y)})  # fmt: skip
    (step,) = lowered(g, conv=ConvAlgorithm.IM2COL).steps
    assert step.workspaces[0].size_bytes == 4 * 9 * 36


def test_im2col_with_channels_last_is_as_large_as_with_channels_first():
    """36 positions x (4 channels x 9) x 4 B."""
    nhwc = op("NhwcConv x w -> y", domain="com.microsoft")
    g = graph({"x": (1, 8, 8, 4)}, [nhwc], "y", weights={"w": (6, 3, 3, 4)}, tensors={"y": (1, 6, 6, 6)})
    (workspace,) = lowered(g, conv=ConvAlgorithm.IM2COL).steps[0].workspaces
    assert workspace.size_bytes == 36 * 36 * 4
    (before, after) = lowered(g, conv=ConvAlgorithm.WINOGRAD).steps[0].workspaces
    assert (before.size_bytes, after.size_bytes) == (16 * 4 * 9 * 4, 16 * 6 * 9 * 4)
