"""Fields of a protobuf message in a file that was checked before: where they lie, and how new ones are written."""

import mmap
from collections.abc import Iterator

GRAPH_OF_MODEL = 7 << 3 | 2  # wire keys: field number, length-delimited
METADATA_OF_MODEL = 14 << 3 | 2
NODE_OF_GRAPH = 1 << 3 | 2
METADATA_OF_NODE = 9 << 3 | 2

_CHUNK_BYTES = 1 << 24

Span = tuple[int, int]
"""Bytes ``[start, end)`` of the file."""


def fields(data: mmap.mmap, span: Span) -> Iterator[tuple[int, int, int, int]]:
    """``(key, start, start of the content, end)`` of each field of a message that was checked before."""
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
    """The bytes of a span, a part at a time."""
    for start in range(span[0], span[1], _CHUNK_BYTES):
        yield data[start : min(start + _CHUNK_BYTES, span[1])]


def encoded(value: int) -> bytes:
    """A number as it stands in a key or a length."""
    text = bytearray()
    while value >= 0x80:
        text.append(value & 0x7F | 0x80)
        value >>= 7
    text.append(value)
    return bytes(text)


def _number(data: mmap.mmap, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
