"""Answers that are known from elsewhere or worked out by hand: products over the SRAM, and choices of operands."""

from math import isqrt
from typing import Any

import pytest
from graphs import MACHINE, graph, op

from spillprof import load_target
from spillprof.engine.engine import Engine
from spillprof.engine.run import PlayedPlan, Run
from spillprof.ir.errors import CapacityError
from spillprof.ir.graph import Graph
from spillprof.ir.target import Target
from spillprof.lowering.options import Fuse, LoweringOptions, WeightsPolicy
from spillprof.planning.traffic import count_traffic

KIB = 1024
MIB = 1024 * KIB
NPU = load_target("generic-npu")
STRATEGIES = ("lru", "belady", "cost", "interval", "optimal")


def run_of(g: Graph, sram_bytes: int, target: Target = MACHINE, **lowering: Any) -> Run:
    return Run(graph=g, target=target.with_overrides(sram_bytes=sram_bytes), lowering=LoweringOptions(**lowering))


def played(run: Run, strategy: str = "optimal") -> PlayedPlan:
    """The plan, which the engine verifies."""
    engine = Engine()
    return engine.play(engine.fitted(run), run, strategy)


def spilled(run: Run, strategy: str = "optimal") -> int:
    found = played(run, strategy)
    return count_traffic(found.program, found.plan).spill_bytes


def moved(run: Run, strategy: str = "optimal") -> int:
    """All DRAM bytes."""
    found = played(run, strategy)
    traffic = count_traffic(found.program, found.plan)
    return traffic.compulsory_read_bytes + traffic.compulsory_write_bytes + traffic.spill_bytes


def bound(run: Run) -> int:
    engine = Engine()
    return engine.bound(engine.fitted(run), run).cost


def product(m: int, n: int, k: int, dtype: str, *, weights: bool = False) -> Graph:
    """c[m, n] = a[m, k] b[k, n]."""
    b = {"b": (dtype, (k, n))}
    return graph(
        {"a": (dtype, (m, k)), **({} if weights else b)},
        ["MatMul a b -> c"],
        "c",
        weights=b if weights else None,
        tensors={"c": (dtype, (m, n))},
    )


def least(m: int, n: int, k: int, element_bytes: int, sram_bytes: int) -> int:
    """2 M N K e / sqrt(S / e) - 2 S, rounded down: what no execution of a product passes (Smith et al. 2019)."""
    return isqrt(4 * (m * n * k) ** 2 * element_bytes**3 // sram_bytes) - 2 * sram_bytes


# The output tile stays, slices of one k stream by, each there twice: m n + 2 (m + n) elements. Columns: passes of a
# (blocks of n), passes of b (blocks of m).
PRODUCTS = [
    # 293 x 216, 65,504 B: 19 and 14 passes; with either block larger, 14 or 13, the other is above 224 or 241
    ((4096, 4096, 4096, "int8"), 64 * KIB, 19 + 14, 16 * MIB, 536_739_840),
    ((4096, 4096, 4096, "int8"), MIB, 5 + 4, 16 * MIB, 132_120_576),  # 1,024 x 820
    ((2048, 2048, 2048, "float32"), MIB, 6 + 3, 16 * MIB, 132_120_576),  # 683 x 342
]


@pytest.mark.parametrize(("sizes", "sram_bytes", "passes", "operand_bytes", "floor"), PRODUCTS)
def test_a_large_product_moves_what_its_best_tiles_move(
    sizes: tuple[int, int, int, str], sram_bytes: int, passes: int, operand_bytes: int, floor: int
) -> None:
    *edges, dtype = sizes
    run = run_of(product(*edges, dtype), sram_bytes)
    assert least(*edges, {"int8": 1, "float32": 4}[dtype], sram_bytes) == floor
    assert moved(run) == moved(run, "lru") == (passes + 1) * operand_bytes > floor  # and the result, once
    assert bound(run) == spilled(run) == (passes - 2) * operand_bytes


def test_a_product_that_fits_moves_once_and_is_not_slower() -> None:
    assert moved(run_of(product(4096, 4096, 4096, "int8"), 64 * MIB)) == 3 * 16 * MIB
    large, small = (played(run_of(product(4096, 4096, 4096, "int8"), s)) for s in (64 * MIB, MIB))
    assert large.timeline.makespan_s <= small.timeline.makespan_s


@pytest.mark.parametrize("weights", [False, True])
def test_a_product_of_unequal_edges(weights: bool) -> None:
    """Four tiles of 256 x 384, 98,304 B: a and b pass twice. Weights have a staging area of an eighth beside."""
    run = run_of(product(512, 768, 1408, "int8", weights=weights), 125_440)
    assert moved(run) == 2 * 512 * 1408 + 2 * 1408 * 768 + 512 * 768 == 3_997_696
    assert bound(run) == spilled(run)


def test_a_product_of_three_unequal_edges() -> None:
    """3000 x 5000 x 2000, float16, 102,400 elements: a is 12 MB, b 20, c 30.

    With p passes of a and q of b a tile has at least 15,000,000 / (p q) elements, so p q >= 147, and 12 p + 20 q is at
    least 2 sqrt(240 * 147) = 375; in whole passes 15 and 10 (300 x 334, 101,468 elements with its slices) are the best.
    """
    run = run_of(product(3000, 5000, 2000, "float16"), 204_800)
    assert least(3000, 5000, 2000, 2, 204_800) == 374_590_400
    assert moved(run) == 15 * 12_000_000 + 10 * 20_000_000 + 30_000_000 == 410_000_000


# Accumulators of 4 bytes in SRAM: the output's tile takes 4 m n bytes.
ACCUMULATED = [
    ((4096, 4096, 4096, "int8"), 64 * KIB, 1107e6),
    ((4096, 4096, 4096, "int8"), MIB, 302e6),
    ((512, 768, 1408, "int8"), 125_440, 7.2e6),
]


@pytest.mark.parametrize(("sizes", "sram_bytes", "about"), ACCUMULATED)
def test_a_product_whose_accumulators_lie_in_sram(
    sizes: tuple[int, int, int, str], sram_bytes: int, about: float
) -> None:
    machine = MACHINE.with_overrides(accumulator_bytes_per_output=4)
    assert moved(run_of(product(*sizes), sram_bytes, machine)) == pytest.approx(about, rel=0.01)


# --- which operand passes in tiles


def hard_swish() -> Graph:
    """Tensors x, y, z of 4 MiB each."""
    maps = dict.fromkeys("xyz", (1, 64, 128, 128))
    return graph(
        {"in": (1, 4, 128, 128)},
        ["Conv in w1 -> x", "HardSigmoid x -> y", "Mul x y -> z", "Conv z w2 -> o"],
        "o",
        weights={"w1": (64, 4, 1, 1), "w2": (4, 64, 1, 1)},
        tensors={**maps, "o": (1, 4, 128, 128)},
    )


def test_a_result_is_written_over_the_operand_that_stays() -> None:
    """7 MiB hold one of the maps: x stays, y is streamed out by HardSigmoid and in by Mul, and z takes the place of x.

    Legal, as x dies there and z is as large: 8 MiB. Nothing less is: Mul reads two maps, of which one was in DRAM.
    """
    run = run_of(hard_swish(), 7 * MIB, NPU)
    assert spilled(run) == bound(run) == 8 * MIB
    found = played(run)
    names = {buffer.index: buffer.name for buffer in found.program.buffers}
    assert [(names[s.buffer], s.step, s.write) for s in found.plan.streamed] == [("y", 1, True), ("y", 2, False)]
    assert [(names[u.old], names[u.new]) for u in found.program.steps[2].updates] == [("x", "z")]


def test_no_strategy_streams_a_map_more_than_once_each_way() -> None:
    """12 MiB: x is streamed in place of y, three times its size; z over y."""
    for strategy in STRATEGIES:
        assert spilled(run_of(hard_swish(), 7 * MIB, NPU), strategy) <= 12 * MIB, strategy


def test_without_in_place_results_one_more_map_passes() -> None:
    """Two maps do not fit beside each other: Mul streams z out too, and Conv streams it in."""
    assert spilled(run_of(hard_swish(), 7 * MIB, NPU, inplace=False)) == 16 * MIB


def test_an_output_is_streamed_out_for_nothing() -> None:
    """a and b stay, 12,800 B; y must be written anyway."""
    g = graph(
        {"x": (1, 1600)},
        ["Relu x -> a", "Neg a -> b", op("Concat a b -> y", axis=1)],
        "y",
        tensors={"a": (1, 1600), "b": (1, 1600), "y": (1, 3200)},
    )
    for strategy in STRATEGIES:
        assert spilled(run_of(g, 16 * KIB, NPU, inplace=False), strategy) == 0, strategy


@pytest.mark.parametrize("sram_kib", [240, 256, 272, 288])
def test_the_operand_in_the_middle_is_streamed(sram_kib: int) -> None:
    """a and b, b and c have 192 + 192 and 192 + 96 KiB: b passes out and in, 384 KiB; a or c would pass beside it."""
    map_of = {
        name: ("int8", (1, channels, 128, 128)) for name, channels in zip("xabcy", (3, 12, 12, 6, 3), strict=True)
    }
    g = graph(
        {"x": map_of.pop("x")},
        ["Conv x w1 -> a", "Conv a w2 -> b", "Conv b w3 -> c", "Conv c w4 -> y"],
        "y",
        weights={
            f"w{k}": ("int8", (out, into, 1, 1))
            for k, (into, out) in enumerate([(3, 12), (12, 12), (12, 6), (6, 3)], start=1)
        },
        tensors=map_of,
    )
    machine = NPU.with_overrides(alignment_bytes=16)
    run = run_of(g, sram_kib * KIB, machine, weights=WeightsPolicy.RESIDENT, fuse=Fuse.NONE)
    assert bound(run) == 384 * KIB
    for strategy in STRATEGIES:
        assert spilled(run, strategy) == 384 * KIB, strategy


def test_rows_that_do_not_fit_are_cut_in_columns_whose_halo_is_read_again() -> None:
    """3 x 3 over 568 x 568 x 64 float32: two rows, 290,816 B, do not fit 256 KiB. Ten blocks of columns do.

    At the nine borders between them two columns of 568 rows are read twice.
    """
    g = graph(
        {"x": (1, 64, 568, 568)},
        [op("Conv x w -> y", kernel_shape=(3, 3), pads=(1, 1, 1, 1))],
        "y",
        weights={"w": (64, 64, 3, 3)},
        tensors={"y": (1, 64, 568, 568)},
    )
    run = run_of(g, 256 * KIB, NPU)
    found = played(run)
    (mode,) = found.plan.modes
    pool = run.target.sram_bytes - found.program.reserved_bytes
    assert run.target.sram_bytes < 568 * 64 * 4 * 2
    assert mode.footprint_bytes <= pool
    assert spilled(run) == bound(run) == 9 * 2 * 568 * 64 * 4


def test_below_four_tiles_nothing_runs_and_the_error_says_where_it_does() -> None:
    """Two tiles of the operand that changes, one of the other, one of the result, 64 B each."""
    run = run_of(product(2048, 2048, 2048, "float32"), 192, NPU)
    with pytest.raises(CapacityError, match="operator 'c' does not fit into the SRAM, however it is tiled") as error:
        Engine().fitted(run)
    assert "needs 256 B" in " ".join(error.value.where)
    assert error.value.hint == "the smallest SRAM that the model runs in is 256 B"
    assert moved(run.at(256)) > least(2048, 2048, 2048, 4, 256)
