"""Model-local functions: do they expand to a graph of sane size?"""

from collections.abc import Iterable, Iterator, Mapping

from spillprof.frontends.onnx.proto import FunctionProto, GraphProto, NodeProto
from spillprof.ir.errors import ModelError

MAX_NODES = 1_000_000
"""Nodes after inlining. Functions can multiply: thirty nested pairs would make a billion."""

MAX_CALL_DEPTH = 256
"""Functions that call functions."""

FunctionKey = tuple[str, str, str]
"""Domain, name, overload."""


def function_key(domain: str, name: str, proto: NodeProto | FunctionProto) -> FunctionKey:
    """What a call and a function must have in common."""
    return ("" if domain == "ai.onnx" else domain, name, getattr(proto, "overload", ""))


def check_expansion(graph: GraphProto, functions: Mapping[FunctionKey, FunctionProto]) -> None:
    """``ModelError`` if functions call themselves, call too deep, or expand to too many operators."""
    if not functions:
        _limit(len(graph.node))
        return
    sizes: dict[FunctionKey, int] = {}
    total = 0
    for key in _called(graph.node):
        if key in functions and key not in sizes:
            _measure(key, functions, sizes)
        total += sizes.get(key, 1)
        _limit(total)


def _measure(start: FunctionKey, functions: Mapping[FunctionKey, FunctionProto], sizes: dict[FunctionKey, int]) -> None:
    """Fills in the expanded size of a function and of all that it calls, innermost first."""
    called = {start: _called(functions[start].node)}
    counted = {start: 1}
    while called:
        key = next(reversed(called))
        inner = next(called[key], None)
        if inner is None:
            del called[key]
            sizes[key] = counted.pop(key)
            if called:
                counted[next(reversed(called))] += sizes[key]
        elif inner in called:
            raise ModelError(f"the function '{inner[1]}' calls itself", where=tuple(k[1] for k in called)[:8])
        elif inner in functions and inner not in sizes:
            if len(called) >= MAX_CALL_DEPTH:
                raise ModelError(f"functions call each other more than {MAX_CALL_DEPTH} deep")
            called[inner] = _called(functions[inner].node)
            counted[inner] = 1
        else:
            counted[key] += sizes.get(inner, 1)
            _limit(counted[key])


def _limit(count: int) -> None:
    if count > MAX_NODES:
        raise ModelError(f"the model's functions expand to more than {MAX_NODES:,} operators")


def _called(nodes: Iterable[NodeProto]) -> Iterator[FunctionKey]:
    """The keys of all nodes, those in bodies included."""
    stack = [iter(nodes)]
    while stack:
        node = next(stack[-1], None)
        if node is None:
            stack.pop()
            continue
        yield function_key(node.domain, node.op_type, node)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                stack.append(iter(attribute.g.node))
            stack.extend(iter(inner.node) for inner in attribute.graphs)
