"""The parts of the onnx package in use: messages, operator schemas, inference for one node, tensor contents.

Imported from the modules that define them: after ``light_import``, the package itself is never imported.
"""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from onnx.onnx_cpp2py_export.defs import OpSchema, SchemaError, get_schema
from onnx.onnx_ml_pb2 import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    SparseTensorProto,
    TensorProto,
    TensorShapeProto,
    TypeProto,
    Version,
)

__all__ = [
    "AttributeProto", "FunctionProto", "GraphProto", "ModelProto", "NodeProto", "OpSchema", "OperatorSetIdProto",
    "SparseTensorProto", "TensorProto", "TensorShapeProto", "TypeProto", "array_of", "inferred_types", "schema_of",
    "tensor_of_array",
]  # fmt: skip

Array = NDArray[np.generic]
"""Contents of a small tensor."""

_STORED = {
    "float32": ("float_data", "float32"), "float64": ("double_data", "float64"), "int64": ("int64_data", "int64"),
    "uint32": ("uint64_data", "uint64"), "uint64": ("uint64_data", "uint64"),
}  # fmt: skip
"""(field, type of its entries) of elements that are not stored as raw bytes; other types are in ``int32_data``."""

_STORED_BITS = {"float16": "uint16", "bool": "uint8"}
"""Types whose bit pattern ``int32_data`` holds, as an integer of this type."""


@lru_cache(maxsize=4096)
def schema_of(op_type: str, version: int, domain: str) -> OpSchema | None:
    """The schema of an operator in a version of its operator set; None if onnx has none."""
    try:
        return get_schema(op_type, version, domain)
    except SchemaError:
        return None


def inferred_types(
    schema: OpSchema,
    node: NodeProto,
    input_types: Mapping[str, bytes],
    input_data: Mapping[str, bytes],
    version: int,
) -> Mapping[str, bytes]:
    """Types of a node's outputs by name; messages go in and come out serialized. Raises what the C++ side raises.

    As ``onnx.shape_inference.infer_node_outputs``, without its second parsing and serialization of each message.
    """
    found: Mapping[str, bytes] = schema._infer_node_outputs(  # type: ignore[call-arg]
        node.SerializeToString(), dict(input_types), dict(input_data), {}, {node.domain: version}, Version.IR_VERSION
    )
    return found


def array_of(tensor: TensorProto, dtype: str) -> Array:
    """Contents of a tensor whose elements are of a numpy type. ``ValueError`` if they do not fit its shape."""
    if tensor.HasField("segment"):
        raise ValueError("the tensor is stored in segments")
    if tensor.HasField("raw_data"):
        return np.frombuffer(tensor.raw_data, np.dtype(dtype).newbyteorder("<")).reshape(tensor.dims)
    field, stored_dtype = _STORED.get(dtype, ("int32_data", "int32"))
    stored = np.array(getattr(tensor, field), stored_dtype)
    bits = _STORED_BITS.get(dtype)
    return (stored.astype(dtype) if bits is None else stored.astype(bits).view(dtype)).reshape(tensor.dims)


def tensor_of_array(array: Array, element: int) -> TensorProto:
    """A TensorProto with the contents of an array, whose elements have the number ``element``."""
    raw = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    return TensorProto(dims=array.shape, data_type=element, raw_data=raw)
