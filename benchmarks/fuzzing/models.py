"""Damaged ONNX models."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from random import Random

import onnx
from onnx import helper

from fuzzing.raw_bytes import damaged_bytes, damaged_fields

LARGE_BYTES = 1 << 18
HUGE = (0, 1, -1, 7, 1 << 31, (1 << 31) - 1, 1 << 40, (1 << 63) - 1, -(1 << 63))
NAMES = ("", "<script>alert(1)</script>", "\x1b[2J", "\u202ex", "a\nb\rc", "=cmd|' /C calc'!A0", "x" * 10_000,
         "../../x", "\x00", "\ud7ff", "x", "y", "'\"`$(id)")  # fmt: skip


def damaged_model(rng: Random, models: list[bytes]) -> bytes:
    """One of the models: its graph edited, or its bytes."""
    data = rng.choice(models)
    kind = rng.random()
    if kind < 0.5:
        with contextlib.suppress(Exception):  # what protobuf itself cannot hold is no case
            model = onnx.ModelProto.FromString(data)
            for _ in range(rng.randint(1, 4)):
                rng.choice(_EDITS)(rng, model)
            data = model.SerializeToString()
        return data if rng.random() < 0.8 else damaged_bytes(rng, data)
    if kind < 0.6:
        other = rng.choice(models)
        return data[: rng.randrange(len(data))] + other[rng.randrange(len(other)) :]
    if kind < 0.75:
        return damaged_fields(rng, data)
    return damaged_bytes(rng, data)


def models_in(folder: Path | None) -> list[bytes]:
    """Small models to damage: those of a folder, and one of our own."""
    found = [] if folder is None else [p for p in sorted(folder.rglob("*.onnx")) if p.is_file()]
    return [own_model(), *(p.read_bytes() for p in found if 0 < p.stat().st_size <= LARGE_BYTES)]


def own_model() -> bytes:
    """Five operators, one weight."""
    nodes = [helper.make_node("Relu", ["x"], ["a"], name="a"), helper.make_node("Neg", ["x"], ["b"], name="b"),
             helper.make_node("Add", ["a", "b"], ["c"], name="c"),
             helper.make_node("MatMul", ["c", "w"], ["d"], name="d"),
             helper.make_node("Sub", ["d", "a"], ["y"], name="e")]  # fmt: skip
    x, y = (helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [32, 32]) for n in "xy")
    w = helper.make_tensor("w", onnx.TensorProto.FLOAT, [32, 32], bytes(4096), raw=True)
    graph = helper.make_graph(nodes, "own", [x], [y], [w])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()


def _node(rng: Random, model: onnx.ModelProto) -> onnx.NodeProto:
    return rng.choice(model.graph.node)


def _value_name(rng: Random, model: onnx.ModelProto) -> str:
    node = _node(rng, model)
    return rng.choice([*node.input, *node.output] or [""])


def _rename(rng: Random, model: onnx.ModelProto) -> None:
    node, name = _node(rng, model), rng.choice(NAMES)
    match rng.randrange(5):
        case 0:
            node.name = name
        case 1:
            node.op_type = rng.choice((name, "Relu", "Concat", "Reshape", "If", "Loop", "MatMul", "Split", "Expand"))
        case 2:
            node.domain = rng.choice((name, "com.microsoft", "ai.onnx.ml"))
        case 3:
            model.graph.name = name
        case 4 if node.output:
            node.output[rng.randrange(len(node.output))] = name


def _rewire(rng: Random, model: onnx.ModelProto) -> None:
    node = _node(rng, model)
    if node.input and rng.random() < 0.7:
        node.input[rng.randrange(len(node.input))] = _value_name(rng, model)
    elif rng.random() < 0.5:
        node.input.extend([_value_name(rng, model)] * rng.choice((1, 2, 5000)))
    else:
        node.output.append(rng.choice((_value_name(rng, model), "", "new")))


def _resize(rng: Random, model: onnx.ModelProto) -> None:
    values = [*model.graph.input, *model.graph.output, *model.graph.value_info]
    shape = rng.choice(values).type.tensor_type.shape
    size = rng.choice(HUGE)
    if shape.dim and rng.random() < 0.8:
        dim = rng.choice(shape.dim)
        if rng.random() < 0.3:
            dim.dim_param = rng.choice(NAMES)
        else:
            dim.dim_value = size
    else:
        shape.dim.add().dim_value = size


def _restore(rng: Random, model: onnx.ModelProto) -> None:
    tensor = rng.choice(model.graph.initializer)
    match rng.randrange(6):
        case 0 if tensor.dims:
            tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(HUGE)
        case 1:
            tensor.data_type = rng.choice((0, 1, 7, 8, 9, 16, 21, 23, 99, 1 << 30))
        case 2:
            tensor.raw_data = bytes(rng.randrange(64))
        case 3:
            tensor.data_location = 1
            for key in ("location", "offset", "length"):
                tensor.external_data.add(
                    key=key, value=rng.choice((*NAMES, "/dev/zero", "/etc/passwd", "-1", str(1 << 60)))
                )
        case 4:
            model.graph.initializer.add().CopyFrom(tensor)
        case 5:
            tensor.name = _value_name(rng, model)


def _reset(rng: Random, model: onnx.ModelProto) -> None:
    node = _node(rng, model)
    if node.attribute and rng.random() < 0.7:
        attribute = rng.choice(node.attribute)
        match rng.randrange(5):
            case 0:
                attribute.i = rng.choice(HUGE)
            case 1 if attribute.ints:
                attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(HUGE)
            case 2:
                attribute.ints.extend([rng.choice(HUGE)] * rng.choice((1, 3, 3000)))
            case 3:
                attribute.type = rng.choice(range(15))
            case 4:
                node.attribute.add().CopyFrom(attribute)
    else:
        name = rng.choice(
            ("axis", "axes", "pads", "strides", "kernel_shape", "group", "perm", "to", "num_outputs", "split")
        )
        value = rng.choice((*HUGE[:7], [rng.choice(HUGE[:7]) for _ in range(rng.randint(1, 9))]))
        node.attribute.add().CopyFrom(helper.make_attribute(name, value))


def _repeat(rng: Random, model: onnx.ModelProto) -> None:
    match rng.randrange(4):
        case 0:
            model.graph.node.add().CopyFrom(_node(rng, model))
        case 1:
            model.graph.node.remove(_node(rng, model))
        case 2:
            model.graph.output.add().name = _value_name(rng, model)
        case 3:
            model.opset_import.add(domain=rng.choice(("", "com.microsoft", *NAMES)), version=rng.choice(HUGE))


def _nest(rng: Random, model: onnx.ModelProto) -> None:
    """A node becomes the branch of an If, the body of a Loop, or a call of a function, some levels deep."""
    inner = onnx.GraphProto(name="inner")
    inner.node.add().CopyFrom(_node(rng, model))
    inner.output.add().name = inner.node[0].output[0] if inner.node[0].output else ""
    for depth in range(rng.choice((1, 2, 20))):
        outer = onnx.GraphProto(name=f"level {depth}")
        node = outer.node.add(op_type=rng.choice(("If", "If", "Loop", "Scan")), output=[f"level{depth}"])
        node.input.extend([_value_name(rng, model)] * rng.randint(0, 3))
        for name in ("then_branch", "else_branch") if node.op_type == "If" else ("body",):
            node.attribute.add(name=name, type=onnx.AttributeProto.GRAPH).g.CopyFrom(inner)
        outer.output.add().name = f"level{depth}"
        inner = outer if depth < 6 or rng.random() < 0.8 else inner
        if inner.ByteSize() > LARGE_BYTES:
            break
    model.graph.node.add().CopyFrom(inner.node[0])


_EDITS: tuple[Callable[[Random, onnx.ModelProto], None], ...] = (
    _rename, _rewire, _rewire, _resize, _resize, _restore, _restore, _reset, _reset, _repeat, _nest,
)  # fmt: skip
