"""Reservations, oversized operators, and the smallest memory."""

from itertools import product

import pytest
from graphs import MACHINE, graph, lowered, op
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import program, step

from spillprof.ir.errors import CapacityError
from spillprof.ir.tiled import with_modes
from spillprof.lowering.fitting import fit, min_sram, unlimited
from spillprof.lowering.options import ConvAlgorithm, LoweringOptions, Oversized, WeightsPolicy
from spillprof.planning.liveness import step_demand_bytes
from spillprof.planning.options import PlanningOptions
from spillprof.planning.tiling.choice import choose_modes

DEFAULTS = LoweringOptions()
ERROR = LoweringOptions(oversized=Oversized.ERROR)


def machine(sram, **changes):
    return MACHINE.with_overrides(**{"sram_bytes": sram, "stream_staging_bytes": 0, **changes})


def streamed(p, target, options=DEFAULTS):
    """Names of the streamed operands of each step: (reads, writes)."""
    fitted = fit(p, target, options)
    name = [b.name for b in fitted.buffers]
    return [([name[b] for b in s.streamed_reads], [name[b] for b in s.streamed_writes]) for s in fitted.steps]


def weighted(bytes_a, bytes_b):
    steps = [step("x -> a", weight_stream_bytes=bytes_a), step("a -> y", weight_stream_bytes=bytes_b)]
    return program({"x": ("input", 100), "a": 100, "y": ("output", 100)}, steps)


def reserved(p, target, options=DEFAULTS):
    return [(r.what, r.size_bytes) for r in fit(p, target, options).reservations]


def test_what_the_runtime_keeps_is_taken_off_first():
    p = weighted(0, 0)
    assert reserved(p, machine(1024, alignment_bytes=64, reserved_bytes=100)) == [("runtime", 128)]
    smallest, _ = min_sram(p, machine(1024, alignment_bytes=64), DEFAULTS)
    assert min_sram(p, machine(1024, alignment_bytes=64, reserved_bytes=100), DEFAULTS)[0] == smallest + 128


def test_weight_staging_is_an_eighth_of_the_memory():
    assert reserved(weighted(500, 600), machine(800)) == [("weight staging", 100)]


def test_weight_staging_is_at_most_the_largest_need_of_a_step():
    assert reserved(weighted(30, 70), machine(800)) == [("weight staging", 70)]


def test_weight_staging_of_the_target_overrides_the_share():
    assert reserved(weighted(500, 600), machine(800, weight_staging_bytes=300)) == [("weight staging", 300)]


def test_nothing_is_staged_without_streamed_weights():
    assert reserved(weighted(0, 0), machine(800)) == []


def test_shared_workspace_is_the_largest_phase_of_any_step():
    """The first step holds 30 + 50 in COMPUTE, never 30 + 50 + 20 at once."""
    spaces = [("in", 30, 0, 1), ("out", 50, 1, 2), ("scratch", 20, 2, 2)]
    p = program({"x": ("input", 10), "a": 10, "y": ("output", 10)},
                [step("x -> a", workspaces=spaces), step("a -> y", workspaces=[("in", 70, 0, 0)])])  # fmt: skip
    fitted = fit(p, machine(200), DEFAULTS)
    assert [(r.what, r.size_bytes) for r in fitted.reservations] == [("shared workspace", 80)]
    assert all(s.workspaces == () for s in fitted.steps)


def test_own_workspaces_stay_with_their_steps():
    p = program({"x": ("input", 10), "y": ("output", 10)}, [step("x -> y", workspaces=[("in", 30, 0, 1)])])
    fitted = fit(p, machine(200, shared_workspace=False), DEFAULTS)
    assert fitted.reservations == ()
    assert fitted.steps == p.steps


def test_resident_weights_and_dedicated_slots_are_reserved():
    g = graph({"x": (10,)}, ["MatMul x w -> a", "Softmax a -> b", "MatMul b w -> y"], "y", weights={"w": (10,)},
              tensors=dict.fromkeys("aby", (10,)))  # fmt: skip
    options = LoweringOptions(weights=WeightsPolicy.RESIDENT, pin=("b",))
    p = lowered(g, weights=options.weights, pin=options.pin)
    fitted = fit(p, machine(1000), options)
    assert [(r.what, r.size_bytes) for r in fitted.reservations] == [("resident weights", 40), ("dedicated slot", 40)]
    assert fitted.buffers[fitted.reservations[1].buffer].name == "b"
    assert fitted.reserved_bytes == 80


def test_resident_weights_that_do_not_fit_are_refused_with_the_smallest_memory():
    """100 B of weights beside x and y of 40 B each."""
    g = graph({"x": (10,)}, ["MatMul x w -> y"], "y", weights={"w": (25,)}, tensors={"y": (10,)})
    options = LoweringOptions(weights=WeightsPolicy.RESIDENT)
    p = lowered(g, weights=options.weights)
    with pytest.raises(CapacityError) as error:
        fit(p, machine(99), options)
    assert error.value.message == "what stays on-chip for the whole run needs 100 B, SRAM is 99 B"
    assert error.value.hint == "the smallest SRAM that works is 180 B; or use --weights stream"
    assert fit(p, machine(180), options).reserved_bytes == 100


def test_unlimited_keeps_the_reservations_and_streams_nothing():
    p = weighted(500, 600)
    ideal = unlimited(p, machine(160), DEFAULTS)
    assert ideal.capacity_bytes is None
    assert [r.size_bytes for r in ideal.reservations] == [20]
    assert ideal.steps == p.steps
    assert streamed(p, machine(160)) != [([], []), ([], [])]


# One step reads r and s and writes w. Sizes are such that the choices can be followed by hand.
THREE = program({"r": ("input", 30), "s": ("input", 50), "w": ("output", 40)}, ["r s -> w"])


def test_step_that_fits_exactly_is_left_alone():
    assert streamed(THREE, machine(120)) == [([], [])]


@pytest.mark.parametrize(
    ("sram", "expected"),
    [(119, (["r"], [])), (90, (["r"], [])), (89, ([], ["w"])), (80, ([], ["w"])), (79, (["s"], [])),
     (69, (["r"], ["w"])), (49, (["r", "s"], [])), (39, (["s"], ["w"])), (29, (["r", "s"], ["w"]))],
)  # fmt: skip
def test_fewest_bytes_that_make_the_rest_fit(sram, expected):
    assert streamed(THREE, machine(sram)) == [expected]


def test_of_equal_operands_the_earlier_is_streamed():
    p = program({"r": ("input", 40), "s": ("input", 40), "w": ("output", 40)}, ["r s -> w"])
    assert streamed(p, machine(119)) == [(["r"], [])]
    assert streamed(p, machine(79)) == [(["r", "s"], [])]


def test_earlier_operands_win_over_fewer_ones_of_the_same_bytes():
    p = program({"r": ("input", 20), "s": ("input", 20), "t": ("input", 40), "w": ("output", 90)}, ["r s t -> w"])
    assert streamed(p, machine(130)) == [(["r", "s"], [])]


def test_staging_buffer_takes_its_share():
    """A sixteenth of 112 is 7: r alone (90 left) fits in 105, so it is enough; at 16 B of staging w must go too."""
    fitted = fit(THREE, machine(112, stream_staging_bytes=None), DEFAULTS)
    assert fitted.steps[0].stream_staging_bytes == 7
    assert streamed(THREE, machine(112, stream_staging_bytes=30)) == [([], ["w"])]


def test_streamed_side_of_an_update_makes_it_ordinary():
    """a and y lie at one address (40 B), beside b (30 B). At 65 B b must go; at 35 B a and y."""
    p = program({"a": ("input", 40), "b": ("input", 30), "y": ("output", 40)}, [step("a b -> y", updates={"a": "y"})])
    assert streamed(p, machine(70)) == [([], [])]
    assert streamed(p, machine(65)) == [(["b"], [])]
    fitted = fit(p, machine(35), DEFAULTS)
    assert fitted.steps[0].updates == ()
    assert streamed(p, machine(35)) == [(["a"], ["y"])]
    assert fit(p, machine(65), DEFAULTS).steps[0].updates == p.steps[0].updates


def test_streaming_one_side_of_an_update_alone_does_not_help():
    """Without b there is a => y: streaming a leaves y, streaming y leaves a."""
    p = program({"a": ("input", 40), "y": ("output", 40)}, [step("a -> y", updates={"a": "y"})])
    assert streamed(p, machine(39)) == [(["a"], ["y"])]


def test_dedicated_operand_is_never_streamed():
    p = program({"r": ("input", 30), "s": ("input", 50), "w": ("output", 40)}, ["r s -> w"], dedicated="r")
    assert streamed(p, machine(119)) == [([], ["w"])]


def test_phases_decide_what_must_go():
    """A WRITE scratch of 70 B beside w (40 B): only streaming w helps at 100 B, though r is smaller."""
    p = program({"r": ("input", 30), "w": ("output", 40)}, [step("r -> w", workspaces=[("scratch", 70, 2, 2)])])
    assert streamed(p, machine(100, shared_workspace=False)) == [([], ["w"])]


def test_workspace_that_cannot_fit_is_refused():
    p = program({"r": ("input", 30), "w": ("output", 40)}, [step("r -> w", workspaces=[("im2col", 70, 0, 1)])])
    with pytest.raises(CapacityError) as error:
        fit(p, machine(60, shared_workspace=False), DEFAULTS)
    assert error.value.message == "operator 0 needs 140 B on-chip at once, SRAM is 60 B"
    assert error.value.where == ("op0: inputs 30 B, output 40 B, workspace 70 B",)
    assert "140 B" in error.value.hint


def test_oversized_error_names_the_worst_operator_and_what_works():
    p = program({"x": ("input", 1000), "a": 3000, "y": ("output", 2000)}, ["x -> a", "a -> y"])
    with pytest.raises(CapacityError) as error:
        fit(p, machine(2048), ERROR)
    assert error.value.message == "operator 1 needs 4.88 KiB on-chip at once, SRAM is 2 KiB"
    assert error.value.where == ("op1: inputs 2.93 KiB, output 1.95 KiB, workspace 0",)
    assert error.value.hint == (
        "the smallest SRAM that holds it is 4.88 KiB (5,000 B); or drop --oversized error to tile it through DRAM"
    )
    assert fit(p, machine(5000), ERROR).steps == p.steps


def test_sizes_that_print_alike_are_given_in_bytes():
    p = program({"x": ("input", 1024), "y": ("output", 1025)}, ["x -> y"])
    with pytest.raises(CapacityError, match="needs 2,049 B on-chip at once, SRAM is 2,048 B"):
        fit(p, machine(2048), ERROR)


def test_reserved_part_is_named_in_the_error():
    with pytest.raises(CapacityError) as error:
        fit(weighted(40, 40), machine(200), ERROR)
    assert error.value.message.endswith("SRAM is 200 B of which 25 B is reserved")
    assert error.value.where[1] == "reserved: weight staging 25 B"


def test_smallest_memory_counts_the_staging_that_grows_with_it():
    """200 B of operands and an eighth for weights: 200 = C - C // 8 first at 228."""
    assert min_sram(weighted(500, 600), machine(1), DEFAULTS) == (228, 0)
    assert min_sram(weighted(500, 600), machine(1, weight_staging_bytes=64), DEFAULTS) == (264, 0)
    assert min_sram(weighted(10, 20), machine(1), DEFAULTS) == (220, 0)


def test_smallest_memory_names_the_step_with_the_largest_demand():
    p = program({"x": ("input", 10), "a": 50, "b": 60, "y": ("output", 10)}, ["x -> a", "a -> b", "b -> y"])
    assert min_sram(p, machine(1), DEFAULTS) == (110, 1)


def test_program_without_steps_needs_the_smallest_memory_there_is():
    assert min_sram(program({}, []), machine(1, alignment_bytes=64), DEFAULTS) == (64, 0)
    assert fit(program({}, []), machine(64), DEFAULTS).steps == ()


@settings(max_examples=150, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=6),
    writes=st.integers(0, 3),
    spaces=st.lists(st.tuples(st.integers(1, 30), st.integers(0, 2), st.integers(0, 2)), max_size=2),
    update=st.booleans(),
    pool=st.integers(0, 150),
    staging=st.integers(0, 10),
)
def test_streamed_set_is_the_best_of_all_subsets(sizes, writes, spaces, update, pool, staging):
    """Against every subset, tried through the demand of the step itself."""
    names = [f"b{i}" for i in range(len(sizes))]
    n_writes = min(writes, len(names))
    reads, written = names[n_writes:], names[:n_writes]
    update = update and bool(reads) and bool(written)
    if update:
        sizes = [*sizes[:n_writes], sizes[0], *sizes[n_writes + 1 :]]
    spec = step(
        f"{' '.join(reads)} -> {' '.join(written)}",
        updates={reads[0]: written[0]} if update else {},
        workspaces=[(f"s{i}", size, min(a, b), max(a, b)) for i, (size, a, b) in enumerate(spaces)],
    )
    kinds = {n: ("input" if n in reads else "output", s) for n, s in zip(names, sizes, strict=True)}
    order = [*reads, *written]

    def candidates():
        for gone in product((True, False), repeat=len(order)):
            chosen = [n for n, g in zip(order, gone, strict=True) if g]
            if any(kinds[n][1] == 0 for n in chosen):
                continue
            fields = {
                **spec[1],
                "streamed_reads": " ".join(n for n in chosen if n in reads),
                "streamed_writes": " ".join(n for n in chosen if n in written),
                "stream_staging_bytes": staging,
            }
            if update and {reads[0], written[0]} & set(chosen):
                fields["updates"] = {}
            tried = program(kinds, [(spec[0], fields)])
            if step_demand_bytes(tried, tried.steps[0]) <= pool:
                yield sum(kinds[n][1] for n in chosen), chosen

    p = program(kinds, [spec])
    target = machine(max(pool, 1), stream_staging_bytes=staging, shared_workspace=False)
    pool = target.sram_bytes
    if step_demand_bytes(p, p.steps[0]) <= pool:
        assert streamed(p, target) == [([], [])]
        return
    best = min(candidates(), key=lambda found: found[0], default=None)  # the first of equals, earlier operands first
    if best is None:
        with pytest.raises(CapacityError):
            fit(p, target, DEFAULTS)
    else:
        ((read, write),) = streamed(p, target)
        assert [*read, *write] == best[1]


@settings(max_examples=60, deadline=None)
@given(sizes=st.lists(st.integers(1, 1000), min_size=17, max_size=40), share=st.floats(0.0, 1.0))
def test_greedy_choice_fits_and_no_operand_of_it_is_spare(sizes, share):
    names = [f"b{i}" for i in range(len(sizes))]
    kinds = {n: ("input", s) for n, s in zip(names, sizes, strict=True)} | {"y": ("output", 7)}
    p = program(kinds, [f"{' '.join(names)} -> y"])
    pool = max(1, int(sum(sizes) * share))
    fitted = fit(p, machine(pool), DEFAULTS)
    s = fitted.steps[0]
    need = step_demand_bytes(fitted, s)
    assert need <= pool
    assert all(need + fitted.buffers[b].size_bytes > pool for b in (*s.streamed_reads, *s.streamed_writes))


def test_one_operand_is_enough_where_one_suffices_among_many():
    """40 operands of 10 B, one of 500 B, 5 B too many: a small one goes, not the large one."""
    names = [f"b{i}" for i in range(40)]
    kinds = {"big": ("input", 500), **dict.fromkeys(names, ("input", 10)), "y": ("output", 10)}
    p = program(kinds, [f"big {' '.join(names)} -> y"])
    ((read, write),) = streamed(p, machine(905))
    assert len([*read, *write]) == 1
    assert "big" not in read


def test_sum_of_twenty_thousand_operands_streams_some_of_them():
    names = {f"x{i}": (50,) for i in range(20_000)}
    g = graph(names, [op(f"Sum {' '.join(names)} -> y")], "y", tensors={"y": (50,)})
    fitted = fit(lowered(g), machine(1 << 20), DEFAULTS)
    tiled = with_modes(fitted, choose_modes(fitted, PlanningOptions()))
    assert step_demand_bytes(tiled, tiled.steps[0]) <= 1 << 20
    assert len(tiled.steps[0].streamed_reads) > 1000


def test_im2col_block_shrinks_the_demand_of_a_convolution():
    g = graph({"x": (1, 4, 8, 8)}, ["Conv x w -> y"], "y", weights={"w": (16, 4, 3, 3)}, tensors={"y": (1, 16, 6, 6)})
    target = machine(8192)
    p = lowered(g, target, conv=ConvAlgorithm.IM2COL)
    assert [(r.what, r.size_bytes) for r in fit(p, target, DEFAULTS).reservations] == [
        ("weight staging", 1024), ("shared workspace", 2592),
    ]  # fmt: skip
