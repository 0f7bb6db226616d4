"""One node in onnxruntime and in the front end: are the outputs of the same type and size?"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from random_nodes.drawing import Case
from spillprof.frontends import read_model
from spillprof.ir.dtypes import UNSIZED_DTYPES
from spillprof.ir.errors import SpillprofError
from spillprof.ir.graph import Graph

BOUNDS = ("its largest size is taken",)


class Answer(Enum):
    """How a comparison went."""

    NOT_RUN = "onnxruntime does not run it"
    SAME = "the same"
    BOUND = "an upper bound, and said so"
    OPEN = "depends on what is fed, and said so"
    EXPLAINED = "differs for a reason that is listed"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What came of a node; ``detail`` for people."""

    answer: Answer
    detail: str = ""


def compare(case: Case, ort: Any, options: Any) -> Verdict:
    """Runs the node and reads it."""
    data = case.model()
    try:
        session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        made = session.run(None, case.feeds())
    except Exception as error:  # the runtime raises types of its own for all that it does not take
        return Verdict(answer=Answer.NOT_RUN, detail=(str(error).strip().splitlines() or [""])[0])
    reason = next((why for applies, why in EXPLAINED if applies(case)), None)
    try:
        graph = read_model(data, name=case.op_type)
    except SpillprofError as error:
        if "stays unknown" in error.message and _has_deciding_feed(case):
            return Verdict(answer=Answer.OPEN)
        detail = (
            f"{case.written()}: onnxruntime {[_shown(m) for m in made]}, refused: {error.message} {error.where[1:]}"
        )
        return Verdict(answer=Answer.EXPLAINED if reason else Answer.DIFFERENT, detail=detail)
    answers = [_output(graph, f"o{i}", value) for i, value in enumerate(made)]
    if Answer.DIFFERENT in answers:
        read = [(graph.tensors[f"o{i}"].dtype, graph.tensors[f"o{i}"].shape) for i in range(len(made))]
        detail = f"{case.written()}: onnxruntime {[_shown(m) for m in made]}, read {read}"
        return Verdict(answer=Answer.EXPLAINED if reason else Answer.DIFFERENT, detail=detail)
    return Verdict(answer=Answer.BOUND if Answer.BOUND in answers else Answer.SAME)


def _output(graph: Graph, name: str, made: Any) -> Answer:
    tensor = graph.tensors[name]
    if tensor.dtype == "optional" and isinstance(made, np.ndarray):
        return Answer.SAME if tensor.elements in ((), ((str(made.dtype), made.shape),)) else Answer.DIFFERENT
    if not isinstance(made, np.ndarray):
        held = [shape for _, shape in tensor.elements]
        if isinstance(made, list) and held and held != [np.asarray(each).shape for each in made]:
            return Answer.DIFFERENT
        return Answer.SAME if tensor.dtype in UNSIZED_DTYPES else Answer.DIFFERENT
    if tensor.dtype != ("string" if made.dtype == object else str(made.dtype)):
        return Answer.DIFFERENT
    if tensor.shape == made.shape:
        return Answer.SAME
    is_bound = any(text in a.what for a in graph.assumptions for text in BOUNDS)
    fits = len(made.shape) == len(tensor.shape) and all(a <= b for a, b in zip(made.shape, tensor.shape, strict=True))
    return Answer.BOUND if is_bound and fits else Answer.DIFFERENT


def _has_deciding_feed(case: Case) -> bool:
    """Whether something that sizes follow from is fed: the first input is data in nearly every operator."""
    rest = case.inputs if case.op_type in ("Range", "ConstantOfShape") or "Window" in case.op_type else case.inputs[1:]
    rest = case.inputs if case.op_type in ("MelWeightMatrix", "StringSplit") else rest
    return any(o is not None and not o.is_stored for o in rest)


def _shown(made: Any) -> Any:
    return (str(made.dtype), made.shape) if isinstance(made, np.ndarray) else f"{type(made).__name__} of {len(made)}"


def _dilated_same_pool(case: Case) -> bool:
    same = str(case.attributes.get("auto_pad", "")).startswith("SAME")
    return "Pool" in case.op_type and same and max(case.attributes.get("dilations", [1])) > 1


def _aspect_of_axes_from_behind(case: Case) -> bool:
    kept = case.attributes.get("keep_aspect_ratio_policy") in ("not_larger", "not_smaller")
    return case.op_type == "Resize" and kept and min(case.attributes.get("axes") or [0]) < 0


def _resized_to_nothing(case: Case) -> bool:
    if case.op_type != "Resize" or len(case.inputs) < 4 or case.inputs[0] is None or case.inputs[3] is None:
        return False
    shape, sizes = case.inputs[0].array.shape, case.inputs[3].array.tolist()
    before = [shape[axis] for axis in case.attributes.get("axes") or range(len(shape))]
    ratio = min(after / size for after, size in zip(sizes, before, strict=True))
    return case.attributes.get("keep_aspect_ratio_policy") == "not_larger" and ratio * min(before) < 0.5


def _squeeze_of_no_axes(case: Case) -> bool:
    axes = case.inputs[1] if case.op_type == "Squeeze" and len(case.inputs) > 1 else None
    return axes is not None and axes.array.size == 0


EXPLAINED: list[tuple[Callable[[Case], bool], str]] = [
    (_dilated_same_pool, "SAME padding and dilations: onnxruntime pads as if there were no dilation"),
    (_resized_to_nothing, "a kept aspect ratio that leaves an axis no element: onnx says nothing, and it is refused"),
    (_squeeze_of_no_axes, "an empty list of axes: onnxruntime takes it for none given"),
    (
        _aspect_of_axes_from_behind,
        "a kept aspect ratio and axes counted from behind: onnxruntime leaves those axes as they are",
    ),
]
"""Differences that stay, as docs/operators.md lists them."""
