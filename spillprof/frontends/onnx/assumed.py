"""Shapes that the user gives for tensors that inference cannot size: ``--assume TENSOR=SHAPE``."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from spillprof.frontends.onnx.elements import Shape, ValueType, tensor_type
from spillprof.frontends.onnx.inference import place
from spillprof.frontends.onnx.node import Body, Node
from spillprof.frontends.onnx.scope import Tally
from spillprof.ir.dtypes import UNSIZED_DTYPES
from spillprof.ir.errors import UsageError
from spillprof.ir.graph import written_shape
from spillprof.ir.nearest import nearest

_LISTED = 4
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """Shapes that the user assumes, and which of their tensors were visited."""

    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    met: set[str] = field(default_factory=set)


class KnownOutput(NamedTuple):
    """Types of an output by inference and by the file."""

    node: Node
    found: ValueType | None  # inferred
    limit: ValueType | None = None  # upper bound
    least: ValueType | None = None  # lower bound
    is_exact: bool = True  # dimensions in ``found`` are exact, not bounds
    claimed: ValueType | None = None  # by the file
    inputs: Sequence[ValueType | None] = ()


def check_assumed(assumed: Assumed, body: Body) -> None:
    """``UsageError`` unless an operator writes every named tensor."""
    if not assumed.shapes:
        return
    written = {name for inner in _bodies(body) for node in inner.nodes for name in _written(node)}
    for name, shape in assumed.shapes.items():
        if name in written:
            continue
        option = f"--assume {name}={written_shape(shape)}"
        if any(name == given for given, _ in body.inputs if given not in body.constants):
            hint = f"give it as --shape {name}={written_shape(shape)}"
            raise UsageError(f"'{name}' is an input of the model", where=(option,), hint=hint)
        if any(name in inner.constants for inner in _bodies(body)):
            raise UsageError(f"'{name}' is a weight: its shape is stored in the file", where=(option,), hint="drop it")
        if any(name == given for inner in _bodies(body) for given, _ in inner.inputs):
            hint = "give the shape of what that operator reads"
            raise UsageError(f"'{name}' is handed in by the operator around it", where=(option,), hint=hint)
        raise UsageError(f"the model has no tensor '{name}'", where=(option,), hint=_nearest(name, written))


def settle(name: str, assumed: Assumed, evidence: KnownOutput, tally: Tally) -> ValueType | None:
    """The type of an output whose shape the user gives; an inferred exact shape stays.

    ``UsageError`` if the shape contradicts inference, or if the element type is unknown.
    """
    assumed.met.add(name)
    shape, found = assumed.shapes[name], evidence.found
    if found is not None and found.dtype in UNSIZED_DTYPES - {"string"}:
        raise _contradiction(name, shape, evidence, f"it is a {found.dtype}, which has no shape")
    known: Shape | None = None if found is None else found.shape
    if known is not None and len(known) != len(shape):
        raise _contradiction(name, shape, evidence, f"it has {len(known)} dimensions")
    if known is not None and evidence.is_exact:
        if any(dim not in (None, size) for dim, size in zip(known, shape, strict=True)):
            raise _contradiction(name, shape, evidence, f"its shape is {_open_shape(known)}")
        if None not in known:
            tally.note("--assume is not needed: the shape follows from the model", _shown(name))
            return found
    limit = None if evidence.limit is None else evidence.limit.shape
    if limit is not None and any(m is not None and s > m for m, s in zip(limit, shape, strict=False)):
        raise _contradiction(name, shape, evidence, f"it is at most {_open_shape(limit)}")
    least = None if evidence.least is None else evidence.least.shape
    if least is not None and any(m is not None and s < m for m, s in zip(least, shape, strict=False)):
        raise _contradiction(name, shape, evidence, f"it is at least {_open_shape(least)}")
    tally.assume(
        f"the shape of '{name[:_LONGEST_NAME]}' is {written_shape(shape) or 'that of a scalar'}, as given by --assume"
    )
    return tensor_type(_dtype(name, evidence, tally), shape)


def note_unmet(assumed: Assumed, tally: Tally) -> None:
    """Notes assumed shapes of operators that never run."""
    for name in assumed.shapes:
        if name not in assumed.met:
            tally.note(
                "--assume is not needed: the tensor is in a branch that does not run", f"'{name[:_LONGEST_NAME]}'"
            )


def assume_advice(name: str, found: ValueType | None) -> str:
    """The option that gives a tensor its shape: known sizes, and 1 for the rest."""
    shape = found.shape if found is not None and found.shape is not None else None
    example = "1x3x224x224" if shape is None else written_shape(tuple(1 if dim is None else dim for dim in shape))
    return f"--assume {name}={example}"


def _dtype(name: str, evidence: KnownOutput, tally: Tally) -> str:
    for known in (evidence.found, evidence.claimed):
        if known is not None:
            return known.dtype
    first = next((t for t in evidence.inputs if t is not None and t.dtype not in UNSIZED_DTYPES), None)
    if first is None:
        where = (f"the output of {place(evidence.node)}",)
        hint = "store its type in the file, as value_info"
        raise UsageError(f"--assume gives '{name}' a shape, but nothing says its element type", where=where, hint=hint)
    tally.assume(f"the elements of {_shown(name)} have the type of its operator's first input, {first.dtype}")
    return first.dtype


def _contradiction(name: str, shape: tuple[int, ...], evidence: KnownOutput, why: str) -> UsageError:
    where = (f"{name}, the output of {place(evidence.node)}: {why}",)
    hint = "drop it, or give a shape that fits"
    return UsageError(f"--assume {name}={written_shape(shape)} contradicts the model", where=where, hint=hint)


def _shown(name: str) -> str:
    return f"'{name[:_LONGEST_NAME]}'"


def _open_shape(shape: Shape) -> str:
    return "[" + ", ".join("?" if dim is None else str(dim) for dim in shape[:16]) + "]"


def _bodies(body: Body) -> Iterator[Body]:
    waiting = [body]
    while waiting:
        inner = waiting.pop()
        yield inner
        waiting.extend(b for node in inner.nodes for b in node.bodies)


def _written(node: Node) -> Iterator[str]:
    """Names that an operator writes; a SequenceMap also writes its body's inputs."""
    yield from filter(None, node.outputs)
    if node.op_type == "SequenceMap":
        yield from (name for body in node.bodies for name, _ in body.inputs)


def _nearest(name: str, known: Iterable[str]) -> str:
    close = nearest(name, sorted(known), most=_LISTED, cutoff=0.4)
    return "there is " + ", ".join(f"'{near}'" for near in close) if close else "'inspect --json' lists all tensors"
