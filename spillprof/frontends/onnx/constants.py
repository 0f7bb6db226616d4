"""Values stored in a file: initializers, Constant nodes, sparse tensors. Their types, and small contents."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from spillprof.frontends.onnx.elements import DTYPE_OF_ELEMENT, ValueType, tensor_type
from spillprof.frontends.onnx.payload import KEPT_ELEMENTS
from spillprof.frontends.onnx.proto import Array, AttributeProto, SparseTensorProto, TensorProto, array_of
from spillprof.ir.errors import ModelError

_NUMPY_DTYPES = frozenset(
    "float64 float32 float16 int64 int32 int16 int8 uint64 uint32 uint16 uint8 bool".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A value stored in the file: its type, and its contents where they are small enough to matter."""

    type: ValueType
    value: Array | None = None
    is_sparse: bool = False


def constant_value(tensor: TensorProto) -> Constant:
    """Type and, if it was kept, contents of a stored tensor. External data is never looked at."""
    dtype = DTYPE_OF_ELEMENT.get(tensor.data_type)
    if dtype is None:
        raise ModelError(f"tensor '{tensor.name}' has the unknown element type {tensor.data_type}")
    shape = tuple(tensor.dims)
    if any(dim < 0 for dim in shape):
        raise ModelError(f"the stored tensor '{tensor.name}' has a negative dimension: {list(shape)[:16]}")
    return Constant(type=tensor_type(dtype, shape), value=_contents(tensor, dtype, shape))


def sparse_constant(sparse: SparseTensorProto) -> Constant:
    """A sparse tensor, sized as the dense tensor that operators see."""
    values = constant_value(sparse.values)
    shape = tuple(sparse.dims)
    if any(dim < 0 for dim in shape):
        raise ModelError(f"the sparse tensor '{sparse.values.name}' has a negative dimension: {list(shape)[:16]}")
    return Constant(type=tensor_type(values.type.dtype, shape), is_sparse=True)


def node_constant(name: str, attributes: Iterable[AttributeProto]) -> Constant:
    """The value of a Constant node, whichever of its attributes holds it."""
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
    except Exception as error:  # a message of the library's own for each way of being malformed
        raise ModelError(f"the contents of tensor '{tensor.name}' cannot be read: {_one_line(error)}") from error
    return value


def _one_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
