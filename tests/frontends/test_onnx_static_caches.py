"""Past keys and values in a buffer of fixed capacity: attention returns the buffer's length."""

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_builders import node, read, value

from spillprof.ir.errors import UsageError
from spillprof.ir.graph import Graph

FLOAT, INT32, INT64 = 1, 6, 7
HEADS, GROUPS, WIDTH, CAPACITY = 4, 2, 8, 16
LARGEST = "the output of GroupQueryAttention depends on the data: its largest size is taken"


def grouped(
    length: int,
    *,
    total: int | None = None,
    declared: Sequence[int | str] | None = None,
    capacity: int | str = CAPACITY,
) -> bytes:
    """One GroupQueryAttention; the total length stored, or fed."""
    names = ["q", "k", "v", "past_k", "past_v", "lengths", "total"]
    cache = [value(n, [1, GROUPS, capacity, WIDTH]) for n in names[3:5]]
    fed = [value("q", [1, length, HEADS * WIDTH]), *(value(n, [1, length, GROUPS * WIDTH]) for n in "kv"), *cache]
    fed.append(value("lengths", [1], INT32))
    stored = [] if total is None else [numpy_helper.from_array(np.array([total], np.int32), "total")]
    fed += [] if stored else [value("total", [1], INT32)]
    settings = {"num_heads": HEADS, "kv_num_heads": GROUPS}
    built = node("GroupQueryAttention", " ".join(names), "y keys values", domain="com.microsoft", **settings)
    outputs = [value(name, declared) if declared else onnx.ValueInfoProto(name=name) for name in ("keys", "values")]
    graph = helper.make_graph([built], "g", fed, [value("y", [1, length, HEADS * WIDTH]), *outputs], stored)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString()


def cache_length(graph: Graph) -> int:
    keys, values = graph.tensors["keys"].shape, graph.tensors["values"].shape
    assert keys == values
    assert (keys[0], keys[1], keys[3]) == (1, GROUPS, WIDTH)
    return keys[2]


@pytest.mark.parametrize(
    ("length", "total", "expected"), [(1, 1, 16), (1, 16, 16), (1, 17, 17), (8, 8, 16), (4, 20, 20)]
)
def test_a_stored_total_length_decides(length: int, total: int, expected: int) -> None:
    graph = read(grouped(length, total=total))
    assert cache_length(graph) == expected
    assert [a.what for a in graph.assumptions] == []


def test_what_the_file_declares_is_taken_where_the_runtime_can_make_it() -> None:
    for declared in (16, 17):
        graph = read(grouped(1, declared=[1, GROUPS, declared, WIDTH]))
        assert cache_length(graph) == declared
        assert graph.notes == ()
        assert LARGEST not in [a.what for a in graph.assumptions]


def test_one_symbol_for_past_and_present() -> None:
    data = grouped(1, capacity="capacity", declared=[1, GROUPS, "capacity", WIDTH])
    assert cache_length(read(data, dims={"capacity": 32})) == 32


@pytest.mark.parametrize(
    "declared", [None, [1, GROUPS, "total", WIDTH], [1, GROUPS, 15, WIDTH], [1, GROUPS, 21, WIDTH]]
)
def test_without_a_word_that_can_be_true_the_largest_length_is_taken(declared: list[int | str] | None) -> None:
    graph = read(grouped(4, declared=declared))
    assert cache_length(graph) == CAPACITY + 4
    assert LARGEST in [a.what for a in graph.assumptions]
    assert len(graph.notes) == (declared is not None and "total" not in declared)


def test_a_length_can_be_assumed_between_the_least_and_the_largest() -> None:
    data = grouped(4)
    for length in (16, 18, 20):
        shape = (1, GROUPS, length, WIDTH)
        assert cache_length(read(data, assume={"keys": shape, "values": shape})) == length
    for length, why in ((15, "at least [1, 2, 16, 8]"), (21, "at most [1, 2, 20, 8]")):
        with pytest.raises(UsageError, match="contradicts the model") as refused:
            read(data, assume={"keys": (1, GROUPS, length, WIDTH)})
        assert why in refused.value.where[-1]


def test_a_total_length_that_cannot_be_is_no_size() -> None:
    with pytest.raises(Exception, match="stays unknown"):
        read(grouped(1, total=40))


@pytest.mark.parametrize(
    ("op_type", "past", "settings"),
    [
        ("MultiHeadAttention", "- - - c c n", {}),
        ("MultiHeadAttention", "- - - c c", {"past_present_share_buffer": 1}),
        ("DecoderMaskedMultiHeadAttention", "- - c c", {"past_present_share_buffer": 1}),
        ("DecoderMaskedMultiHeadAttention", "- - c c n", {}),
    ],
)
def test_attention_over_a_shared_buffer_returns_the_buffer(op_type: str, past: str, settings: dict[str, int]) -> None:
    built = node(op_type, f"q k v {past}", "y keys values", domain="com.microsoft", num_heads=2, **settings)
    fed = [value("c", [1, 2, CAPACITY, 4]), *(value(n, [1, 1, 8]) for n in "qkv")]
    fed += [value("n", [1], INT32)] if "n" in past else []
    graph = helper.make_graph([built], "g", fed, [onnx.ValueInfoProto(name=n) for n in ("y", "keys", "values")])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    tensors = read(helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString()).tensors
    assert tensors["keys"].shape == tensors["values"].shape == (1, 2, CAPACITY, 4)


@pytest.mark.parametrize(
    ("op_type", "settings", "length"),
    [
        ("DecoderMaskedSelfAttention", {}, 16),  # always shares
        ("Attention", {"past_present_share_buffer": 1}, 16),
        ("Attention", {}, 17),
    ],
)
def test_attention_with_its_projection_inside(op_type: str, settings: dict[str, int], length: int) -> None:
    built = node(op_type, "x w b - past - n", "y present", domain="com.microsoft", num_heads=2, **settings)
    sizes = {"x": [1, 1, 8], "w": [8, 24], "b": [24], "past": [2, 1, 2, CAPACITY, 4]}
    fed = [*(value(name, size) for name, size in sizes.items()), value("n", [1], INT32)]
    graph = helper.make_graph([built], "g", fed, [onnx.ValueInfoProto(name=n) for n in ("y", "present")])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    tensors = read(helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString()).tensors
    assert tensors["present"].shape == (2, 1, 2, length, 4)


def test_scattered_tokens_keep_the_cache() -> None:
    cache, new = [1, GROUPS, CAPACITY, WIDTH], [1, GROUPS, 1, WIDTH]
    nodes = [node("TensorScatter", "past new at", "present", axis=2), node("Attention", "q present present", "y")]
    fed = [value("past", cache), value("new", new), value("at", [1], INT64), value("q", [1, HEADS, 1, WIDTH])]
    graph = helper.make_graph(nodes, "g", fed, [value("y", [1, HEADS, 1, WIDTH]), value("present", cache)])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)
    tensors = read(made.SerializeToString()).tensors
    assert (tensors["present"].shape, tensors["y"].shape) == (tuple(cache), (1, HEADS, 1, WIDTH))
