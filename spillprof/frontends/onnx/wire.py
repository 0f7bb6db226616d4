"""Walks the protobuf wire format of a model file and strips weight payloads.

Protobuf cannot parse a model and leave gigabytes of weights on disk. So the bytes are first walked field by field:
lengths, wire types, nesting and text are checked, payload and prose are skipped, and protobuf parses the small rest.
The layout comes from protobuf's descriptors. The walk does not recurse.
"""

import mmap
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from typing import Any, NamedTuple

from spillprof.frontends.onnx.proto import ModelProto
from spillprof.frontends.onnx.stored_tensors import TensorFacts
from spillprof.ir.errors import ModelError

MAX_NESTING = 100
"""Limit of nested messages, the same as protobuf's."""

MAX_FIELDS = 3_000_000
"""Limit of fields in one file: a graph of 100,000 operators has less than a million."""

MAX_STRIPPED_BYTES = 1 << 27
"""Limit of a stripped model, which is held in memory several times. Large real graphs have a few megabytes."""

MAX_TEXT_BYTES = 1 << 24
"""Limit of one name."""

LARGE_ATTRIBUTE_BYTES = 1 << 16
"""Byte strings of attributes above this size are embedded files, and are dropped."""

_PROSE = {"doc_string", "metadata_props", "training_info", "quantization_annotation", "device_configurations"}
_PAYLOAD = {"raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data"}


def strip_payloads(data: bytes | mmap.mmap) -> bytes:
    """The serialized ModelProto without large payloads and prose. ``ModelError`` where the bytes are malformed."""
    frame = _Frame(layout=_layout(ModelProto.DESCRIPTOR), end=len(data), field_name="model")
    stack = [frame]
    position = n_fields = 0
    while True:
        if position >= frame.end:
            if len(stack) == 1:
                break
            stack.pop()
            _close(frame, stack[-1], data)
            frame = stack[-1]
            continue
        n_fields += 1
        if n_fields > MAX_FIELDS:
            raise _broken(f"more than {MAX_FIELDS:,} fields", position, stack)
        start = position
        key = data[position]
        position += 1
        if key >= 0x80:  # inlined here and below: nearly all numbers take one byte
            key, position = _varint(data, start, frame.end, stack)
        item = frame.layout.get(key)
        if item is not None and item.texts and len(stack) < MAX_NESTING:
            n_texts, end = _short_texts(data, position, frame.end, item.texts)
            if n_texts:
                n_fields += n_texts
                position = end
                continue
        if item is None:
            position = _skip_unknown(data, start, position, key, stack)
        elif item.action == _Action.FIXED:
            position += item.width
            if position > frame.end:
                raise _broken("the file is cut off", start, stack)
            if frame.tensor is not None:
                frame.tensor.payload(item.name, start, position, item.width)
        else:
            if position < frame.end and data[position] < 0x80:
                value = data[position]
                position += 1
            else:
                value, position = _varint(data, position, frame.end, stack)
            if item.action == _Action.VARINT:
                if frame.tensor is not None:
                    frame.tensor.scalar(item.name, value, start, position)
                continue
            if position + value > frame.end:
                raise _broken("the file is cut off", start, stack)
            position = _take(data, item, start, position, position + value, stack)
            frame = stack[-1]
    stripped = stack[0].content(data, 0)
    if len(stripped) > MAX_STRIPPED_BYTES:
        raise ModelError(f"the graph alone takes {len(stripped):,} bytes", hint="is this really one model?")
    return stripped


def _short_texts(data: bytes | mmap.mmap, position: int, limit: int, keys: frozenset[int]) -> tuple[int, int]:
    """(fields, end) of a message that holds nothing but valid texts of less than 128 bytes; (0, 0) for any other.

    Most operators are such messages: names alone. Keys and lengths below 128 are ASCII characters themselves, so that
    all of the message is valid text exactly where each of its texts is.
    """
    if position >= limit or data[position] >= 0x80:
        return 0, 0
    end = position + 1 + data[position]
    if end > limit:
        return 0, 0
    content = data[position + 1 : end]
    size, at, count = len(content), 0, 0
    while at < size:
        if content[at] not in keys or at + 1 == size or content[at + 1] >= 0x80:
            return 0, 0
        at += 2 + content[at + 1]
        count += 1
    if at != size:
        return 0, 0
    try:
        str(content, "utf-8")
    except UnicodeDecodeError:
        return 0, 0
    return count, end


def _take(data: bytes | mmap.mmap, item: "_Item", start: int, content: int, end: int, stack: list["_Frame"]) -> int:
    """Handles a length-delimited field; the next position: inside a message, else after the field."""
    frame = stack[-1]
    if item.once:
        if item.name in frame.seen:
            raise _broken(f"'{item.name}' occurs twice: two files joined into one?", start, stack)
        frame.seen.add(item.name)
    match item.action:
        case _Action.TEXT:
            if end - content > MAX_TEXT_BYTES:
                raise _broken(f"'{item.name}' is longer than {MAX_TEXT_BYTES:,} bytes", start, stack)
            try:
                text = str(data[content:end], "utf-8")
            except UnicodeDecodeError:
                raise _broken(f"'{item.name}' is not valid UTF-8 text", start, stack) from None
            if frame.tensor is not None and item.name == "name":
                frame.tensor.name = text
        case _Action.MESSAGE:
            if len(stack) >= MAX_NESTING:
                raise _broken(f"messages are nested more than {MAX_NESTING} deep", start, stack)
            assert item.message is not None
            tensor = TensorFacts() if item.message.full_name == "onnx.TensorProto" else None
            layout = _layout(item.message)
            stack.append(_Frame(layout=layout, end=end, field_name=item.name, start=start, tensor=tensor))
            return content
        case _Action.DROP:
            frame.edits.append((start, end, b""))
        case _Action.BLOB if end - content > LARGE_ATTRIBUTE_BYTES:
            frame.edits.append((start, end, b""))
        case _Action.PAYLOAD | _Action.PACKED if frame.tensor is not None:
            if item.name == "dims":
                frame.tensor.dims.extend(_packed_varints(data, content, end, stack))
            else:
                frame.tensor.payload(item.name, start, end, end - content)
    return end


class _Action(IntEnum):
    VARINT = 0
    FIXED = 1
    TEXT = 2
    MESSAGE = 3
    BLOB = 4  # a byte string: dropped if large
    PAYLOAD = 5  # tensor contents
    PACKED = 6  # several numbers in one field
    DROP = 7  # checked for length, then left out


class _Item(NamedTuple):
    name: str
    action: _Action
    width: int = 0  # bytes of a fixed-size number
    once: bool = False  # protobuf would silently merge a second occurrence
    message: Any = None  # descriptor of the nested message
    texts: frozenset[int] = frozenset()  # keys of its text fields, if it is repeated


@dataclass(slots=True, kw_only=True)
class _Frame:
    """An open message: its end, and the edits in it."""

    layout: dict[int, _Item]
    end: int
    field_name: str
    start: int = 0
    tensor: TensorFacts | None = None
    seen: set[str] = field(default_factory=set)
    edits: list[tuple[int, int, bytes]] = field(default_factory=list)  # (start, end, replacement)

    def content(self, data: bytes | mmap.mmap, begin: int) -> bytes:
        parts = []
        for start, end, replacement in sorted(self.edits):
            parts.append(data[begin:start])
            parts.append(replacement)
            begin = end
        parts.append(data[begin : self.end])
        return b"".join(parts)


def _close(frame: _Frame, parent: _Frame, data: bytes | mmap.mmap) -> None:
    """Checks a message at its end, and passes its edits to the enclosing message."""
    if frame.tensor is not None:
        frame.edits.extend((start, end, b"") for start, end in frame.tensor.payload_to_skip(frame.field_name))
    if not frame.edits:
        return
    key, body = _varint(data, frame.start, frame.end, [])
    _, body = _varint(data, body, frame.end, [])
    content = frame.content(data, body)
    parent.edits.append((frame.start, frame.end, encoded(key) + encoded(len(content)) + content))


@cache
def _layout(message: Any) -> dict[int, _Item]:
    """The action for each field of a message, by wire key."""
    layout: dict[int, _Item] = {}
    is_tensor = message.full_name == "onnx.TensorProto"
    for f in message.fields:
        repeated = f.is_repeated if hasattr(f, "is_repeated") else f.label == f.LABEL_REPEATED
        if f.type in (f.TYPE_MESSAGE, f.TYPE_STRING, f.TYPE_BYTES):
            if f.name in _PROSE:
                action = _Action.DROP
            elif f.type == f.TYPE_MESSAGE:
                action = _Action.MESSAGE
            elif is_tensor and f.name in _PAYLOAD:
                action = _Action.PAYLOAD
            else:
                action = _Action.TEXT if f.type == f.TYPE_STRING else _Action.BLOB
            once = not repeated and action in (_Action.MESSAGE, _Action.PAYLOAD)
            texts = _text_keys(f.message_type) if action == _Action.MESSAGE and not once else frozenset()
            layout[f.number << 3 | 2] = _Item(
                name=f.name, action=action, once=once, message=f.message_type, texts=texts
            )
            continue
        width = {f.TYPE_FLOAT: 4, f.TYPE_DOUBLE: 8}.get(f.type, 0)
        wire_type = {0: 0, 4: 5, 8: 1}[width]
        action = _Action.FIXED if width else _Action.VARINT
        layout[f.number << 3 | wire_type] = _Item(name=f.name, action=action, width=width)
        if repeated:
            layout[f.number << 3 | 2] = _Item(name=f.name, action=_Action.PACKED)
    return layout


def _text_keys(message: Any) -> frozenset[int]:
    if message.full_name == "onnx.TensorProto":  # its name is looked at
        return frozenset()
    texts = (f for f in message.fields if f.type == f.TYPE_STRING and f.name not in _PROSE and f.number < 16)
    return frozenset(f.number << 3 | 2 for f in texts)


def _skip_unknown(data: bytes | mmap.mmap, start: int, position: int, key: int, stack: list[_Frame]) -> int:
    """The position after a field that the layout does not know. Only nested messages may grow new fields."""
    frame, number, wire_type = stack[-1], key >> 3, key & 7
    if any(known >> 3 == number for known in frame.layout):
        raise _broken(f"field {number} has the wrong wire type {wire_type}", start, stack)
    if number == 0 or number >= 1 << 29 or wire_type not in (0, 1, 2, 5):
        raise _broken("this is not a protobuf field", start, stack)
    if len(stack) == 1:
        raise _broken(f"an ONNX model has no field {number}", start, stack)
    if wire_type == 0:
        return _varint(data, position, frame.end, stack)[1]
    if wire_type == 2:
        length, position = _varint(data, position, frame.end, stack)
    else:
        length = 8 if wire_type == 1 else 4
    if position + length > frame.end:
        raise _broken("the file is cut off", start, stack)
    return position + length


def _varint(data: bytes | mmap.mmap, position: int, end: int, stack: list[_Frame]) -> tuple[int, int]:
    """A base-128 number of at most ten bytes, and the position after it."""
    value = shift = 0
    start = position
    while position < end and shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position
        shift += 7
    raise _broken("the file is cut off" if position >= end else "a number is longer than ten bytes", start, stack)


def _packed_varints(data: bytes | mmap.mmap, position: int, end: int, stack: list[_Frame]) -> list[int]:
    values = []
    while position < end:
        value, position = _varint(data, position, end, stack)
        values.append(value - (1 << 64) if value >= 1 << 63 else value)
    return values


def encoded(value: int) -> bytes:
    """A number as a varint."""
    text = bytearray()
    while value >= 0x80:
        text.append(value & 0x7F | 0x80)
        value >>= 7
    text.append(value)
    return bytes(text)


def _broken(what: str, position: int, stack: list[_Frame]) -> ModelError:
    """The error for malformed bytes, with their place in the file and in the model."""
    path = ".".join(frame.field_name for frame in stack[:12])
    return ModelError(f"not a readable ONNX model: {what}", where=(f"byte {position:,}, in {path}",))
