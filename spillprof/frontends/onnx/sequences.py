"""Sequences and optionals whose members are known one by one; expands SequenceMap into a Loop."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from spillprof.frontends.onnx.elements import Member, ValueType, tensor_type, without_contents
from spillprof.frontends.onnx.inference import place
from spillprof.frontends.onnx.node import Body, Node, OperatorKinds
from spillprof.frontends.onnx.proto import Array, AttributeProto, TensorProto, TypeProto
from spillprof.frontends.onnx.scope import Scope
from spillprof.ir.errors import ModelError
from spillprof.ir.graph import AttributeValue


def is_sequence_map(node: Node) -> bool:
    """Whether an operator applies a body to each element of a sequence."""
    return node.domain == "" and node.op_type == "SequenceMap" and bool(node.bodies)


def as_loop(node: Node, scope: Scope) -> Sequence[Node]:
    """Expands a SequenceMap into the length of its first sequence, empty output sequences, and a Loop that fills them.

    ``ModelError`` if body and operator do not match. Inputs that are no sequences are passed to every element.
    """
    body = node.bodies[0]
    if (
        len(node.bodies) > 1
        or not node.inputs
        or len(body.inputs) != len(node.inputs)
        or len(body.outputs) < len(node.outputs)
    ):
        raise ModelError("the body of a SequenceMap does not match its inputs and outputs", where=(place(node),))
    stem = f"{node.name}/sequence map"
    count = len(node.outputs)
    collected = [f"{stem}/collected {i}" for i in range(count)]
    length = _node(node, f"{stem}/length", "SequenceLength", (node.inputs[0],), (f"{stem}/length",))
    empty = [_empty_sequence(node, body, f"{stem}/empty {i}", body.outputs[i]) for i in range(count)]
    trip, going = f"{stem}/trip", f"{stem}/going"
    taken: list[Node] = []
    for (formal, _), source in zip(body.inputs, node.inputs, strict=True):
        known = scope.type_of(source)
        is_sequence = known is not None and known.dtype == "sequence"
        op_type, inputs = ("SequenceAt", (source, trip)) if is_sequence else ("Identity", (source,))
        taken.append(_node(node, f"{stem}/{op_type} {len(taken)}", op_type, inputs, (formal,)))
    grown = [f"{name}, one more" for name in collected]
    kept = [
        _node(node, f"{stem}/SequenceInsert {i}", "SequenceInsert", (collected[i], body.outputs[i]), (grown[i],))
        for i in range(count)
    ]
    inner = Body(
        name=body.name,
        inputs=tuple((name, None) for name in (trip, going, *collected)),
        outputs=(going, *grown),
        nodes=[*taken, *body.nodes, *kept],
        constants=body.constants,
        stored_types=body.stored_types,
        declared_types=body.declared_types,
        free_names=tuple(dict.fromkeys((*node.inputs, *body.free_names))),
    )
    loop = _node(node, node.name, "Loop", (length.outputs[0], "", *(e.outputs[0] for e in empty)), node.outputs)
    loop.bodies, loop.captures = (inner,), inner.free_names
    return (length, *empty, loop)


def _empty_sequence(node: Node, body: Body, name: str, output: str) -> Node:
    stated = body.declared_types.get(output)
    element = stated.tensor_type.elem_type if stated is not None else 0
    dtype = AttributeProto(name="dtype", type=AttributeProto.INT, i=element or TensorProto.FLOAT)
    return _node(node, name, "SequenceEmpty", (), (name,), dtype)


def _node(
    node: Node,
    name: str,
    op_type: str,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    *attributes: AttributeProto,
) -> Node:
    kind = OperatorKinds().kind(op_type, "", node.version, attributes)
    return Node(name=name, kind=kind, inputs=inputs, outputs=outputs)


MAX_MEMBERS = 1024
"""Limit of members that are tracked one by one; a longer sequence has unknown members."""

LARGEST_TAKEN = "an element of a sequence depends on the data: its largest size is taken"


class SequenceFound(NamedTuple):
    """The first output of an operator on sequences; its contents, if it is a small tensor and they are known."""

    type: ValueType
    value: Array | None = None
    is_largest: bool = False  # of several possible sizes


class _Case(NamedTuple):
    node: Node
    settings: Mapping[str, AttributeValue]
    types: Sequence[ValueType | None]
    values: Sequence[Array | None]
    inferred: ValueType | None  # output type from other inference

    def has(self, index: int) -> bool:
        return index < len(self.node.inputs) and bool(self.node.inputs[index])

    def member(self, index: int) -> Member:
        """An input as a sequence member. ``LookupError`` unless it is sized."""
        found = self.types[index]
        if found is None or not found.is_sized:
            raise LookupError(index)
        value = self.values[index]
        return Member(found, None if value is None else value.tobytes())

    def members(self) -> tuple[Member, ...]:
        """Members of the first input. ``LookupError`` unless they are known."""
        found = self.types[0]
        if found is None or found.members is None:
            raise LookupError(0)
        return found.members

    def position(self, index: int, length: int) -> int | None:
        """The position 0..length that an input gives; None if it is known only at run time."""
        value = self.values[index]
        if value is None or value.dtype.kind not in "iu" or not value.size:
            return None
        at = int(value.reshape(-1)[0])
        at += length if at < 0 else 0
        if not 0 <= at <= length:
            raise LookupError(at)
        return at

    def holding(self, members: Sequence[Member]) -> SequenceFound:
        """The output as a sequence of these members."""
        if self.inferred is None or len(members) > MAX_MEMBERS:
            raise LookupError(len(members))
        return SequenceFound(type=self.inferred._replace(members=tuple(members)))

    def number(self, name: str, default: int) -> int:
        value = self.settings.get(name, default)
        return value if isinstance(value, int) else default


def sequence_found(
    node: Node,
    settings: Mapping[str, AttributeValue],
    types: Sequence[ValueType | None],
    values: Sequence[Array | None],
    inferred: ValueType | None,
) -> SequenceFound | None:
    """The output of an operator on sequences or optionals; None for other operators, and where it is unknown."""
    rule = _RULES.get(node.op_type) if node.domain == "" else None
    if rule is None or not node.outputs:
        return None
    try:
        return rule(_Case(node=node, settings=settings, types=types, values=values, inferred=inferred))
    except (LookupError, ArithmeticError, ValueError, TypeError, ModelError):
        return None


def tensor_of(member: Member) -> Array | None:
    """The contents of a member, if they are known."""
    if member.contents is None:
        return None
    return np.frombuffer(member.contents, np.dtype(member.type.dtype)).reshape(member.type.sized_shape)


def of_any_length(known: ValueType | None) -> ValueType | None:
    """A sequence of unknown length, its members typed by what the known ones share."""
    if known is None or not known.members:
        return known if known is None else known._replace(members=None)
    first = known.members[0].type
    shapes = [member.type.shape or () for member in known.members]
    if first.members is not None or any(len(shape) != len(shapes[0]) for shape in shapes):
        return known._replace(members=None)
    common = tuple(sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*shapes, strict=True))
    proto = TypeProto()
    proto.sequence_type.elem_type.ParseFromString(tensor_type(first.dtype, common).proto)
    return ValueType("sequence", (), proto.SerializeToString())


def _construct(case: _Case) -> SequenceFound:
    return case.holding([case.member(i) for i in range(len(case.node.inputs))])


def _empty(case: _Case) -> SequenceFound:
    return case.holding(())


def _insert(case: _Case) -> SequenceFound:
    members, new = case.members(), case.member(1)
    at = case.position(2, len(members)) if case.has(2) else len(members)
    return case.holding(_alike((*members, new)) if at is None else (*members[:at], new, *members[at:]))


def _erase(case: _Case) -> SequenceFound:
    members = case.members()
    at = case.position(1, len(members)) if case.has(1) else len(members) - 1
    return case.holding(_alike(members)[1:] if at is None else (*members[:at], *members[at + 1 :]))


def _alike(members: Sequence[Member]) -> tuple[Member, ...]:
    """The members without contents. ``LookupError`` unless all have one type and shape."""
    types = {without_contents(member.type) for member in members}
    if len(types) != 1:
        raise LookupError(len(types))
    return tuple(Member(member.type) for member in members)


def _at(case: _Case) -> SequenceFound:
    members = case.members()
    at = case.position(1, len(members))
    if at is not None:
        return SequenceFound(type=members[at].type, value=tensor_of(members[at]))
    first = members[0].type
    largest = tuple(max(sizes) for sizes in zip(*(m.type.sized_shape for m in members), strict=True))
    is_largest = any(member.type.shape != largest for member in members)
    return SequenceFound(type=tensor_type(first.dtype, largest), is_largest=is_largest)


def _length(case: _Case) -> SequenceFound:
    return SequenceFound(type=tensor_type("int64", ()), value=np.array(len(case.members()), np.int64))


def _concatenated(case: _Case) -> SequenceFound:
    members = case.members()
    shapes, axis = [list(member.type.sized_shape) for member in members], case.number("axis", 0)
    is_new = bool(case.number("new_axis", 0))
    rank = len(shapes[0]) + is_new
    axis += rank if axis < 0 else 0
    if is_new:
        for shape in shapes:
            shape.insert(axis, 1)
    total = sum(shape[axis] for shape in shapes)
    rest = {(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}
    if len(rest) != 1:
        raise ValueError("the members do not fit each other")
    parts = [tensor_of(member) for member in members]
    known = [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True) if part is not None]
    value = np.concatenate(known, axis=axis) if len(known) == len(parts) else None
    return SequenceFound(
        type=tensor_type(members[0].type.dtype, (*shapes[0][:axis], total, *shapes[0][axis + 1 :])), value=value
    )


def _split(case: _Case) -> SequenceFound:
    whole, axis = case.member(0), case.number("axis", 0)
    shape, value = whole.type.sized_shape, case.values[0]
    axis += len(shape) if axis < 0 else 0
    sizes = _parts(case, shape[axis])
    if len(sizes) > MAX_MEMBERS:
        raise LookupError(len(sizes))
    drops_axis = not case.has(1) and not case.number("keepdims", 1)
    members, start = [], 0
    for size in sizes:
        part = (*shape[:axis], *(() if drops_axis else (size,)), *shape[axis + 1 :])
        cut = None if value is None else np.take(value, range(start, start + size), axis=axis).tobytes()
        members.append(Member(tensor_type(whole.type.dtype, part), cut))
        start += size
    return case.holding(members)


def _parts(case: _Case, length: int) -> Sequence[int]:
    if not case.has(1):
        return [1] * min(length, MAX_MEMBERS + 1)
    split = case.values[1]
    if split is None:
        raise LookupError(1)
    sizes = [int(size) for size in split.reshape(-1)]
    if split.ndim:
        if sum(sizes) != length or min(sizes) < 0:
            raise ValueError("the parts do not add up")
        return sizes
    if -(-length // sizes[0]) > MAX_MEMBERS:
        raise LookupError(length)
    return [min(sizes[0], length - start) for start in range(0, length, sizes[0])]


def _passed_on(case: _Case) -> SequenceFound:
    """Identity of a sequence."""
    return case.holding(case.members())


def _optional(case: _Case) -> SequenceFound:
    return case.holding([case.member(0)])


def _taken_out(case: _Case) -> SequenceFound:
    """OptionalGetElement; newer opsets also pass other values through."""
    found = case.types[0]
    if found is None or found.dtype != "optional":
        return SequenceFound(type=case.member(0).type, value=case.values[0])
    (member,) = case.members()
    return SequenceFound(type=member.type, value=tensor_of(member) if member.type.members is None else None)


_RULES: Mapping[str, Callable[[_Case], SequenceFound]] = {
    "ConcatFromSequence": _concatenated,
    "Identity": _passed_on,
    "Optional": _optional,
    "OptionalGetElement": _taken_out,
    "SequenceAt": _at,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": _length,
    "SplitToSequence": _split,
}
