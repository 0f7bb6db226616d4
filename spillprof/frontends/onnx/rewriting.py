"""Rewrites model files, nodes reordered or notes added as metadata, and keeps all other bytes."""

import hashlib
import mmap
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any

from spillprof.frontends.onnx.body import node_names
from spillprof.frontends.onnx.proto import GraphProto, ModelProto, TensorProto
from spillprof.frontends.onnx.wire import encoded, strip_payloads
from spillprof.ir.errors import ModelError

GRAPH_OF_MODEL = 7 << 3 | 2  # wire keys: field number, length-delimited
METADATA_OF_MODEL = 14 << 3 | 2
NODE_OF_GRAPH = 1 << 3 | 2
METADATA_OF_NODE = 9 << 3 | 2

_CHUNK_BYTES = 1 << 24

Span = tuple[int, int]
"""Bytes ``[start, end)`` of the file."""


def fields(data: mmap.mmap, span: Span) -> Iterator[tuple[int, int, int, int]]:
    """``(key, start, start of the content, end)`` of each field of a message; it must be well formed."""
    position = span[0]
    while position < span[1]:
        start = position
        key, position = _number(data, position)
        content = position
        match key & 7:
            case 0:
                _, position = _number(data, position)
            case 1:
                position += 8
            case 2:
                length, content = _number(data, position)
                position = content + length
            case _:
                position += 4
        yield key, start, content, position


def pieces(data: mmap.mmap, span: Span) -> Iterator[bytes]:
    """The bytes of a span, in chunks."""
    for start in range(span[0], span[1], _CHUNK_BYTES):
        yield data[start : min(start + _CHUNK_BYTES, span[1])]


def _number(data: mmap.mmap, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def in_node_order(path: str, rank_of_tensor: Mapping[str, int]) -> Iterator[bytes]:
    """The file's bytes, in chunks, with the nodes of its graph sorted by the rank of the tensors that they write.

    The order is topological. A node without a ranked output comes right before its first reader. The length of the
    file does not change, and weights are copied in chunks. ``ModelError`` if the file is no readable model.
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
    """The span of each node in the file, with key and length, in file order."""
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
    """Names that a node reads or may read: its inputs, and all names that its subgraphs read."""
    pending = [node]
    while pending:
        each = pending.pop()
        yield from each.input
        for attribute in each.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from (output.name for output in graph.output)
                pending.extend(graph.node)


PREFIX = "spillprof."
"""Prefix of every note's key. Notes of earlier runs are removed."""

_MAX_BYTES = 2**31 - 1  # of a protobuf message

Notes = Sequence[tuple[str, str]]
"""(key without the prefix, text)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotated:
    """Edits of a model file."""

    path: str
    edits: tuple[tuple[int, int, bytes], ...]  # (start, end, replacement), in order
    found: int  # nodes with notes that the graph has
    has_external_weights: bool

    def contents(self) -> Iterator[bytes]:
        """The new file's bytes, in chunks."""
        with open(self.path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            position = 0
            for start, end, replacement in self.edits:
                yield from pieces(data, (position, start))
                yield replacement
                position = end
            yield from pieces(data, (position, len(data)))


def annotate(path: str, *, sha256: str, of_model: Notes, of_nodes: Mapping[str, Notes]) -> Annotated:
    """Notes as ``metadata_props`` of the model and of the nodes of its graph, by the names that ``read_model`` gives.

    Nodes inside functions and control flow do not change. ``ModelError`` if the file is not the one with
    that digest, or would become too large.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe could wait for ever
            raise ModelError("the model is not a regular file", where=(path,))
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            if digest != sha256:
                raise ModelError(
                    "the model file is not the one that was analysed",
                    where=(path, f"its SHA-256 is {digest}, not {sha256}"),
                    hint="analyze it again",
                )
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                graph = _graph(data, path)
                edits = _edits(data, node_names(graph), of_model, of_nodes)
                size = len(data) + sum(len(new) - (end - start) for start, end, new in edits)
    except (OSError, ValueError) as error:  # ValueError: a path with a null character, or an empty file
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ModelError(
            f"the model file cannot be read: {reason.lower()}",
            where=(path,),
            hint="its notes go into a copy of it, so it has to be where it was analysed",
        ) from None
    if size > _MAX_BYTES:
        raise ModelError("with notes the model file would pass 2 GiB, where ONNX ends", where=(path,))
    return Annotated(
        path=path,
        edits=tuple(edits),
        found=len(of_nodes.keys() & set(node_names(graph))),
        has_external_weights=any(t.data_location == TensorProto.EXTERNAL for t in graph.initializer),
    )


def _graph(data: mmap.mmap, path: str) -> GraphProto:
    """The graph, without weights."""
    stripped = strip_payloads(data)
    try:
        graph: GraphProto = ModelProto.FromString(stripped).graph
    except Exception as error:  # protobuf raises its own type, and others for odd text
        raise ModelError(f"not a readable ONNX model: {error}", where=(path,)) from error
    return graph


_Edit = tuple[int, int, bytes]


def _edits(data: mmap.mmap, names: Sequence[str], of_model: Notes, of_nodes: Mapping[str, Notes]) -> list[_Edit]:
    edits: list[_Edit] = []
    for key, start, content, end in fields(data, (0, len(data))):
        if key == METADATA_OF_MODEL and _is_ours(data, (content, end)):
            edits.append((start, end, b""))
        elif key == GRAPH_OF_MODEL:
            inner = _graph_edits(data, (content, end), names, of_nodes)
            edits += _around(key, start, content, end, inner)
    return [*edits, (len(data), len(data), _properties(METADATA_OF_MODEL, of_model))]


def _graph_edits(data: mmap.mmap, graph: Span, names: Sequence[str], of_nodes: Mapping[str, Notes]) -> list[_Edit]:
    edits: list[_Edit] = []
    position = 0
    for key, start, content, end in fields(data, graph):
        if key == NODE_OF_GRAPH:
            added = _properties(METADATA_OF_NODE, of_nodes.get(names[position], ()))
            inner = [
                (a, c, b"")
                for k, a, b, c in fields(data, (content, end))
                if k == METADATA_OF_NODE and _is_ours(data, (b, c))
            ]
            edits += _around(key, start, content, end, [*inner, (end, end, added)] if added else inner)
            position += 1
    return edits


def _around(key: int, start: int, content: int, end: int, inner: list[_Edit]) -> list[_Edit]:
    """Edits inside a message, and of its length prefix."""
    if not inner:
        return []
    length = end - content + sum(len(new) - (b - a) for a, b, new in inner)
    return [(start, content, encoded(key) + encoded(length)), *inner]


def _properties(key: int, notes: Notes) -> bytes:
    return b"".join(_field(key, _text(1, PREFIX + name) + _text(2, text)) for name, text in notes)


def _text(number: int, text: str) -> bytes:
    return _field(number << 3 | 2, text.encode("utf-8", errors="backslashreplace"))


def _field(key: int, content: bytes) -> bytes:
    return encoded(key) + encoded(len(content)) + content


def _is_ours(data: mmap.mmap, entry: Span) -> bool:
    return any(
        number == (1 << 3 | 2) and data[content : min(end, content + len(PREFIX))] == PREFIX.encode()
        for number, _, content, end in fields(data, entry)
    )
