"""Checks that a graph is well formed, and orders its nodes topologically."""

import heapq
from collections.abc import Sequence

from spillprof.frontends.onnx.inference import place
from spillprof.frontends.onnx.node import Body
from spillprof.ir.errors import ModelError


def check_model_body(body: Body) -> None:
    """``ModelError`` if the main graph is empty, or reads values that nothing produces."""
    if not body.nodes and not body.outputs:
        raise ModelError("the model is empty: no operators, no outputs", hint="was the export complete?")
    if body.free_names:
        missing = body.free_names[0]
        for node in body.nodes:
            if missing in node.inputs or missing in node.captures:
                what = f"an operator reads '{missing}', which nothing produces"
                raise ModelError(what, where=(place(node),), hint="the graph was cut wrongly")
        raise ModelError(f"the graph's output '{missing}' is produced by nothing", hint="the graph was cut wrongly")


def topological_order(body: Body) -> Sequence[int]:
    """Indices of the nodes in topological order, ties in file order.

    ``ModelError`` if two values have the same name or the graph has a cycle.
    """
    producer = _producers(body)
    if _is_topological(body, producer):
        return range(len(body.nodes))
    waiting = [0] * len(body.nodes)
    readers: list[list[int]] = [[] for _ in body.nodes]
    for index, node in enumerate(body.nodes):
        sources = {producer[name] for name in (*node.inputs, *node.captures) if name in producer}
        waiting[index] = len(sources)
        for source in sources:
            readers[source].append(index)
    ready = [index for index, count in enumerate(waiting) if count == 0]
    order: list[int] = []
    while ready:
        index = heapq.heappop(ready)
        order.append(index)
        for reader in readers[index]:
            waiting[reader] -= 1
            if waiting[reader] == 0:
                heapq.heappush(ready, reader)
    if len(order) < len(body.nodes):
        raise ModelError("operators depend on each other in a circle", where=_circle(body, producer, waiting))
    return order


def _producers(body: Body) -> dict[str, int]:
    """The index of the node that writes each value. ``ModelError`` if a value is written or declared twice."""
    inputs: set[str] = set()
    for name, _ in body.inputs:
        if name in inputs:
            raise ModelError(f"the graph's input '{name}' is declared twice")
        inputs.add(name)
    producer: dict[str, int] = {}
    for index, node in enumerate(body.nodes):
        for name in node.outputs:
            if not name:
                continue
            if name in producer:
                raise ModelError(f"the value '{name}' is written twice", where=_places(body, producer[name], index))
            if name in inputs or name in body.constants:
                kind = "a stored tensor" if name in body.constants else "an input of the graph"
                raise ModelError(f"an operator writes '{name}', which is {kind}", where=(place(node),))
            producer[name] = index
    return producer


def _is_topological(body: Body, producer: dict[str, int]) -> bool:
    return all(
        producer.get(name, -1) < index
        for index, node in enumerate(body.nodes)
        for names in (node.inputs, node.captures)
        for name in names
    )


def _circle(body: Body, producer: dict[str, int], waiting: list[int]) -> tuple[str, ...]:
    """The nodes of one cycle, found by walking backwards from a node that never became ready."""
    index = next(index for index, count in enumerate(waiting) if count)
    path: dict[int, None] = {}
    while index not in path:
        path[index] = None
        node = body.nodes[index]
        sources = (producer[name] for name in (*node.inputs, *node.captures) if name in producer)
        index = next(source for source in sources if waiting[source])
    members = list(path)
    circle = members[members.index(index) :]
    return tuple(place(body.nodes[i]) for i in circle[:8])


def _places(body: Body, *indices: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys(place(body.nodes[i]) for i in indices))
