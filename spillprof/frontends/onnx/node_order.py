"""A model file with its nodes in another order, and not one other byte changed."""

import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from spillprof.frontends.onnx.proto import ModelProto
from spillprof.frontends.onnx.raw_fields import GRAPH_OF_MODEL, NODE_OF_GRAPH, Span, fields, pieces
from spillprof.frontends.onnx.wire import strip_payloads
from spillprof.ir.errors import ModelError


def in_node_order(path: str, rank_of_tensor: Mapping[str, int]) -> Iterator[bytes]:
    """The file's bytes, in pieces, with the nodes of its graph sorted by the rank of what they write.

    A node that writes nothing with a rank comes right before the first that reads it; no node comes before one whose
    result it reads. The file keeps its length, and weights pass by piece by piece. ``ModelError`` if the file cannot
    be read as a model.
    """
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        spans = _node_spans(data)
        nodes = ModelProto.FromString(strip_payloads(data)).graph.node
        if len(nodes) != len(spans):
            raise ModelError("the graph's nodes cannot be told apart", where=(os.fspath(path),))
        order = _order(nodes, rank_of_tensor)
        position = 0
        for place, k in zip(spans, order, strict=True):
            yield from pieces(data, (position, place[0]))
            yield from pieces(data, spans[k])
            position = place[1]
        yield from pieces(data, (position, len(data)))


def _node_spans(data: mmap.mmap) -> list[Span]:
    """Where each node of the graph lies in the file, key and length included, in file order."""
    graph = next(
        ((content, end) for key, _, content, end in fields(data, (0, len(data))) if key == GRAPH_OF_MODEL), None
    )
    if graph is None:
        raise ModelError("the model holds no graph")
    return [(start, end) for key, start, _, end in fields(data, graph) if key == NODE_OF_GRAPH]


def _order(nodes: Sequence[Any], rank_of_tensor: Mapping[str, int]) -> list[int]:
    """Positions of the nodes: topological, by rank, then as in the file."""
    writer = {name: k for k, node in enumerate(nodes) for name in node.output if name}
    waits_for = [{writer[name] for name in _reads(node) if name in writer} - {k} for k, node in enumerate(nodes)]
    awaited_by: list[list[int]] = [[] for _ in nodes]
    for k, before in enumerate(waits_for):
        for j in before:
            awaited_by[j].append(k)
    last = max(rank_of_tensor.values(), default=0) + 1
    own = [
        min((rank_of_tensor[name] for name in node.output if name in rank_of_tensor), default=None) for node in nodes
    ]
    rank = [last if r is None else r for r in own]
    for k in reversed(_topological(waits_for, awaited_by, list(range(len(nodes))))):
        if own[k] is None:
            rank[k] = min((rank[j] for j in awaited_by[k]), default=last)
    return _topological(waits_for, awaited_by, rank)


def _topological(waits_for: Sequence[set[int]], awaited_by: Sequence[Sequence[int]], rank: Sequence[int]) -> list[int]:
    missing = [len(before) for before in waits_for]
    ready = [(rank[k], k) for k, count in enumerate(missing) if not count]
    heapify(ready)
    order: list[int] = []
    while ready:
        _, k = heappop(ready)
        order.append(k)
        for j in awaited_by[k]:
            missing[j] -= 1
            if not missing[j]:
                heappush(ready, (rank[j], j))
    return order


def _reads(node: Any) -> Iterator[str]:
    """Everything that a node reads: its inputs, and what its subgraphs take from around them (or might)."""
    pending = [node]
    while pending:
        each = pending.pop()
        yield from each.input
        for attribute in each.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from (output.name for output in graph.output)
                pending.extend(graph.node)
