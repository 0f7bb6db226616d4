"""Output sizes of operators that onnx does not infer: vendor domains, classical machine learning, old opsets.

Each rule follows the operator's published definition. A rule that cannot decide raises ``LookupError`` or
``ValueError``, and the output counts as unknown.
"""

from spillprof.frontends.onnx.classical import CLASSICAL_SIZES
from spillprof.frontends.onnx.elements import ValueType, parse_type, tensor_type
from spillprof.frontends.onnx.microsoft import MICROSOFT_SIZES, NCHWC_SIZES
from spillprof.frontends.onnx.node import Node
from spillprof.frontends.onnx.rule import OperatorCase, SizeRule, Standard
from spillprof.frontends.onnx.standard import GAPS, LEGACY_SIZES
from spillprof.ir.errors import ModelError

CONTRIB_SIZES = {
    "": {**LEGACY_SIZES, **GAPS},
    "com.microsoft": MICROSOFT_SIZES,
    "com.microsoft.nchwc": NCHWC_SIZES,
    "ai.onnx.ml": CLASSICAL_SIZES,
}
"""Rules by domain, then by operator type."""


def contrib_rule(node: Node) -> SizeRule | None:
    """The rule for an operator, if there is one."""
    rules = CONTRIB_SIZES.get(node.domain)
    return None if rules is None else rules.get(node.op_type)


def apply_rule(rule: SizeRule, case: OperatorCase) -> tuple[ValueType | None, ...] | Standard | None:
    """The outputs' types by a rule; None where it cannot decide. Sequences and maps have no shape."""
    try:
        result = rule(case)
        if isinstance(result, Standard):
            return result
        found = [_value_type(dtype, shape) for dtype, shape in result]
    except (LookupError, ArithmeticError, ValueError, TypeError, ModelError):
        return None
    count = len(case.node.outputs)
    return tuple((found + [None] * count)[:count])


def _value_type(dtype: str, shape: tuple[int | None, ...]) -> ValueType | None:
    if dtype == "sequence":
        return parse_type(_SEQUENCE_OF_MAPS)
    if any(size is not None and size < 0 for size in shape):
        raise ValueError(shape)
    return tensor_type(dtype, shape)


_SEQUENCE_OF_MAPS = bytes.fromhex("22080a062a0408071200")  # seq(map(int64, untyped))
