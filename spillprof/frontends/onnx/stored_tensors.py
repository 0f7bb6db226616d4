"""Tensors stored in a file: checks on the wire format, types, contents of small ones."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from spillprof.frontends.onnx.elements import DTYPE_OF_ELEMENT, MAX_RANK, ValueType, tensor_type
from spillprof.frontends.onnx.proto import Array, AttributeProto, SparseTensorProto, TensorProto, array_of
from spillprof.ir.dtypes import DTYPE_BITS
from spillprof.ir.errors import ModelError

KEPT_BYTES = 1024
"""Payloads up to this size are kept for every type: scales, paddings, small tables."""

KEPT_ELEMENTS = 4096
"""Integer payloads up to this many elements are kept: shapes and indices depend on them."""

MAX_COUNT = (1 << 63) - 1
"""Limit of elements, and of bytes, of a tensor."""

_INTEGERS = frozenset({"int64", "int32", "uint64", "uint32", "int16", "uint16", "int8", "uint8", "bool"})
_EXTERNAL = 1  # TensorProto.DataLocation


@dataclass(slots=True)
class TensorFacts:
    """Shape, type and payload positions of a TensorProto, collected from the wire format."""

    name: str = ""
    dims: list[int] = field(default_factory=list)
    element: int = 0
    external: bool = False
    places: list[tuple[int, int]] = field(default_factory=list)  # (start, end) of each payload field
    sizes: dict[str, int] = field(default_factory=dict)  # payload bytes by field name
    counts: dict[str, int] = field(default_factory=dict)  # payload fields by field name

    def scalar(self, name: str, value: int, start: int, end: int) -> None:
        """Records a number: a dimension, the type, or an unpacked payload element."""
        if name == "dims":
            self.dims.append(value - (1 << 64) if value >= 1 << 63 else value)
        elif name == "data_type":
            self.element = value
        elif name == "data_location":
            self.external = value == _EXTERNAL
        else:
            self.payload(name, start, end, end - start - 1)

    def payload(self, name: str, start: int, end: int, nbytes: int) -> None:
        """Records a payload range; adjacent ranges are merged."""
        if self.places and self.places[-1][1] == start:
            self.places[-1] = (self.places[-1][0], end)
        else:
            self.places.append((start, end))
        self.sizes[name] = self.sizes.get(name, 0) + nbytes
        self.counts[name] = self.counts.get(name, 0) + 1

    def payload_to_skip(self, field_name: str) -> list[tuple[int, int]]:
        """File ranges of payload that no shape depends on. ``ModelError`` if contents and shape disagree."""
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


_NUMPY_DTYPES = frozenset(
    "float64 float32 float16 int64 int32 int16 int8 uint64 uint32 uint16 uint8 bool".split()  # noqa: SIM905
)


class Constant(NamedTuple):
    """A stored value: its type, and its contents if they were kept."""

    type: ValueType
    value: Array | None = None
    is_sparse: bool = False


def constant_value(tensor: TensorProto) -> Constant:
    """Type and, if it was kept, contents of a stored tensor. External data is not read."""
    dtype = DTYPE_OF_ELEMENT.get(tensor.data_type)
    if dtype is None:
        raise ModelError(f"tensor '{tensor.name}' has the unknown element type {tensor.data_type}")
    shape = tuple(tensor.dims)
    if any(dim < 0 for dim in shape):
        raise ModelError(f"the stored tensor '{tensor.name}' has a negative dimension: {list(shape)[:16]}")
    return Constant(type=tensor_type(dtype, shape), value=_contents(tensor, dtype, shape))


def sparse_constant(sparse: SparseTensorProto) -> Constant:
    """A sparse tensor, sized as a dense one."""
    values = constant_value(sparse.values)
    shape = tuple(sparse.dims)
    if any(dim < 0 for dim in shape):
        raise ModelError(f"the sparse tensor '{sparse.values.name}' has a negative dimension: {list(shape)[:16]}")
    return Constant(type=tensor_type(values.type.dtype, shape), is_sparse=True)


def node_constant(name: str, attributes: Iterable[AttributeProto]) -> Constant:
    """The value of a Constant node."""
    for attribute in attributes:
        match attribute.name:
            case "value":
                return constant_value(attribute.t)
            case "sparse_value":
                return sparse_constant(attribute.sparse_tensor)
            case "value_int":
                return array_constant(np.array(attribute.i, np.int64))
            case "value_ints":
                return array_constant(np.array(attribute.ints, np.int64))
            case "value_float":
                return array_constant(np.array(attribute.f, np.float32))
            case "value_floats":
                return array_constant(np.array(attribute.floats, np.float32))
            case "value_string":
                return Constant(type=tensor_type("string", ()))
            case "value_strings":
                return Constant(type=tensor_type("string", (len(attribute.strings),)))
    raise ModelError("a Constant node holds no value", where=(name,))


def array_constant(value: Array) -> Constant:
    """A constant from a numpy array."""
    kept = value if value.size <= KEPT_ELEMENTS else None
    return Constant(type=tensor_type(str(value.dtype), value.shape), value=kept)


def _contents(tensor: TensorProto, dtype: str, shape: tuple[int, ...]) -> Array | None:
    if dtype not in _NUMPY_DTYPES or tensor.data_location == TensorProto.EXTERNAL:
        return None
    count = math.prod(shape)
    if count > KEPT_ELEMENTS:
        return None
    filled = tensor.raw_data or tensor.float_data or tensor.int32_data or tensor.int64_data
    if count and not (filled or tensor.double_data or tensor.uint64_data):
        return None
    try:
        value: Array = array_of(tensor, dtype)
    except Exception as error:  # numpy raises many types for malformed contents
        raise ModelError(f"the contents of tensor '{tensor.name}' cannot be read: {_one_line(error)}") from error
    return value


def _one_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
