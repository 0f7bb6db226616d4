"""Suggestions do what they say: each, added to the command line, gives exactly the predicted figures."""

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest
from graphs import MACHINE, graph
from onnx import TensorProto, helper

from spillprof.cli import run
from spillprof.lowering.lower import lower
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.options import Order, PlanningOptions
from spillprof.whatif.change import Situation
from spillprof.whatif.setup import Setup
from spillprof.whatif.slots import slot
from spillprof.whatif.suggest import affordable_runs

SAMPLES = Path(__file__).parents[2] / "sample_models"
Analyze = Callable[..., dict[str, Any]]


@pytest.fixture
def analyzed(capsys: pytest.CaptureFixture[str]) -> Analyze:
    """Runs ``analyze`` in this process, and gives its JSON."""

    def call(*arguments: str) -> dict[str, Any]:
        capsys.readouterr()
        code = run(["analyze", *arguments, "--json"])
        captured = capsys.readouterr()
        assert code == 0, captured.err
        found: dict[str, Any] = json.loads(captured.out)
        return found

    return call


CASES = {
    "transformer": ("transformer_blocks.onnx", "--sram", "1250000", "--strategy", "lru,interval"),
    "transformer, cached, in the order found": (
        "transformer_blocks.onnx", "--sram", "1250000", "--strategy", "belady", "--weights", "cached", "--order",
        "memory", "--pin", "scale",
    ),
    "unet, im2col, a bus": (
        "unet.onnx", "--sram", "16MB", "--strategy", "cost", "--conv", "im2col", "--set", "dram-bus=80GB/s",
    ),
    "unet, the search alone": ("unet.onnx", "--sram", "12MB", "--strategy", "optimal", "--recompute", "rules"),
    "three branches, oversized": ("three_branch.onnx", "--sram", "600MB", "--strategy", "size"),
    "three branches, everything switched off": (
        "three_branch.onnx", "--sram", "900MB", "--strategy", "lru", "--dma", "demand", "--writeback", "always",
        "--fuse", "none", "--inplace", "off", "--views", "copy", "--release", "end", "--inputs", "resident",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_every_suggestion_gives_the_predicted_figures(case: str, analyzed: Analyze) -> None:
    model, *options = CASES[case]
    typed = [str(SAMPLES / model), *options]
    before = analyzed(*typed)
    lead = min(before["results"], key=lambda r: (r["spill_time_s"], r["spill_bytes"]))
    found = before["suggestions"]
    assert found
    assert before["bounds"]["any_order_bytes"] <= min(r["spill_bytes"] for r in before["results"])
    assert len({s["argument"] for s in found}) == len(found)
    assert [s["saves_s"] for s in found] == sorted((s["saves_s"] for s in found), reverse=True)
    for suggestion in found:
        after = analyzed(*typed, *shlex.split(suggestion["argument"]), "--what-if", "off")
        result = next(r for r in after["results"] if r["strategy"] == suggestion["strategy"])
        assert (result["spill_bytes"], result["latency_s"], result["energy_j"]) == (
            suggestion["spill_bytes"], suggestion["latency_s"], suggestion["energy_j"],
        ), suggestion["argument"]  # fmt: skip
        runs = 2 if suggestion["change"] == "batch" else 1
        assert suggestion["saves_s"] == lead["latency_s"] - runs * result["latency_s"]
        assert suggestion["saves_bytes"] == lead["spill_bytes"] - runs * result["spill_bytes"]
        assert suggestion["saves_j"] == lead["energy_j"] - runs * result["energy_j"]
        assert suggestion["saves_s"] > 0 or (suggestion["saves_s"] == 0 and suggestion["saves_bytes"] > 0)
        assert suggestion["costs"]


def test_a_pair_is_suggested_by_the_tensor_between_them(analyzed: Analyze) -> None:
    typed = [str(SAMPLES / "three_branch.onnx"), "--sram", "600MB", "--strategy", "size"]
    before = analyzed(*typed)
    (best, *_) = (s for s in before["suggestions"] if s["change"] == "fuse-tensor")
    assert best["argument"] in ("--fuse-tensor a2", "--fuse-tensor b2")
    assert best["costs"] == "a kernel that runs Conv and Add as one"
    assert best["saves_bytes"] > 0
    after = analyzed(*typed, *shlex.split(best["argument"]), "--what-if", "off")
    assert after["model"]["steps"] == before["model"]["steps"] - 1
    assert after["config"]["fuse_tensor"] == best["argument"].split()[1:]


def test_half_a_batch_counts_twice(tmp_path: Path, analyzed: Analyze) -> None:
    model = tmp_path / "batch.onnx"
    nodes = [
        helper.make_node("Softmax", ["x"], ["a"]),
        helper.make_node("Softmax", ["a"], ["b"]),
        helper.make_node("Softmax", ["b"], ["c"]),
        helper.make_node("Add", ["a", "c"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 262_144]) for name in "xy")
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", [x], [y])), model)
    typed = [str(model), "--sram", "9MB", "--batch", "4", "--strategy", "lru"]
    (half,) = (s for s in analyzed(*typed)["suggestions"] if s["change"] == "batch")
    assert half["argument"] == "--batch 2"
    assert half["costs"] == "2 runs for the same work"
    (before,) = analyzed(*typed, "--what-if", "off")["results"]
    (after,) = analyzed(*typed, "--batch", "2", "--what-if", "off")["results"]
    assert (half["spill_bytes"], half["latency_s"]) == (after["spill_bytes"], after["latency_s"])
    assert half["saves_s"] == before["latency_s"] - 2 * after["latency_s"]
    assert not any(s["change"] == "batch" for s in analyzed(*typed, "--batch", "3")["suggestions"])


HOSTILE = 'it\'s \x1b[2J$(touch /tmp/x) \u202e`id` "q" --sram \\'


def test_a_hostile_name_is_pinned_as_it_stands(tmp_path: Path, analyzed: Analyze) -> None:
    model = tmp_path / "hostile.onnx"
    nodes = [
        helper.make_node("Softmax", ["x"], [HOSTILE]),
        helper.make_node("Softmax", [HOSTILE], ["b"]),
        helper.make_node("Softmax", ["b"], ["c"]),
        helper.make_node("Softmax", ["c"], ["d"]),
        helper.make_node("Add", [HOSTILE, "d"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1 << 18]) for name in "xy")
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", [x], [y])), model)
    typed = [str(model), "--sram", "2560KB", "--strategy", "lru"]
    (story,) = analyzed(*typed, "--why", HOSTILE)["why"]["tensors"]
    assert story["absences"]
    pinned = story["pinned"]
    assert pinned["argument"].isprintable()
    (after,) = analyzed(*typed, "--pin", HOSTILE, "--what-if", "off")["results"]
    assert (pinned["spill_bytes"], pinned["latency_s"]) == (after["spill_bytes"], after["latency_s"])


def test_nothing_is_suggested_where_nothing_spills_or_nobody_asks(analyzed: Analyze) -> None:
    model = str(SAMPLES / "unet.onnx")
    assert analyzed(model, "--sram", "64MB", "--strategy", "lru")["suggestions"] == []
    assert analyzed(model, "--sram", "16MB", "--strategy", "lru", "--what-if", "off")["suggestions"] == []


CHAIN = graph({"x": (8,)}, ["Softmax x -> a", "Softmax a -> y"], outputs="y", tensors={"a": (8,), "y": (8,)})


@pytest.mark.parametrize(("n_steps", "runs"), [(2, 40), (900, 40), (3_000, 12), (36_000, 1), (36_002, 0)])
def test_runs_depend_on_the_steps_alone(n_steps: int, runs: int) -> None:
    assert affordable_runs(long_chain(n_steps, Order.FILE)) == runs
    assert affordable_runs(long_chain(n_steps, Order.MEMORY)) <= runs


def test_a_search_for_an_order_counts_as_all_that_it_judges() -> None:
    assert affordable_runs(long_chain(750, Order.MEMORY)) <= 4


def long_chain(n_steps: int, order: Order) -> Situation:
    program = lower(CHAIN, MACHINE, LoweringOptions())
    planning = PlanningOptions(order=order)
    setup = Setup(graph=CHAIN, target=MACHINE, lowering=LoweringOptions(), planning=planning, strategy="lru")
    long = replace(program, steps=program.steps * (n_steps // 2))
    return Situation(setup=setup, program=long, spill_bytes=1, buffers=(), strategies=("lru",))


def test_a_name_that_no_shell_can_carry_gets_no_slot() -> None:
    setup = Setup(graph=CHAIN, target=MACHINE, lowering=LoweringOptions(), planning=PlanningOptions(), strategy="lru")
    assert slot("a\0b", 8, setup) is None
    assert slot("", 8, setup) is None
    quoted = slot("a b", 8, setup)
    assert quoted is not None
    assert quoted.argument == "--pin 'a b'"
