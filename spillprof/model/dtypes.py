"""Element types and their storage widths."""

import math
from collections.abc import Sequence

DTYPE_BITS: dict[str, int] = {
    "float64": 64, "float32": 32, "float16": 16, "bfloat16": 16,
    "float8e4m3fn": 8, "float8e4m3fnuz": 8, "float8e5m2": 8, "float8e5m2fnuz": 8, "float8e8m0": 8,
    "float4e2m1": 4,
    "int64": 64, "int32": 32, "int16": 16, "int8": 8, "int4": 4, "int2": 2,
    "uint64": 64, "uint32": 32, "uint16": 16, "uint8": 8, "uint4": 4, "uint2": 2,
    "bool": 8, "complex64": 64, "complex128": 128,
}  # fmt: skip
"""Bits that one element takes in memory. Types below 8 bits are packed, the tensor's total rounded up to bytes."""

UNSIZED_DTYPES = frozenset({"string", "sequence", "map", "optional"})
"""Values without a fixed element width. They count 0 bytes; whoever reads them must record an assumption."""


def tensor_bytes(shape: Sequence[int], dtype: str) -> int:
    """Bytes that a dense tensor takes, packed, rounded up to a whole byte. ``KeyError`` for an unknown type."""
    if dtype in UNSIZED_DTYPES:
        return 0
    return (math.prod(shape) * DTYPE_BITS[dtype] + 7) // 8
