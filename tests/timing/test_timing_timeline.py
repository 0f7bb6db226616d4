"""Hand-worked timelines on ``programs.target``: a byte a second, a MAC a second."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import plan, program, step, target, two_loads

from spillprof.ir.plan import Plan
from spillprof.ir.program import Program
from spillprof.ir.timeline import Timeline
from spillprof.timing.compute import step_times_s, units_times_s
from spillprof.timing.timeline import simulate
from spillprof.verify import recount, verify


def play(p: Program, q: Plan, **machine: Any) -> Timeline:
    assert verify(p, q) == ()
    return simulate(p, q, target(**machine))


def spilled(times: list[int]) -> tuple[Program, Plan]:
    """a is written in step 0, spilled while step 1 runs, and read in step 2; y is drained. No inputs."""
    p = program(
        {"a": 10, "b": 10, "c": 10, "y": ("output", 10)},
        [step("-> a", macs=times[0]), step("-> b", macs=times[1]), step("b -> c", macs=times[2]),
         step("a, c -> y", macs=times[3])],
    )  # fmt: skip
    q = plan(
        p,
        segments=[("a", 1, 3, 0), ("b", 4, 8, 10), ("a", 6, 11, 20), ("c", 7, 11, 30), ("y", 10, 12, 0)],
        transfers=[("write-back", "a", 1, 1), ("reload", "a", 2, 3, 1), ("drain", "y", 4, 4)],
        spills=[{"buffer": "a", "last_use_step": 0, "evict_step": 1, "needed_step": 3}],
    )
    return p, q


def test_reload_exactly_hidden_behind_the_step_between() -> None:
    t = play(*spilled([5, 10, 10, 5]))
    # a leaves during step 1 (5..15) and comes back during step 2 (15..25): nobody waits.
    assert t.step_start_s.tolist() == [0, 5, 15, 25]
    assert t.step_end_s.tolist() == [5, 15, 25, 30]
    assert t.transfer_start_s.tolist() == [5, 15, 30]
    assert t.transfer_end_s.tolist() == [15, 25, 40]
    assert t.stall_s.tolist() == [0, 0, 0, 0]
    assert t.stall_transfer.tolist() == [-1, -1, -1, -1]
    assert (t.makespan_s, t.compute_s, t.serial_cost_s) == (40, 30, 20)


def test_step_that_is_too_short_waits_for_the_reload_and_blames_it() -> None:
    t = play(*spilled([5, 10, 4, 5]))
    assert t.step_start_s.tolist() == [0, 5, 15, 25]
    assert t.stall_s.tolist() == [0, 0, 0, 6]
    assert t.stall_transfer.tolist() == [-1, -1, -1, 1]


def test_reload_waits_for_the_write_back_of_its_own_data() -> None:
    t = play(*spilled([5, 3, 20, 5]))
    # issued when step 2 is about to start (8), but a has left at 15 only
    assert t.transfer_start_s.tolist()[:2] == [5, 15]
    assert t.step_start_s.tolist() == [0, 5, 8, 28]


def test_directions_have_their_own_bandwidth() -> None:
    t = play(*spilled([5, 10, 10, 5]), dram_read_bytes_per_s=0.5, dram_write_bytes_per_s=2.0)
    assert t.transfer_end_s.tolist() == [10, 35, 45]  # 10 bytes: 5 s out, 20 s in
    assert t.step_start_s.tolist() == [0, 5, 15, 35]
    assert t.serial_cost_s == 25


def test_set_up_dominates_small_transfers() -> None:
    t = play(*spilled([5, 10, 10, 5]), dram_read_setup_s=100.0, dram_write_setup_s=7.0)
    assert (t.transfer_end_s - t.transfer_start_s).tolist() == [17, 110, 17]
    assert t.transfer_start_s.tolist()[:2] == [5, 22]
    assert t.step_start_s.tolist() == [0, 5, 15, 132]
    assert t.serial_cost_s == 127


def test_bursts_round_up_what_the_bus_carries() -> None:
    t = play(*spilled([5, 20, 20, 5]), dram_burst_bytes=16)
    assert (t.transfer_end_s - t.transfer_start_s).tolist() == [16, 16, 16]


def test_result_waits_for_the_write_back_that_empties_its_place() -> None:
    p = program({"a": 10, "b": 10, "y": ("output", 10)}, [step("-> a", macs=1), step("-> b", macs=1), "a, b -> y"])
    q = plan(
        p,
        segments=[("a", 1, 3, 0), ("b", 4, 8, 0), ("a", 6, 8, 10), ("y", 7, 9, 20)],
        transfers=[("write-back", "a", 1, 1), ("reload", "a", 2, 2, 1), ("drain", "y", 3, 3)],
        spills=[{"buffer": "a", "last_use_step": 0, "evict_step": 1, "needed_step": 2}],
    )
    t = play(p, q)
    assert t.step_start_s.tolist() == [0, 11, 22]
    assert t.stall_transfer.tolist() == [-1, 0, 1]


def test_scratch_waits_for_the_write_back_under_it() -> None:
    p = program(
        {"a": 10, "y": ("output", 10)},
        [step("-> a", macs=1), step("-> ", macs=1, workspaces=[("im2col", 2, 0, 1)]), "a -> y"],
    )
    q = plan(
        p,
        segments=[("a", 1, 3, 0), ("a", 6, 8, 10), ("y", 7, 9, 0)],
        transfers=[("write-back", "a", 1, 1), ("reload", "a", 2, 2, 1), ("drain", "y", 3, 3)],
        spills=[{"buffer": "a", "last_use_step": 0, "evict_step": 1, "needed_step": 2}],
        scratch=[(1, "im2col", 2, 8, 3, 5)],
    )
    assert play(p, q).step_start_s.tolist() == [0, 11, 22]


def test_in_place_result_waits_for_the_write_of_what_it_replaces() -> None:
    p = program(
        {"a": ("output", 10), "y": ("output", 10)}, [step("-> a", macs=1), step("a -> y", macs=1, updates={"a": "y"})]
    )
    q = plan(p, segments=[("a", 1, 4, 0), ("y", 4, 6, 0)], transfers=[("drain", "a", 1, 1), ("drain", "y", 2, 2)])
    t = play(p, q)
    assert t.step_start_s.tolist() == [0, 11]
    assert t.makespan_s == 22


def test_reload_into_a_place_that_is_still_being_emptied() -> None:
    p = program(
        {"x": ("input", 10), "a": 10, "y": ("output", 10)}, [step("-> a", macs=1), step("x -> ", macs=1), "a -> y"]
    )
    q = plan(
        p,
        segments=[("a", 1, 3, 0), ("x", 3, 5, 0), ("a", 6, 8, 10), ("y", 7, 9, 20)],
        transfers=[("write-back", "a", 1, 1), ("fetch", "x", 1, 1), ("reload", "a", 2, 2, 1), ("drain", "y", 3, 3)],
        spills=[{"buffer": "a", "last_use_step": 0, "evict_step": 1, "needed_step": 2}],
    )
    t = play(p, q)
    assert t.transfer_start_s.tolist() == [1, 11, 22, 32]
    assert t.step_start_s.tolist() == [0, 21, 32]


def test_two_loads_queue_on_one_channel() -> None:
    p, q = two_loads()
    t = play(p, q)
    assert t.transfer_start_s.tolist() == [0, 10, 111]
    assert t.transfer_end_s.tolist() == [10, 40, 112]
    assert t.step_start_s.tolist() == [10, 110]  # v lands at 40, behind step 0
    assert t.stall_s.tolist() == [10, 0]
    assert t.stall_transfer.tolist() == [0, -1]
    assert t.serial_cost_s == 0  # first loads and an output: infinite SRAM moves them too


def weighted(first: int, second: int, *, staging: int) -> tuple[Program, Plan]:
    """Two steps of 100 s that stream weights; nothing else moves but an output of 1 byte."""
    p = program(
        {"a": 1, "y": ("output", 1)},
        [step("-> a", macs=100, weight_stream_bytes=first), step("a -> y", macs=100, weight_stream_bytes=second)],
        reservations=[("weight staging", staging)],
    )
    q = plan(p, segments=[("a", 1, 5, staging), ("y", 4, 6, staging + 1)], transfers=[("drain", "y", 2, 2)])
    return p, q


def test_weights_that_fit_the_staging_area_come_while_the_step_before_runs() -> None:
    t = play(*weighted(40, 50, staging=64))
    assert t.step_start_s.tolist() == [40, 140]
    assert t.step_end_s.tolist() == [140, 240]
    assert t.stall_transfer.tolist() == [-1, -1]


def test_weights_beyond_the_staging_area_flow_while_the_step_runs() -> None:
    t = play(*weighted(64, 264, staging=64))
    # step 1: 64 bytes come while step 0 runs (64..164), the other 200 from its start on: it ends with the last.
    assert t.step_start_s.tolist() == [64, 164]
    assert t.step_end_s.tolist() == [164, 364]
    assert t.makespan_s == 365


def test_rest_of_the_weights_is_hidden_by_a_long_step() -> None:
    t = play(*weighted(64, 164, staging=64))
    assert t.step_end_s.tolist() == [164, 264]


def test_weights_queue_behind_the_rest_of_the_step_before() -> None:
    t = play(*weighted(264, 50, staging=64))
    # step 0 runs 64..264 with its other 200 bytes; step 1's weights queue behind them until 314.
    assert t.step_end_s.tolist() == [264, 414]
    assert t.stall_s.tolist() == [64, 50]
    assert t.stall_transfer.tolist() == [-1, -1]


def test_without_a_staging_area_all_weights_flow_during_the_step() -> None:
    t = play(*weighted(150, 10, staging=0), dram_read_setup_s=3.0)
    assert t.step_start_s.tolist() == [0, 153]
    assert t.step_end_s.tolist() == [153, 253]


def test_streamed_operands_pass_while_their_step_runs() -> None:
    p = program(
        {"x": ("input", 30), "b": 50, "y": ("output", 1)},
        [
            step("x -> b", macs=10, streamed_reads="x", streamed_writes="b", stream_staging_bytes=4),
            step("b -> y", macs=90, streamed_reads="b", stream_staging_bytes=4),
        ],
    )
    q = plan(
        p,
        segments=[("y", 4, 6, 4)],
        transfers=[("drain", "y", 2, 2)],
        spills=[{"buffer": "b", "last_use_step": 0, "evict_step": 1, "needed_step": 1, "written": False,
                 "reloaded": False}],
        streamed=[(0, "x", "in"), (0, "b", "out"), (1, "b", "in")],
        scratch=[(0, "stream staging", 4, 0, 0, 3), (1, "stream staging", 4, 0, 3, 6)],
    )  # fmt: skip
    t = play(p, q, dram_read_setup_s=2.0, dram_write_setup_s=3.0)
    assert t.step_start_s.tolist() == [0, 53]  # in: 32 s, out: 53 s, at the same time
    assert t.step_end_s.tolist() == [53, 143]
    assert t.serial_cost_s == 53 + 52  # x is an input's first load; b goes out and comes back


def test_streamed_operand_waits_for_its_write_back() -> None:
    p = program(
        {"a": 10, "y": ("output", 1)},
        [step("-> a", macs=1), step("a -> y", macs=1, streamed_reads="a", stream_staging_bytes=4)],
    )
    q = plan(
        p,
        segments=[("a", 1, 3, 0), ("y", 4, 6, 20)],
        transfers=[("write-back", "a", 1, 1), ("drain", "y", 2, 2)],
        spills=[{"buffer": "a", "last_use_step": 0, "evict_step": 1, "needed_step": 1, "reloaded": False}],
        streamed=[(1, "a", "in")],
        scratch=[(1, "stream staging", 4, 10, 3, 6)],
    )
    t = play(p, q)
    assert t.step_start_s.tolist() == [0, 11]
    assert t.step_end_s.tolist() == [1, 21]
    assert t.stall_transfer.tolist() == [-1, 0]


def test_compaction_move_costs_a_read_and_a_write_of_sram() -> None:
    p = program({"a": 10, "y": ("output", 10)}, [step("-> a", macs=1), step("a -> y", macs=1)])
    q = plan(
        p,
        segments=[("a", 1, 3, 0), ("a", 3, 5, 20), ("y", 4, 6, 0)],
        transfers=[("drain", "y", 2, 2)],
        moves=[("a", 1, 0, 20)],
    )
    t = play(p, q, sram_bytes_per_s=4.0, sram_j_per_byte=1.0)
    assert t.step_start_s.tolist() == [0, 6]  # 2 x 10 bytes at 4 a second
    assert t.stall_transfer.tolist() == [-1, -1]
    assert t.energy_j == 10 + 20  # the drain, and the move twice


def test_read_issued_after_the_moves_of_its_step() -> None:
    p = program({"a": 10, "x": ("input", 10), "y": ("output", 10)}, [step("-> a", macs=1), step("a, x -> y", macs=1)])
    q = plan(
        p,
        segments=[("a", 1, 3, 0), ("x", 3, 5, 0), ("a", 3, 5, 20), ("y", 4, 6, 10)],
        transfers=[("fetch", "x", 1, 1), ("drain", "y", 2, 2)],
        moves=[("a", 1, 0, 20)],
    )
    t = play(p, q, sram_bytes_per_s=4.0)
    assert t.transfer_start_s.tolist() == [6, 17]


def test_infinite_sram_moves_inputs_and_outputs_only() -> None:
    p = program({"x": ("input", 10), "a": 10, "y": ("output", 10)}, [step("x -> a", macs=3), step("x, a -> y", macs=3)])
    q = plan(
        p,
        segments=[("x", 0, 5, 0), ("a", 1, 5, 10), ("y", 4, 6, 20)],
        transfers=[("fetch", "x", 0, 0), ("drain", "y", 2, 2)],
    )
    t = play(p, q, dram_read_j_per_byte=2.0, dram_write_j_per_byte=3.0, mac_j=5.0, sram_j_per_byte=0.5)
    assert (t.makespan_s, t.serial_cost_s) == (26, 0)
    assert t.energy_j == 20 + 30 + 30 + 10


def test_energy_counts_weights_streamed_operands_and_touched_bytes() -> None:
    p = program(
        {"x": ("input", 10), "y": ("output", 4)},
        [step("x -> y", streamed_reads="x", stream_staging_bytes=2, weight_stream_bytes=6, touched_bytes=20)],
    )
    q = plan(
        p, segments=[("y", 1, 3, 2)], transfers=[("drain", "y", 1, 1)], streamed=[(0, "x", "in")],
        scratch=[(0, "stream staging", 2, 0, 0, 3)],
    )  # fmt: skip
    t = play(p, q, dram_read_j_per_byte=1e3, dram_write_j_per_byte=1e6, sram_j_per_byte=1.0)
    assert t.energy_j == 16e3 + 4e6 + (20 + 16 + 4)


def test_step_time_is_the_larger_of_macs_and_touched_bytes_plus_launch() -> None:
    p = program(
        {}, [step("->", macs=100, mac_dtype="int8"), step("->", macs=100), step("->", macs=1, touched_bytes=600), "->"]
    )
    machine = target(macs_per_s={"default": 10.0, "int8": 40.0}, utilisation={"default": 0.5}, sram_bytes_per_s=20.0,
                     launch_overhead_s=0.25)  # fmt: skip
    assert step_times_s(p, machine).tolist() == [5.25, 20.25, 30.25, 0.25]


def test_products_run_at_the_utilisation_of_their_kind() -> None:
    """100 MACs at 10 a second: all of it for the default, a fifth for depthwise convolutions."""
    p = program({}, [step("->", macs=100, product_kind=kind) for kind in ("default", "matmul", "depthwise")])
    machine = target(macs_per_s={"default": 10.0}, utilisation={"default": 1.0, "depthwise": 0.2})
    assert step_times_s(p, machine).tolist() == [10, 10, 50]


def test_the_vector_unit_runs_beside_the_products() -> None:
    """A MAC a second, 4 vector operations a second, 20 bytes a second: the largest of three counts, plus the launch."""
    steps = [
        step("->", macs=10, vector_ops=20, touched_bytes=60), step("->", macs=2, vector_ops=20, touched_bytes=60),
        step("->", vector_ops=4, touched_bytes=60), step("->", vector_ops=400, measured_s=7.0),
    ]  # fmt: skip
    p = program({}, steps)
    machine = target(vector_ops_per_s=4.0, sram_bytes_per_s=20.0, launch_overhead_s=0.25)
    assert step_times_s(p, machine).tolist() == [10.25, 5.25, 3.25, 7.0]
    assert units_times_s(p, machine).tolist() == [10, 5, 1, 100]


def test_without_a_vector_unit_bytes_alone_count_beside_macs() -> None:
    p = program({}, [step("->", macs=2, vector_ops=400, touched_bytes=60)])
    assert step_times_s(p, target(sram_bytes_per_s=20.0)).tolist() == [3]


def test_empty_program_takes_no_time() -> None:
    p = program({}, [])
    t = play(p, plan(p))
    assert (t.makespan_s, t.compute_s, t.energy_j, len(t.step_start_s)) == (0, 0, 0, 0)


def test_same_plan_gives_the_same_numbers() -> None:
    first, second = (play(*spilled([5, 3, 4, 5])) for _ in range(2))
    assert first.step_start_s.tobytes() == second.step_start_s.tobytes()


@st.composite
def chains(draw: st.DrawFn) -> tuple[Program, Plan]:
    """A chain of steps; each intermediate may stay on-chip, or be spilled and come back at one of two addresses."""
    n = draw(st.integers(1, 8))
    sizes = [draw(st.integers(1, 20)) for _ in range(n + 1)]
    names = [f"b{i}" for i in range(n + 1)]
    kinds = ["input", *["activation"] * (n - 1), "output"]
    p = program(
        {name: (kind, size) for name, kind, size in zip(names, kinds, sizes, strict=True)},
        [
            step(f"b{i} -> b{i + 1}", macs=draw(st.integers(0, 40)), weight_stream_bytes=draw(st.integers(0, 40)))
            for i in range(n)
        ],
        reservations=[("weight staging", 16)],
    )
    segments: list[tuple[str, int, int, int]] = [("b0", 0, 2, 16)]
    transfers: list[tuple[str, str, int, int, int]] = [("fetch", "b0", 0, 0, 0)]
    spills = []
    for i in range(1, n):
        base = 16 + 20 * (2 * (i % 2))
        if draw(st.booleans()):
            segments += [(f"b{i}", 3 * i - 2, 3 * i, base), (f"b{i}", 3 * i, 3 * i + 2, base + 20)]
            transfers += [("write-back", f"b{i}", i, i, 0), ("reload", f"b{i}", i, i, 1)]
            spills.append({"buffer": f"b{i}", "last_use_step": i - 1, "evict_step": i, "needed_step": i})
        else:
            segments.append((f"b{i}", 3 * i - 2, 3 * i + 2, base))
    segments.append((f"b{n}", 3 * n - 2, 3 * n, 16 + 20 * (2 * (n % 2))))
    transfers.append(("drain", f"b{n}", n, n, 0))
    return p, plan(p, segments=segments, transfers=transfers, spills=spills)


@settings(max_examples=100, deadline=None)
@given(chains(), st.floats(0.1, 10), st.floats(0.1, 10), st.floats(0, 5))
def test_timeline_obeys_bandwidth_order_and_dependences(
    chain: tuple[Program, Plan], read: float, write: float, setup: float
) -> None:
    p, q = chain
    t = play(p, q, dram_read_bytes_per_s=read, dram_write_bytes_per_s=write, dram_read_setup_s=setup)
    traffic = recount(p, q)
    read_bytes = traffic.compulsory_read_bytes + traffic.spill_read_bytes
    write_bytes = traffic.compulsory_write_bytes + traffic.spill_write_bytes
    lower = max(t.compute_s, read_bytes / read, write_bytes / write)
    assert t.makespan_s >= lower * (1 - 1e-9)
    before = np.concatenate([[0.0], t.step_end_s[:-1]])
    assert np.all(t.step_start_s >= before)
    assert t.stall_s == pytest.approx(t.step_start_s - before)
    for is_read in (True, False):
        queue = [k for k, transfer in enumerate(q.transfers) if transfer.kind.is_read == is_read]
        assert np.all(t.transfer_start_s[queue][1:] >= t.transfer_end_s[queue][:-1])
    for k, transfer in enumerate(q.transfers):
        if transfer.kind.is_read:
            assert t.transfer_end_s[k] <= t.step_start_s[transfer.needed_step]
        if transfer.issue_step:
            assert t.transfer_start_s[k] >= t.step_end_s[transfer.issue_step - 1]


def occupancies_s(p: Program, q: Plan, t: Timeline) -> list[tuple[float, float, int, int]]:
    """``(start_s, end_s, address, top)`` of every segment: from its read or step on, until its last step or write."""
    result = []
    for k, s in enumerate(q.segments):
        own = [j for j, transfer in enumerate(q.transfers) if transfer.segment == k]
        filled = [t.transfer_start_s[j] for j in own if q.transfers[j].kind.is_read]
        start_s = filled[0] if filled else t.step_start_s[s.start // 3]
        written = [t.transfer_end_s[j] for j in own if not q.transfers[j].kind.is_read]
        end_s = max([t.step_end_s[(s.end - 1) // 3], *written])
        result.append((start_s, end_s, s.address, s.address + p.buffers[s.buffer].size_bytes))
    return result


@settings(max_examples=100, deadline=None)
@given(chains(), st.floats(0.1, 10), st.floats(0.1, 10))
def test_nobody_enters_a_place_before_the_last_byte_has_left(
    chain: tuple[Program, Plan], read: float, write: float
) -> None:
    p, q = chain
    t = play(p, q, dram_read_bytes_per_s=read, dram_write_bytes_per_s=write)
    occupancies = sorted(occupancies_s(p, q, t))
    for i, (start_s, _, address, top) in enumerate(occupancies):
        for _, end_s, other_address, other_top in occupancies[:i]:
            if address < other_top and other_address < top:
                assert start_s >= end_s
