"""What the wire format says about one tensor, before its contents are skipped: do they fit its shape?"""

import math
from dataclasses import dataclass, field

from spillprof.frontends.onnx.elements import DTYPE_OF_ELEMENT, MAX_RANK
from spillprof.ir.dtypes import DTYPE_BITS
from spillprof.ir.errors import ModelError

KEPT_BYTES = 1024
"""Payloads up to this size are kept whatever their type: scales, paddings, small tables."""

KEPT_ELEMENTS = 4096
"""Integer payloads up to this many elements are kept: shapes and indices are computed from them."""

MAX_COUNT = (1 << 63) - 1
"""Elements, and bytes, that one tensor may have."""

_INTEGERS = frozenset({"int64", "int32", "uint64", "uint32", "int16", "uint16", "int8", "uint8", "bool"})
_EXTERNAL = 1  # TensorProto.DataLocation


@dataclass(slots=True)
class TensorFacts:
    """Shape, type and payload places of a TensorProto, collected while the wire is walked."""

    name: str = ""
    dims: list[int] = field(default_factory=list)
    element: int = 0
    external: bool = False
    places: list[tuple[int, int]] = field(default_factory=list)  # (start, end) of each payload field
    sizes: dict[str, int] = field(default_factory=dict)  # payload bytes by field name
    counts: dict[str, int] = field(default_factory=dict)  # payload fields by field name

    def scalar(self, name: str, value: int, start: int, end: int) -> None:
        """Takes a number: a dimension, the type, or an unpacked payload element."""
        if name == "dims":
            self.dims.append(value - (1 << 64) if value >= 1 << 63 else value)
        elif name == "data_type":
            self.element = value
        elif name == "data_location":
            self.external = value == _EXTERNAL
        else:
            self.payload(name, start, end, end - start - 1)

    def payload(self, name: str, start: int, end: int, nbytes: int) -> None:
        """Takes a piece of the contents; adjacent pieces are joined."""
        if self.places and self.places[-1][1] == start:
            self.places[-1] = (self.places[-1][0], end)
        else:
            self.places.append((start, end))
        self.sizes[name] = self.sizes.get(name, 0) + nbytes
        self.counts[name] = self.counts.get(name, 0) + 1

    def payload_to_skip(self, field_name: str) -> list[tuple[int, int]]:
        """File ranges that hold nothing that shapes depend on. ``ModelError`` if contents and shape disagree."""
        where = (f"{self.name or 'a tensor'}, in '{field_name}', with dims {self.dims[:16]}",)
        dtype = DTYPE_OF_ELEMENT.get(self.element)
        if dtype is None:
            raise ModelError(f"a tensor has the unknown element type {self.element}", where=where)
        if any(dim < 0 for dim in self.dims):
            raise ModelError("a stored tensor has a negative dimension", where=where)
        if len(self.dims) > MAX_RANK:
            raise ModelError(f"a stored tensor has {len(self.dims):,} dimensions", where=where)
        count = math.prod(self.dims)
        if count * DTYPE_BITS.get(dtype, 8) > 8 * MAX_COUNT or count > MAX_COUNT:
            raise ModelError("a stored tensor has more elements than fit 63 bits", where=where)
        if not self.external:
            self._check_contents(count, dtype, where)
        stored = sum(self.sizes.values())
        if stored <= KEPT_BYTES or (dtype in _INTEGERS and count <= KEPT_ELEMENTS):
            return []
        return self.places

    def _check_contents(self, count: int, dtype: str, where: tuple[str, ...]) -> None:
        filled = [name for name, size in self.sizes.items() if size or self.counts[name]]
        if not filled and count == 0:
            return
        if len(filled) != 1 or (filled[0] == "string_data") != (dtype == "string"):
            what = "has no contents" if not filled else f"has unexpected contents ({', '.join(filled)})"
            raise ModelError(f"a stored {dtype} tensor of {count:,} elements {what}", where=where)
        name, size = filled[0], self.sizes[filled[0]]
        bits = DTYPE_BITS.get(dtype, 8)
        packed_bytes = (count * bits + 7) // 8
        parts = 2 * count if dtype.startswith("complex") else count
        fits = {
            "raw_data": size == packed_bytes,
            "string_data": self.counts[name] == count,
            "float_data": size == 4 * parts,
            "double_data": size == 8 * parts,
        }
        entries = packed_bytes if bits < 8 else count  # each a varint of one to ten bytes
        if not fits.get(name, entries <= size <= 10 * entries):
            what = f"a stored {dtype} tensor of {count:,} elements has {size:,} bytes of contents"
            raise ModelError(what, where=where, hint="shape and contents disagree: the file is damaged")
