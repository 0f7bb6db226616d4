"""ONNX element types, types of values, and their sizes."""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple, cast

from spillprof.frontends.onnx.proto import TensorProto, TypeProto
from spillprof.ir.dtypes import DTYPE_BITS, tensor_bytes
from spillprof.ir.errors import ModelError

DTYPE_OF_ELEMENT: dict[int, str] = {
    number: dtype
    for name, number in TensorProto.DataType.items()
    if (dtype := {"FLOAT": "float32", "DOUBLE": "float64"}.get(name, name.lower())) in DTYPE_BITS or dtype == "string"
}
"""Data type name of each ONNX element type of known width, and ``string``."""

ELEMENT_OF_DTYPE = {dtype: number for number, dtype in DTYPE_OF_ELEMENT.items()}

MAX_BYTES = (1 << 63) - 1

MAX_RANK = 1024
"""Limit of dimensions of a tensor, above that of any runtime; it bounds the time for products of dimensions."""

Shape = tuple[int | None, ...]
"""Dimensions; None where one is unknown."""


class ValueType(NamedTuple):
    """The type and partial shape of a value, also as a serialized TypeProto."""

    dtype: str  # as in ``ir.dtypes``; "sequence", "map" or "optional" for values that are no tensors
    shape: Shape | None  # None: not even the rank is known
    proto: bytes
    members: "tuple[Member, ...] | None" = None  # of a sequence or optional; None: unknown

    @property
    def is_sized(self) -> bool:
        """Whether every dimension is known."""
        return self.shape is not None and None not in self.shape

    @property
    def sized_shape(self) -> tuple[int, ...]:
        """The dimensions of a sized value."""
        assert self.shape is not None
        assert None not in self.shape
        return cast("tuple[int, ...]", self.shape)


class Member(NamedTuple):
    """One element of a sequence: its type, and its small known contents as bytes in C order."""

    type: ValueType
    contents: bytes | None = None


@lru_cache(maxsize=1 << 16)
def tensor_type(dtype: str, shape: Shape | None) -> ValueType:
    """The type of a tensor. ``ModelError`` if its rank or size is beyond the limits."""
    proto = TypeProto()
    proto.tensor_type.elem_type = ELEMENT_OF_DTYPE[dtype]
    if shape is not None:
        if len(shape) > MAX_RANK:
            raise ModelError(f"a tensor has {len(shape):,} dimensions, more than {MAX_RANK:,}")
        proto.tensor_type.shape.SetInParent()
        for dim in shape:
            entry = proto.tensor_type.shape.dim.add()
            if dim is not None:
                entry.dim_value = dim
        if None not in shape:
            check_size(dtype, tuple(dim for dim in shape if dim is not None))
    return ValueType(dtype, shape, proto.SerializeToString())


def check_size(dtype: str, shape: tuple[int, ...]) -> None:
    """``ModelError`` if elements or bytes do not fit 63 bits."""
    count = math.prod(shape)
    if count > MAX_BYTES or count * DTYPE_BITS.get(dtype, 0) > 8 * MAX_BYTES:
        raise ModelError(f"a tensor of shape {list(shape)[:16]} has more elements than any memory holds")


@lru_cache(maxsize=1 << 16)
def parse_type(serialized: bytes) -> ValueType | None:
    """The type that a serialized TypeProto states; None if it states nothing. Negative dimensions are kept."""
    proto = TypeProto.FromString(serialized)
    kind = proto.WhichOneof("value")
    if kind is None:
        return None
    if kind in ("sequence_type", "map_type"):
        return ValueType(kind.removesuffix("_type"), (), serialized)
    if kind == "optional_type":
        inner = parse_type(proto.optional_type.elem_type.SerializeToString())
        is_tensor = inner is not None and inner.is_sized and inner.dtype in DTYPE_OF_ELEMENT.values()
        return ValueType("optional", (), serialized, (Member(inner),) if inner is not None and is_tensor else None)
    if kind != "tensor_type":
        what = f"values of kind '{kind.removesuffix('_type')}' are not supported"
        raise ModelError(what, hint="export the model with a dense tensor in its place")
    tensor = proto.tensor_type
    if tensor.elem_type == 0:
        return None
    dtype = DTYPE_OF_ELEMENT.get(tensor.elem_type)
    if dtype is None:
        raise ModelError(f"a tensor has the unknown element type {tensor.elem_type}")
    if not tensor.HasField("shape"):
        return tensor_type(dtype, None)
    shape = tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim)
    return tensor_type(dtype, shape)


def held_bytes(known: ValueType) -> int:
    """Bytes of a sized value; of a sequence, the sum of its members. 0 where those are unknown."""
    return sum(tensor_bytes(leaf.sized_shape, leaf.dtype) for leaf in leaves(known))


def leaves(known: ValueType) -> list[ValueType]:
    """The tensors in a value, also in nested sequences."""
    if known.members is None:
        return [known]
    return [leaf for member in known.members for leaf in leaves(member.type)]


def same_size(a: ValueType | None, b: ValueType | None) -> bool:
    """Whether two values have the same type and shape, member by member; contents may differ."""
    if a is None or b is None:
        return a is b
    if (a.dtype, a.shape) != (b.dtype, b.shape) or (a.members is None) != (b.members is None):
        return False
    return len(a.members or ()) == len(b.members or ()) and all(
        same_size(x.type, y.type) for x, y in zip(a.members or (), b.members or (), strict=True)
    )


def without_contents(known: ValueType | None) -> ValueType | None:
    """The same type, without contents of members."""
    if known is None or known.members is None:
        return known
    return known._replace(members=tuple(Member(member.type) for member in known.members))


def stated_type(proto: TypeProto, symbols: Mapping[str, int]) -> ValueType | None:
    """The type that a file states, bound symbols replaced. Dimensions below zero count as unknown."""
    stated = parse_type(proto.SerializeToString())
    if stated is None or stated.shape is None or not proto.HasField("tensor_type"):
        return stated
    dims = zip(stated.shape, proto.tensor_type.shape.dim, strict=True)
    shape = tuple(symbols.get(d.dim_param) if size is None or size < 0 else size for size, d in dims)
    return stated if shape == stated.shape else tensor_type(stated.dtype, shape)
