"""Number of blocks of im2col matrices: literal programs, sizes in bytes."""

from dataclasses import replace

import pytest
from programs import program, step, target

from spillprof.ir.program import Convolution, Program
from spillprof.ir.target import Target
from spillprof.lowering.convolution import Matrix
from spillprof.lowering.fitting import fit
from spillprof.lowering.im2col import with_matrices
from spillprof.lowering.options import LoweringOptions
from spillprof.timing.compute import step_times_s

TEN_ROWS = Matrix(rows=10, row_elements=10, dtype="int8")
DEFAULTS = LoweringOptions()


def skip() -> Program:
    """x 100 is convolved into c 100 while k 300 waits: 500 B are live then, and all through step 2."""
    conv = Convolution(algorithm="im2col", fastest="im2col", workspace_bytes=0)
    return program(
        {"x": ("input", 100), "k": 300, "c": 100, "y": ("output", 100)},
        ["x -> k", step("x -> c", convolution=conv), "k, c -> y"],
    )


def machine(sram_bytes: int, **fields: object) -> Target:
    return target(
        sram_bytes=sram_bytes, shared_workspace=False, dram_read_bytes_per_s=1e9, dram_write_bytes_per_s=1e9, **fields
    )


def cut(t: Target, matrix: Matrix = TEN_ROWS) -> tuple[int, int]:
    """(blocks, bytes of one) of the convolution of ``skip``."""
    made = with_matrices(skip(), {1: matrix}, t, DEFAULTS).steps[1]
    assert made.convolution is not None
    (space,) = made.workspaces
    assert (made.launches, made.convolution.workspace_bytes) == (made.convolution.blocks, space.size_bytes)
    return made.launches, space.size_bytes


def test_blocks_of_rows_are_as_equal_as_they_can_be() -> None:
    assert [TEN_ROWS.nbytes(n) for n in (1, 2, 3, 4, 10)] == [100, 50, 40, 30, 10]
    assert [TEN_ROWS.fewest_blocks(n) for n in (100, 99, 40, 39, 9)] == [1, 2, 3, 4, 10]
    assert Matrix(rows=3, row_elements=3, dtype="int4").nbytes(3) == 2


def test_a_matrix_that_fits_beside_all_that_is_live_stays_whole() -> None:
    assert cut(machine(600)) == (1, 100)


def test_a_matrix_is_cut_rather_than_that_something_leaves_for_it() -> None:
    """60 B are free beside 500 B."""
    assert cut(machine(560)) == (2, 50)
    assert cut(machine(540)) == (3, 40)


def test_a_launch_that_takes_longer_than_what_it_saves_is_not_made() -> None:
    """30 B are free. Two blocks save 50 B, 100 ns there and back; a third saves 17 B, 33 ns, a fourth 8 B, 17 ns."""
    assert cut(machine(530, launch_overhead_s=110e-9)) == (1, 100)
    assert cut(machine(530, launch_overhead_s=90e-9)) == (2, 50)
    assert cut(machine(530, launch_overhead_s=15e-9)) == (4, 30)


def test_where_something_must_leave_anyway_blocks_are_as_small_as_pays() -> None:
    """500 B are live in 400 B. Two blocks save 50 B, 100 ns; a third would save 17 B, 33 ns; a fourth 8 B."""
    assert cut(machine(400, launch_overhead_s=50e-9)) == (2, 50)
    assert cut(machine(400, launch_overhead_s=30e-9)) == (3, 40)


def test_blocks_stay_under_half_of_the_memory() -> None:
    """1000 B a row: half of 20,000 B holds ten."""
    large = Matrix(rows=11, row_elements=1000, dtype="int8")
    assert cut(machine(20_000, launch_overhead_s=1.0), large) == (2, 6000)


def test_a_row_is_the_smallest_block() -> None:
    assert cut(machine(220), Matrix(rows=2, row_elements=500, dtype="int8")) == (2, 500)


def test_a_shared_block_is_there_for_the_whole_run_so_the_fullest_step_decides() -> None:
    """The step of the matrix leaves 460 of 560 B, but a later one leaves 60 B."""
    short = replace(skip().steps[1], reads=(), writes=())
    p = replace(skip(), steps=(short, *skip().steps[:1], *skip().steps[1:]))
    t = machine(560)
    alone = with_matrices(p, {0: TEN_ROWS}, t, DEFAULTS)
    shared = with_matrices(p, {0: TEN_ROWS}, t.with_overrides(shared_workspace=True), DEFAULTS)
    assert (alone.steps[0].launches, shared.steps[0].launches) == (1, 2)
    fitted = fit(shared, t.with_overrides(shared_workspace=True), DEFAULTS)
    assert [(r.what, r.size_bytes) for r in fitted.reservations] == [("shared workspace", 50)]
    assert not any(s.streamed_reads or s.streamed_writes for s in fitted.steps)


def test_nothing_is_cut_below_the_shared_block_that_is_there_anyway() -> None:
    """The matrix of step 1 cannot come in less than 50 B; so that of step 0 needs no more blocks than for 50 B."""
    t = machine(530).with_overrides(shared_workspace=True)
    coarse = Matrix(rows=2, row_elements=50, dtype="int8")
    made = with_matrices(skip(), {0: TEN_ROWS, 1: coarse}, t, DEFAULTS)
    assert [s.launches for s in made.steps] == [2, 2, 1]


def test_each_block_is_a_launch() -> None:
    t = machine(540, launch_overhead_s=1e-9, macs_per_s={"default": 1e9}, sram_bytes_per_s=1e12)
    made = with_matrices(skip(), {1: TEN_ROWS}, t, DEFAULTS)
    assert step_times_s(made, t).tolist() == pytest.approx([1e-9, 3e-9, 1e-9])
