"""Every operator of the standard, by the models that onnx itself tests its operators with.

The inputs that decide about sizes (small integers, truth values) become weights, so that shapes are known. Then each
model is sized as its recorded outputs are, or refused with a reason.
"""

import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from graphs import MACHINE
from onnx import numpy_helper

from spillprof.explain.analyze import analyze
from spillprof.explain.options import AnalyzeOptions
from spillprof.frontends import read_model
from spillprof.frontends.onnx.elements import DTYPE_OF_ELEMENT
from spillprof.ir.dtypes import UNSIZED_DTYPES
from spillprof.ir.errors import ModelError, ShapeError
from spillprof.ir.graph import Graph
from spillprof.lowering.lower import lower
from spillprof.lowering.operators.table import CostClass, cost_class
from spillprof.lowering.options import LoweringOptions

DECIDING = (np.int64, np.int32, np.uint64, np.uint32, np.bool_)
MOST_ELEMENTS = 64

REFUSED = {
    "the size of an input is open",  # a sequence's elements
    "the size of a tensor stays unknown",
    "the size of 2 tensors stays unknown",
    "the shapes do not fit: input typestr: O, has unsupported type: seq(tensor(float))",
}
UNKNOWN_SIZES = {"Loop", "Range", "SequenceAt", "StringSplit"}
"""Operators whose outputs may stay unsized: their trip count, limits or texts are data of the run."""


@cache
def cases() -> Sequence[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        return [case for case in collect_testcases(None) if case.model is not None]


def with_known_sizes(case: Any) -> onnx.ModelProto:
    """The case's model, the inputs that decide about sizes stored in it; unless no other input is left."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    fed = dict(zip((v.name for v in case.model.graph.input), case.data_sets[0][0], strict=False))
    stored = {
        name: a
        for name, a in fed.items()
        if isinstance(a, np.ndarray) and a.dtype in DECIDING and a.size <= MOST_ELEMENTS
    }
    if "resize" in case.name or "upsample" in case.name:
        stored |= {n: a for n, a in fed.items() if n in ("scales", "roi")}
    left = [v for v in model.graph.input if v.name not in stored]
    if left:
        del model.graph.input[:]
        model.graph.input.extend(left)
        model.graph.initializer.extend(numpy_helper.from_array(a, name) for name, a in stored.items())
    return model


def element_type(recorded: Any) -> int:
    return int(onnx.helper.np_dtype_to_tensor_dtype(np.asarray(recorded).dtype))


def differences(graph: Graph, case: Any) -> list[str]:
    """Outputs whose size is not the recorded one; an upper bound may pass it where that is said."""
    is_bound = any("its largest size is taken" in a.what or "changes its size" in a.what for a in graph.assumptions)
    found = []
    for value, recorded in zip(case.model.graph.output, case.data_sets[0][1], strict=True):
        tensor = graph.tensors[value.name]
        if isinstance(recorded, list):
            held = [shape for _, shape in tensor.elements]
            if held and held != [np.asarray(each).shape for each in recorded]:
                found.append(f"{value.name}: {held}, recorded {[np.asarray(each).shape for each in recorded]}")
            continue
        element = recorded.data_type if isinstance(recorded, onnx.TensorProto) else element_type(recorded)
        if tensor.dtype not in UNSIZED_DTYPES - {"string"} and tensor.dtype != DTYPE_OF_ELEMENT[element]:
            found.append(f"{value.name}: {tensor.dtype}, recorded {DTYPE_OF_ELEMENT[element]}")
        shape = tuple(recorded.dims) if isinstance(recorded, onnx.TensorProto) else np.asarray(recorded).shape
        fits = len(shape) == len(tensor.shape) and all(a <= b for a, b in zip(shape, tensor.shape, strict=True))
        if not (tensor.shape == shape or (is_bound and fits)):
            found.append(f"{value.name}: {tensor.shape}, recorded {shape}")
    return found


def test_every_model_is_sized_as_recorded_or_refused_with_a_reason() -> None:
    wrong: list[str] = []
    for number, case in enumerate(cases()):
        try:
            graph = read_model(with_known_sizes(case).SerializeToString(), name=case.name)
        except (ModelError, ShapeError) as error:
            is_open = "stays unknown" in error.message
            producers = {line.rsplit("(", 1)[-1].rstrip(")") for line in error.where[1:]}
            if error.message not in REFUSED or (is_open and not producers & UNKNOWN_SIZES):
                wrong.append(f"{case.name}: {error.message} {error.where}")
            continue
        wrong += [f"{case.name}: {line}" for line in differences(graph, case)]
        program = lower(graph, MACHINE, LoweringOptions(fold=False))
        is_said = any("counted as 0 bytes" in a.what for a in program.assumptions)
        for step in program.steps:
            holds = any(program.buffers[b].payload_bytes > 0 for b in (*step.reads, *step.writes))
            holds &= step.op_type != "Shape"  # reads nothing, and may be asked for no dimension at all
            if not step.touched_bytes and not step.macs and holds and not is_said:
                wrong.append(f"{case.name}: {step.op_type} touches nothing")
        if number % 8 == 0:
            analyze(graph, MACHINE, AnalyzeOptions(strategies=("lru",)))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("domain", ["", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training"])
def test_cost_of_standard_operators_is_known_but_for_the_few_named(domain: str) -> None:
    types = {s.name for s in onnx.defs.get_all_schemas_with_history() if s.domain == domain}
    unknown = {t for t in types if cost_class(domain, t) is CostClass.UNKNOWN}
    assert unknown <= {"TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor", "Gradient"}
