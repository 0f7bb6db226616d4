"""Order of the steps, dead operators, and graphs that cannot run."""

import pytest
from graphs import graph, lowered, op, picture

from spillprof.ir.errors import ModelError
from spillprof.lowering.options import Fuse

T = (4,)


def test_file_order_is_kept_where_it_is_topological():
    g = graph(
        {"x": T}, ["Softmax x -> b", "Softmax x -> a", "Concat b a -> y"], "y", tensors={"a": T, "b": T, "y": (8,)}
    )
    program = lowered(g)
    assert picture(program) == ["Softmax x -> b", "Softmax x -> a", "Concat b a -> y"]
    assert program.notes == ()


def test_reversed_chain_is_sorted_and_noted():
    g = graph({"x": T}, ["Softmax b -> y", "Softmax a -> b", "Softmax x -> a"], "y", tensors={"a": T, "b": T, "y": T})
    program = lowered(g)
    assert picture(program) == ["Softmax x -> a", "Softmax a -> b", "Softmax b -> y"]
    assert any("topological" in note for note in program.notes)


def test_of_the_ready_operators_the_first_in_the_file_goes_first():
    ops = ["Concat b c -> y", "Softmax x -> c", "Softmax x -> b"]
    program = lowered(graph({"x": T}, ops, "y", tensors={"b": T, "c": T, "y": (8,)}))
    assert picture(program) == ["Softmax x -> c", "Softmax x -> b", "Concat b c -> y"]


def test_capture_of_a_body_orders_the_operator():
    body = graph({}, ["Softmax a -> r"], "r", tensors={"a": T, "r": T})
    ops = [op("If c -> y", captures="a", subgraphs=[body, body]), "Softmax x -> a"]
    program = lowered(graph({"x": T, "c": ("bool", ())}, ops, "y", tensors={"a": T, "y": T}))
    assert picture(program) == ["Softmax x -> a", "If c ->", "Softmax a -> y"]


def test_cycle_is_refused_by_name():
    ops = [op("Softmax b -> a", name="first"), op("Softmax a -> b", name="second"), "Softmax b -> y"]
    with pytest.raises(ModelError, match="cycle") as error:
        lowered(graph({"x": T}, ops, "y", tensors={"a": T, "b": T, "y": T}))
    assert error.value.where[0] in ("operator 'first'", "operator 'second'")


def test_tensor_that_nobody_writes_is_refused():
    with pytest.raises(ModelError, match="'ghost' is read but never written"):
        lowered(graph({"x": T}, ["Add x ghost -> y"], "y", tensors={"ghost": T, "y": T}))


def test_tensor_written_twice_is_refused():
    with pytest.raises(ModelError, match="'y' is written twice"):
        lowered(
            graph({"x": T}, [op("Softmax x -> y", name="p"), op("Softmax x -> y", name="q")], "y", tensors={"y": T})
        )


def test_output_that_nobody_writes_is_refused():
    with pytest.raises(ModelError, match="output 'z' is never written"):
        lowered(graph({"x": T}, ["Softmax x -> y"], "z", tensors={"y": T, "z": T}))


def test_dead_branch_is_removed_and_counted():
    g = graph({"x": T}, ["Softmax x -> a", "Softmax a -> b", "Softmax x -> y"], "y", tensors={"a": T, "b": T, "y": T})
    program = lowered(g)
    assert picture(program) == ["Softmax x -> y"]
    assert program.removed_operators == 2


def test_unfolded_program_keeps_dead_operators():
    g = graph({"x": T}, ["Softmax x -> a", "Softmax x -> y"], "y", tensors={"a": T, "y": T})
    program = lowered(g, fold=False)
    assert picture(program) == ["Softmax x -> a", "Softmax x -> y"]
    assert program.removed_operators == 0


def test_graph_without_outputs_keeps_everything_and_says_so():
    program = lowered(graph({"x": T}, ["Softmax x -> a"], "", tensors={"a": T}))
    assert picture(program) == ["Softmax x -> a"]
    assert any("no outputs" in note for note in program.notes)


def test_operator_without_outputs_is_kept_with_what_it_needs():
    g = graph(
        {"x": T}, ["Softmax x -> a", op("Print a ->", domain="debug"), "Softmax x -> y"], "y", tensors={"a": T, "y": T}
    )
    assert picture(lowered(g)) == ["Softmax x -> a", "Print a ->", "Softmax x -> y"]


def test_one_used_output_keeps_an_operator_and_its_other_outputs():
    g = graph({"x": T}, ["TopK x -> v i"], "i", tensors={"v": T, "i": ("int64", T)})
    assert picture(lowered(g)) == ["TopK x -> v i"]


def test_empty_graph_lowers_to_an_empty_program():
    program = lowered(graph({"x": T}, [], "x"), fuse=Fuse.NONE)
    assert program.steps == ()
    assert program.buffers == ()
