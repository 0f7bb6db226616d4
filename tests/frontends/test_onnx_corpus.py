"""Real models against the sizes of a real run, and hostile files against their right outcome."""

import gzip
import json
from pathlib import Path

import onnx
import pytest
from corpus_models import CORPUS, MODELS, bindings, graph_of, rows

from spillprof.frontends import read_model
from spillprof.frontends.onnx.elements import DTYPE_OF_ELEMENT
from spillprof.ir.dtypes import UNSIZED_DTYPES
from spillprof.ir.errors import SpillprofError
from spillprof.ir.graph import Graph, TensorKind

ASSUMED: dict[str, dict[str, tuple[int, ...]]] = {
    "fasterrcnn_mobilenet_v3_large_320_fpn_legacy.onnx": {  # boxes that survived in the run: none
        "onnx::Slice_1495": (324,),
        "/roi_heads/box_roi_pool/NonZero_1_output_0": (1, 0),
        "/roi_heads/NonZero_output_0": (1, 0),
        "onnx::Slice_1959": (0,),
    },
    "ssdlite320_mobilenet_v3_large_legacy.onnx": {"onnx::Slice_4134": (5760,)},  # boxes that survived in the run
}
"""Tensors whose size depends on the data, as they were in the run; without them ours are upper bounds."""

OTHER_PEAK = {
    "fasterrcnn_mobilenet_v3_large_320_fpn_legacy.onnx": "upper bounds of data-dependent sizes",
    "onnxscript_functions_loop_if.onnx": "functions are inlined, so their inner tensors are seen",
}
"""Models whose peak of live bytes is not that of the run, and why."""


HOSTILE = {row["file"]: row["exit_code"] for row in rows("hostile/INDEX.csv")}


def live_peak_bytes(graph: Graph) -> int:
    """Largest sum of live activations in file order: no views, nothing in place."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for step, op in enumerate(graph.operators):
        for name in (*op.inputs, *op.captures):
            last[name] = step
        for name in op.outputs:
            first[name] = step
            last.setdefault(name, step)
    last.update(dict.fromkeys(graph.outputs, len(graph.operators) - 1))
    first.update((name, 0) for name in graph.inputs if name in last)
    change = [0] * (len(graph.operators) + 1)
    for name, start in first.items():
        if name:
            change[start] += graph.tensors[name].nbytes
            change[last[name] + 1] -= graph.tensors[name].nbytes
    live = peak = 0
    for step in change:
        live += step
        peak = max(peak, live)
    return peak


@pytest.mark.parametrize("file", MODELS)
def test_every_tensor_has_the_size_of_the_run(file: str) -> None:
    truth_file = CORPUS / "truth" / (file.removesuffix(".onnx") + ".json.gz")
    if not truth_file.is_file():
        pytest.skip("no run was recorded for this model")
    bounds = graph_of(file)
    assumed = ASSUMED.get(file, {})
    graph = read_model(CORPUS / "models" / file, dims=bindings(file), assume=assumed) if assumed else bounds
    compared = 0
    for name, (shape, element) in json.loads(gzip.decompress(truth_file.read_bytes())).items():
        tensor = graph.tensors[name]
        if element == 0:  # not a tensor
            assert tensor.dtype in UNSIZED_DTYPES
            continue
        compared += 1
        assert (tensor.dtype, tensor.shape) == (DTYPE_OF_ELEMENT[element], tuple(shape)), name
        assert bounds.tensors[name].nbytes >= tensor.nbytes, name
    assert compared
    assert bool(assumed) <= any("largest size" in a.what for a in bounds.assumptions)


@pytest.mark.parametrize("file", MODELS)
def test_the_peak_of_live_bytes_is_that_of_the_run(file: str) -> None:
    peak, expected = live_peak_bytes(graph_of(file)), int(MODELS[file]["peak_bytes"])
    assert peak > expected if file in OTHER_PEAK else peak == expected


@pytest.mark.parametrize("file", HOSTILE)
def test_hostile_file_is_read_or_refused(file: str) -> None:
    refusal, graph = None, None
    try:
        graph = read_model(CORPUS / "hostile" / file)
    except SpillprofError as error:
        refusal = error
    assert HOSTILE[file] in ("any", "0" if refusal is None else str(refusal.exit_code))
    if refusal is not None:
        assert refusal.message == refusal.message.strip().rstrip(".")
        assert refusal.where, "says where"
    if graph is not None:
        named = {n for op in graph.operators for n in (*op.inputs, *op.outputs, *op.captures) if n}
        assert named | set(graph.inputs) | set(graph.outputs) <= set(graph.tensors)
        names = [op.name for op in graph.operators]
        assert all(names)
        assert len(set(names)) == len(names)


LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


@pytest.mark.parametrize("name", ["resnet50", "densenet121", "inception_v2", "vgg19", "shufflenet", "squeezenet"])
def test_light_model_keeps_its_computed_weights_as_operators(name: str) -> None:
    path = LIGHT / f"light_{name}.onnx"
    if not path.is_file():
        pytest.skip("this onnx package has no light models")
    graph = read_model(path)
    assert len(graph.inputs) == 1
    made = [op for op in graph.operators if op.op_type == "ConstantOfShape"]
    assert made
    assert all(graph.tensors[op.outputs[0]].kind is TensorKind.ACTIVATION for op in made)
    assert all(graph.tensors[op.inputs[0]].kind is TensorKind.WEIGHT for op in made)
    assert any("listed as an input" in note for note in graph.notes)
