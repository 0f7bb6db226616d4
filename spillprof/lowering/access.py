"""Operators that read a part of an operand: rows of a table, a slice, a shape."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import prod

from spillprof.ir.graph import Graph, Operator, Tensor
from spillprof.lowering.draft import Task
from spillprof.lowering.families import KNOWN_DOMAINS

_ALL_WHOLE: Mapping[str, Fraction] = {}
_Reads = Mapping[int, int]
"""Elements that are read at most, by input position; inputs not named are read whole."""


def parts_read(task: Task, graph: Graph) -> Mapping[str, Fraction]:
    """Share of a tensor that a task reads, for those that it reads in part: more than one reading adds up.

    A tensor is never read more than once as a whole: rows that repeat are counted, up to the size of the table.
    """
    rule = _RULES.get(task.lead.op_type) if task.lead.domain in KNOWN_DOMAINS else None
    if rule is None:
        return _ALL_WHOLE
    shares: dict[str, Fraction] = {}
    try:
        elements = rule(task.lead, graph)
    except (LookupError, ArithmeticError, TypeError, ValueError):
        return {}  # operands that the rule does not foresee are read whole
    present = [i for i, name in enumerate(task.lead.inputs) if name]
    for position, name in enumerate(task.inputs):
        index = present[position] if position < len(present) else None  # behind the lead's: scales, captures
        share = Fraction(1)
        if index is not None and index in elements:
            held = _held(graph.tensors[task.lead.inputs[index]])
            share = Fraction(min(elements[index], held), held) if held else Fraction(0)
        shares[name] = min(shares.get(name, Fraction(0)) + share, Fraction(1))
    return {name: share for name, share in shares.items() if share < 1}


def _held(tensor: Tensor) -> int:
    """Elements of a tensor; of a sequence, its bytes."""
    return tensor.nbytes if tensor.elements else prod(tensor.shape)


def _one_member(op: Operator, graph: Graph) -> _Reads:
    """SequenceAt: one of the tensors that the sequence holds."""
    return {0: graph.tensors[op.outputs[0]].nbytes} if graph.tensors[op.inputs[0]].elements else {}


def _as_much_as_written(op: Operator, graph: Graph) -> _Reads:
    """Gather and its kin, Slice: one element of the first input for each of the output."""
    return {0: sum(prod(graph.tensors[name].shape) for name in op.outputs[:1] if name)}


def _nothing(op: Operator, graph: Graph) -> _Reads:
    """Shape, Size: the first input's contents do not matter."""
    return {0: 0}


def _stacked(op: Operator, graph: Graph) -> _Reads:
    """A slice more on a stack: what is there already is not read."""
    return {0: 0} if len(op.inputs) > 1 else {}


def _embeddings(op: Operator, graph: Graph) -> _Reads:
    """EmbedLayerNormalization: a row of each of the three tables for each token."""
    embedded = prod(graph.tensors[op.outputs[0]].shape)
    return {2: embedded, 3: embedded, 4: embedded}


def _quantised_rows(op: Operator, graph: Graph) -> _Reads:
    """GatherBlockQuantized: rows of the table, of its scales and of its zero points, in the same proportion."""
    tensors = graph.tensors
    written = prod(tensors[op.outputs[0]].shape)
    packed = op.attributes.get("bits", 4)
    per_byte = 8 // packed if isinstance(packed, int) and packed in (2, 4) and "int8" in _dtype(op, graph, 0) else 1
    table = prod(tensors[op.inputs[0]].shape) * per_byte
    share = min(Fraction(written, table), Fraction(1)) if table else Fraction(1)
    partial = [i for i in (0, 2, 3) if i < len(op.inputs) and op.inputs[i]]
    return {i: -(-prod(tensors[op.inputs[i]].shape) * share.numerator // share.denominator) for i in partial}


def _experts(op: Operator, graph: Graph) -> _Reads:
    """MoE, QMoE: the weights of those experts that rows may be sent to, biases and scales too."""
    tensors = graph.tensors
    rows, k = prod(tensors[op.inputs[0]].shape[:-1]), op.attributes.get("k", 1)
    experts = tensors[op.inputs[2]].shape[0]
    used = min(rows * k, experts) if isinstance(k, int) else experts
    held = {i: tensors[name].shape for i, name in enumerate(op.inputs) if i >= 2 and name}
    return {i: used * prod(shape[1:]) for i, shape in held.items() if shape and shape[0] == experts}


def _dtype(op: Operator, graph: Graph, index: int) -> str:
    return graph.tensors[op.inputs[index]].dtype


_RULES: Mapping[str, Callable[[Operator, Graph], _Reads]] = {
    **dict.fromkeys(
        (
            "Gather",
            "GatherElements",
            "GatherND",
            "Slice",
            "ArrayFeatureExtractor",
            "TorchEmbedding",
            "ScanSlice",
            "ScanView",
        ),
        _as_much_as_written,
    ),
    **dict.fromkeys(("Shape", "Size", "SequenceLength"), _nothing),
    "SequenceAt": _one_member,
    **dict.fromkeys(("EmbedLayerNormalization", "QEmbedLayerNormalization"), _embeddings),
    "ScanAppend": _stacked,
    "GatherBlockQuantized": _quantised_rows,
    **dict.fromkeys(("MoE", "QMoE"), _experts),
}
"""Operators that do not read all of what they are given."""

READ_IN_PART = frozenset(_RULES)
"""Types of operators that may leave a part of an operand where it is."""
