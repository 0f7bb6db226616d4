"""Element types and their storage widths."""

import math
from collections.abc import Sequence

from spillprof.ir.errors import UsageError
from spillprof.ir.nearest import nearest

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
"""Types without a fixed element width. They count 0 bytes; a front end that meets one records an assumption."""

NUMBER_DTYPES = tuple(name for name in DTYPE_BITS if name.startswith(("float", "bfloat", "int", "uint")))
"""Types that activations and weights can be deployed in."""

SHORT_NAMES = {
    "fp64": "float64", "fp32": "float32", "fp16": "float16", "half": "float16", "bf16": "bfloat16",
    "fp8": "float8e4m3fn", "fp4": "float4e2m1",
}  # fmt: skip
"""Common abbreviations."""

AS_IN_FILE = "file"
"""Option value that keeps the types of the model file."""


def dtype_names() -> Sequence[str]:
    """What options that take an element type complete."""
    return (AS_IN_FILE, *SHORT_NAMES, *NUMBER_DTYPES)


def tensor_bytes(shape: Sequence[int], dtype: str) -> int:
    """Bytes of a dense, packed tensor, rounded up to a whole byte. ``KeyError`` for an unknown type."""
    if dtype in UNSIZED_DTYPES:
        return 0
    return (math.prod(shape) * DTYPE_BITS[dtype] + 7) // 8


def is_float(dtype: str) -> bool:
    """Whether it is a floating-point type."""
    return dtype.startswith(("float", "bfloat"))


def parse_dtype(text: str) -> str | None:
    """The element type of a name or short name, None for ``file``. ``UsageError`` for an unknown type."""
    name = text.strip().lower()
    if name == AS_IN_FILE:
        return None
    name = SHORT_NAMES.get(name, name)
    if name not in NUMBER_DTYPES:
        near = nearest(name, (*NUMBER_DTYPES, *SHORT_NAMES))
        known = f"there are {', '.join(NUMBER_DTYPES)}; short: {', '.join(SHORT_NAMES)}; {AS_IN_FILE}: no change"
        raise UsageError(f"unknown element type '{text}'", hint=f"did you mean '{near[0]}'? {known}" if near else known)
    return name
