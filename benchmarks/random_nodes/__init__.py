"""Random nodes of each operator, for comparison with onnxruntime."""

from typing import Any

from random_nodes import elementwise, movement, products, windows
from random_nodes.comparing import Answer, Verdict, compare
from random_nodes.drawing import RECIPES, Draw

__all__ = ["RECIPES", "Answer", "Draw", "Verdict", "compare", "session_options"]

_FAMILIES = (elementwise, movement, products, windows)  # each registers its recipes


def session_options(ort: Any) -> Any:
    """One thread, no optimisation, nothing logged."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return options
