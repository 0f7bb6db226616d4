"""Damage to any file: bytes and protobuf fields changed, dropped, doubled and nested."""

import contextlib
from random import Random


def damaged_bytes(rng: Random, content: bytes) -> bytes:
    """Up to six places changed, dropped, doubled or cut."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 6)):
        at, length = rng.randrange(len(data) + 1), rng.choice((1, 2, 8, 64))
        match rng.randrange(6):
            case 0 if at < len(data):
                data[at] = rng.randrange(256)
            case 1 if at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            case 2:
                del data[at : at + length]
            case 3:
                data[at:at] = data[at : at + length] * rng.randint(1, 50)
            case 4:
                data[at:at] = rng.choice(
                    (b"\xff" * 9 + b"\x01", b"\x80" * 12, b"\x00" * 4, b"\x0a\xff\xff\xff\xff\x0f", b"9" * 30)
                )
            case 5:
                if rng.random() < 0.3:
                    del data[at:]
    return bytes(data)


def damaged_fields(rng: Random, data: bytes) -> bytes:
    """Fields of the top, or of the messages inside, dropped, doubled, swapped or nested."""
    fields = _fields(data)
    if not fields:
        return damaged_bytes(rng, data)
    at = rng.randrange(len(fields))
    key, body = fields[at]
    match rng.randrange(5):
        case 0:
            del fields[at]
        case 1:
            fields[at:at] = [fields[at]] * rng.choice((1, 2, 1000))
        case 2:
            rng.shuffle(fields)
        case 3 if key & 7 == 2 and body:
            fields[at] = (key, damaged_fields(rng, body) if rng.random() < 0.9 else damaged_bytes(rng, body))
        case 4 if key & 7 == 2:
            for _ in range(rng.choice((1, 40, 200))):
                body = _number(key) + _number(len(body)) + body
            fields[at] = (key, body)
    return b"".join(_number(k) + (_number(len(b)) if k & 7 == 2 else b"") + b for k, b in fields)


def _fields(data: bytes) -> list[tuple[int, bytes]]:
    """(key, content) of each field; what follows a malformed one is left out."""
    found, at = [], 0
    with contextlib.suppress(IndexError):
        while at < len(data):
            key, at = _read_number(data, at)
            if key & 7 == 2:
                length, at = _read_number(data, at)
                found.append((key, data[at : at + length]))
                at += length
            elif key & 7 == 0:
                value, at = _read_number(data, at)
                found.append((key, _number(value)))
            else:
                width = {1: 8, 5: 4}.get(key & 7, 0)
                if not width:
                    break
                found.append((key, data[at : at + width]))
                at += width
    return found


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def _number(value: int) -> bytes:
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
