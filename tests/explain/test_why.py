"""Explanations of a tensor or an operator, on graphs whose spills are known by hand."""

from functools import cache

import pytest
from graphs import MACHINE, graph

from spillprof.explain.analyze import analyze
from spillprof.explain.options import AnalyzeOptions
from spillprof.explain.whatif.why import resolve
from spillprof.ir.errors import UsageError
from spillprof.ir.story import OperatorStory, Story, TensorStory
from spillprof.lowering.lower import lower
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.options import PlanningOptions, Release
from spillprof.report.profile.story import story_paragraphs

SKIP = graph(
    {"x": (100,)},
    ["Softmax x -> a", "Softmax a -> b", "Softmax b -> c", "Softmax c -> d", "Add a d -> y"],
    outputs="y",
    tensors=dict.fromkeys("abcdy", (100,)),
)
"""Every tensor is 400 bytes. a is read by steps 1 and 4; step 2 needs b and c, so beside a it needs 1200."""


@cache
def told(name: str, sram_bytes: int = 1024, strategy: str = "lru", **planning: Release) -> Story:
    target = MACHINE.with_overrides(sram_bytes=sram_bytes)
    options = AnalyzeOptions(strategies=(strategy,), planning=PlanningOptions(**planning))
    story = analyze(SKIP, target, options, why=name).why
    assert story is not None
    return story


def tensor(name: str, sram_bytes: int = 1024) -> TensorStory:
    (found,) = told(name, sram_bytes).tensors
    return found


def operator(name: str, sram_bytes: int = 1024) -> OperatorStory:
    (found,) = told(name, sram_bytes).operators
    return found


def test_a_skip_is_evicted_and_reloaded() -> None:
    a = tensor("a")
    assert (a.size_bytes, a.kind, a.written_by_step, a.read_by_steps) == (a.size_bytes, "activation", 0, (1, 4))
    (absence,) = a.absences
    assert (absence.last_use_step, absence.forced_by_step, absence.needed_step) == (1, 2, 4)
    assert (absence.forced_by, absence.needed_by, absence.kind) == ("c", "y", "capacity")
    assert (absence.write_bytes, absence.read_bytes) == (a.size_bytes, a.size_bytes)
    assert a.spill_bytes == 2 * a.size_bytes
    assert a.wait_s >= 0


def test_more_sram_keeps_the_skip_and_the_smallest_size_is_found() -> None:
    stays = tensor("a").stays
    assert stays is not None
    size = int(stays.argument.removeprefix("--sram "))
    assert tensor("a", size).absences == ()
    assert stays.spill_bytes == 0
    step = 32  # of the sizes that are tried: a 32nd of 1024
    assert size % step == 0
    assert tensor("a", size - step).absences != ()
    assert tensor("a", size).stays is None
    assert tensor("a", size).pinned is None


def test_a_slot_is_tried_even_if_it_costs_more() -> None:
    pinned = tensor("a").pinned
    assert pinned is not None
    assert pinned.argument == "--pin a"
    target = MACHINE.with_overrides(sram_bytes=1024)
    options = AnalyzeOptions(strategies=("lru",), lowering=LoweringOptions(pin=("a",)))
    (result,) = analyze(SKIP, target, options).results
    assert (result.spill_bytes, result.latency_s) == (pinned.spill_bytes, pinned.latency_s)


def test_an_operator_lists_its_operands_victims_and_bystanders() -> None:
    c = operator("c")
    assert {(o.buffer, o.role) for o in c.operands} == {("b", "reads"), ("c", "writes")}
    assert [v.buffer for v in c.victims] == ["a"]
    assert c.bystanders == ()
    assert c.demand_bytes == sum(o.size_bytes for o in c.operands)
    b = operator("b", 4096)
    assert b.victims == ()
    d = operator("d", 4096)
    assert [(s.buffer, s.next_use_step) for s in d.bystanders] == [("a", 4)]


def test_late_release_leaves_dead_buffers_beside() -> None:
    (d,) = told("d", 4096, release=Release.END).operators
    assert ("b", None) in {(s.buffer, s.next_use_step) for s in d.bystanders}


def test_a_tensor_that_never_leaves_says_so() -> None:
    titles = [(title, sentences) for title, sentences, _ in story_paragraphs(told("b"))]
    assert "It stays in SRAM from its first use to its last: nothing of it spills." in titles[0][1]
    assert titles[0][0] == "Why b (under lru)"
    assert titles[1][0] == "Why #1 b (under lru)"


def test_sentences_of_the_skip() -> None:
    (_, sentences, absences), _ = story_paragraphs(told("a"))
    text = " ".join(sentences)
    assert "Written by #0 a, read by #1 b, #4 y." in text
    assert "It leaves 1 time: " in text
    assert "In a slot of its own: --pin a (latency" in text
    assert "It would stay by itself with --sram " in text
    assert len(absences) == 1


def test_fused_operators_and_views_mean_their_step_and_their_buffer() -> None:
    g = graph(
        {"x": (1, 10)},
        ["MatMul x w -> m", "Relu m -> r", "Flatten r -> v", "Softmax v -> y"],
        outputs="y",
        weights={"w": (10, 10)},
        tensors=dict.fromkeys("mrvy", (1, 10)),
    )
    program = lower(g, MACHINE, LoweringOptions())
    assert [step.operators for step in program.steps] == [("m", "r"), ("y",)]
    buffer_of = {tensor: b.index for b in program.buffers for tensor in b.tensors}
    assert resolve("v", g, program)[0] == (buffer_of["r"],)  # a view: what it is stored in
    assert resolve("m", g, program) == ((), (0,))  # a fused operator, and a tensor inside of its step
    assert resolve("#1", g, program) == ((), (1,))
    with pytest.raises(UsageError, match="there is no story of 'w'"):
        resolve("w", g, program)


@pytest.mark.parametrize("name", ["", "nobody", "#99", "#-1", "#" + "9" * 10_000, "\x1b[2J", "x" * 10_000])
def test_an_unknown_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="the model has no tensor or operator"):
        resolve(name, SKIP, lower(SKIP, MACHINE, LoweringOptions()))


def test_a_mistyped_name_is_answered_with_the_nearest() -> None:
    g = graph({"input": (4,)}, ["Relu input -> activation"], outputs="activation", tensors={"activation": (4,)})
    with pytest.raises(UsageError) as caught:
        resolve("activaton", g, lower(g, MACHINE, LoweringOptions()))
    assert caught.value.hint == "did you mean activation?"


def test_nothing_leaves_infinite_sram() -> None:
    with pytest.raises(UsageError, match="nothing leaves a memory without limit"):
        told("a", 1024, "none")
