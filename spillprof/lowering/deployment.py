"""Conversion of a float model to the element types of its deployment."""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace

from spillprof.ir.dtypes import DTYPE_BITS, is_float
from spillprof.ir.graph import Graph, Operator, TensorKind
from spillprof.lowering.operators.facts import Randomness
from spillprof.lowering.operators.table import facts_of, is_known
from spillprof.lowering.options import LoweringOptions

_NARROW_BITS = 16
"""Below this width weights are quantised, and biases, norms and scales keep their type."""


def as_deployed(graph: Graph, options: LoweringOptions) -> Graph:
    """The graph with its float activations (inputs and outputs too) and weights in the types of the options.

    Integers, booleans and everything else stay as they are, and so, where the type of weights is narrower than 16
    bits, do weights of rank 0 or 1 (biases, norms) and scales of quantised operators. Tensors computed
    from weights alone are weights if constants are folded. A Cast between types that become equal is then a view.
    """
    if options.act_dtype is None and options.weight_dtype is None:
        return graph
    counts: Counter[str] = Counter()
    deployed = _retyped(graph, options, {}, counts)
    return replace(deployed, notes=(*graph.notes, *_notes(options, counts)))


def _retyped(graph: Graph, options: LoweringOptions, captured: Mapping[str, bool], counts: Counter[str]) -> Graph:
    """One graph and its bodies, converted. ``captured``: the outer tensors that it reads; whether each is a weight."""
    weights = _weights(graph, options, captured)
    scales = {name for op in graph.operators if facts_of(op).quantised for name in op.inputs}
    tensors = dict(graph.tensors)
    for name, tensor in graph.tensors.items():
        is_weight = name in weights
        wanted = options.weight_dtype if is_weight else options.act_dtype
        if wanted is not None and tensor.elements:
            held = tuple((wanted if is_float(dtype) else dtype, shape) for dtype, shape in tensor.elements)
            tensors[name] = replace(tensor, elements=held)
        if wanted is None or wanted == tensor.dtype or not is_float(tensor.dtype):
            continue
        if is_weight and DTYPE_BITS[wanted] < _NARROW_BITS and (len(tensor.shape) <= 1 or name in scales):
            counts["kept"] += name not in captured
            continue
        tensors[name] = replace(tensor, dtype=wanted)
        counts["weights" if is_weight else "activations"] += name not in captured
    operators = tuple(_with_bodies(op, weights, options, counts) if op.subgraphs else op for op in graph.operators)
    return replace(graph, tensors=tensors, operators=operators)


def _with_bodies(op: Operator, weights: Container[str], options: LoweringOptions, counts: Counter[str]) -> Operator:
    captured = {name: name in weights for name in op.captures}
    return replace(op, subgraphs=tuple(_retyped(body, options, captured, counts) for body in op.subgraphs))


def _weights(graph: Graph, options: LoweringOptions, captured: Mapping[str, bool]) -> set[str]:
    """Names of weights: stored ones, and results computed from weights alone if constants are folded."""
    found = {name for name, tensor in graph.tensors.items() if tensor.kind is TensorKind.WEIGHT}
    found.update(name for name, is_weight in captured.items() if is_weight)
    if not options.fold:
        return found
    readers: dict[str, list[int]] = defaultdict(list)
    missing: list[int] = []  # by operator: distinct operands that are not weights
    for i, op in enumerate(graph.operators):
        operands = {name for name in (*op.inputs, *op.captures) if name and name not in found}
        missing.append(0 if facts_of(op).reads_shape else len(operands))
        for name in operands if missing[i] else ():
            readers[name].append(i)
    ready = [i for i, count in enumerate(missing) if count == 0]
    while ready:
        op = graph.operators[ready.pop()]
        if not is_known(op) or _is_random(op):
            continue
        for name in op.outputs:
            if not name or name in found:
                continue
            found.add(name)
            for i in readers[name]:
                missing[i] -= 1
                if missing[i] == 0:
                    ready.append(i)
    return found


def _is_random(op: Operator) -> bool:
    inside = (inner for body in op.subgraphs for inner in body.operators)
    return facts_of(op).random is Randomness.ALWAYS or any(map(_is_random, inside))


def _notes(options: LoweringOptions, counts: Mapping[str, int]) -> Iterable[str]:
    if options.act_dtype is not None:
        n = counts["activations"]
        yield f"{_count(n, 'float tensor')} taken as {options.act_dtype} (activation type asked for)"
    if options.weight_dtype is not None:
        n, kept = counts["weights"], counts["kept"]
        rest = "1 bias, norm or scale keeps its" if kept == 1 else f"{kept:,} biases, norms and scales keep their"
        tail = f"; {rest} own type" if kept else ""
        yield f"{_count(n, 'float weight')} taken as {options.weight_dtype} (weight type asked for){tail}"


def _count(count: int, what: str) -> str:
    return f"1 {what} is" if count == 1 else f"{count:,} {what}s are"
