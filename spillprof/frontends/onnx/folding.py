"""Constant folding of small operators: the shape arithmetic that exporters write into the graph."""

from collections.abc import Mapping

import numpy as np

from spillprof.frontends.onnx.folding_arithmetic import ARITHMETIC
from spillprof.frontends.onnx.folding_call import Call, FoldRule, Ins, TooLarge
from spillprof.frontends.onnx.folding_movement import MOVEMENT
from spillprof.frontends.onnx.proto import Array
from spillprof.frontends.onnx.stored_tensors import KEPT_ELEMENTS
from spillprof.ir.errors import ModelError

_RULES: Mapping[str, FoldRule] = {**ARITHMETIC, **MOVEMENT}


def fold(call: Call, inputs: Ins) -> tuple[Array, ...] | None:
    """The outputs' contents; None if the operator is not evaluated, its inputs do not fit, or the result is large.

    ``Impossible`` if there is no result: division of integers by zero, a number that its type does not hold.
    """
    rule = _RULES.get(call.op_type)
    if rule is None:
        return None
    try:
        with np.errstate(all="ignore"):
            outputs = rule(call, inputs)
    except (TooLarge, ModelError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, RuntimeError):
        # Shape inference then says what is wrong with the operator, if anything is: numpy alone minds over 32 axes.
        return None
    if any(output.size > KEPT_ELEMENTS for output in outputs):
        return None
    return outputs


def can_fold(op_type: str) -> bool:
    """Whether operators of this type (of the default domain) are evaluated at all."""
    return op_type in _RULES
