"""A model file with notes in its metadata, and not one other byte changed: weights are neither read nor moved."""

import hashlib
import mmap
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from spillprof.frontends.onnx.body import node_names
from spillprof.frontends.onnx.proto import GraphProto, ModelProto, TensorProto
from spillprof.frontends.onnx.raw_fields import (
    GRAPH_OF_MODEL,
    METADATA_OF_MODEL,
    METADATA_OF_NODE,
    NODE_OF_GRAPH,
    Span,
    encoded,
    fields,
    pieces,
)
from spillprof.frontends.onnx.wire import strip_payloads
from spillprof.ir.errors import ModelError

PREFIX = "spillprof."
"""Begins the key of every note. Older ones are taken out."""

_MAX_BYTES = 2**31 - 1  # of a protobuf message

Notes = Sequence[tuple[str, str]]
"""(key without the prefix, text)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotated:
    """What to write instead of parts of a model file."""

    path: str
    edits: tuple[tuple[int, int, bytes], ...]  # (start, end, replacement), in order
    found: int  # notes' nodes that the graph has
    has_external_weights: bool

    def contents(self) -> Iterator[bytes]:
        """The new file's bytes, in pieces."""
        with open(self.path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            position = 0
            for start, end, replacement in self.edits:
                yield from pieces(data, (position, start))
                yield replacement
                position = end
            yield from pieces(data, (position, len(data)))


def annotate(path: str, *, sha256: str, of_model: Notes, of_nodes: Mapping[str, Notes]) -> Annotated:
    """Notes as ``metadata_props`` of the model and of the nodes of its graph, by the names that ``read_onnx`` gives.

    Nodes inside of functions and control flow are left as they are. ``ModelError`` if the file is not the one with
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
    """Edits inside of a message, and of the length in front of it."""
    if not inner:
        return []
    length = end - content + sum(len(new) - (b - a) for a, b, new in inner)
    return [(start, content, encoded(key) + encoded(length)), *inner]


def _properties(key: int, notes: Notes) -> bytes:
    return b"".join(_property(key, PREFIX + name, text) for name, text in notes)


def _property(key: int, name: str, text: str) -> bytes:
    entry = b""
    for number, value in ((1, name), (2, text)):
        coded = value.encode("utf-8", errors="backslashreplace")
        entry += encoded(number << 3 | 2) + encoded(len(coded)) + coded
    return encoded(key) + encoded(len(entry)) + entry


def _is_ours(data: mmap.mmap, entry: Span) -> bool:
    return any(
        number == (1 << 3 | 2) and data[content : min(end, content + len(PREFIX))] == PREFIX.encode()
        for number, _, content, end in fields(data, entry)
    )
