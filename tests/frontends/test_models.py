"""``read_model``: paths, bytes and streams, the cache, and the choice of the front end."""

import subprocess
import sys
from io import BytesIO
from pathlib import Path

import pytest
from onnx_builders import model, node, value

from spillprof.frontends import read_model
from spillprof.frontends.models import GraphCache, front_end_of
from spillprof.ir.errors import ModelError, ShapeError
from spillprof.ir.graph import Bindings

OPEN = model([node("Relu", "x", "y")], [value("x", ["N", "M"])], "y")


def test_path_bytes_and_stream_give_the_same_graph(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(OPEN)
    sizes = Bindings(dims={"N": 2, "M": 3})
    of_path = read_model(path, sizes)
    of_bytes = read_model(OPEN, sizes, name=str(path))
    assert of_path == of_bytes == read_model(BytesIO(OPEN), dims={"N": 2, "M": 3}, name=str(path))
    assert read_model(BytesIO(OPEN), sizes).path == "-"


def test_an_empty_stream_holds_no_model() -> None:
    with pytest.raises(ModelError, match="empty"):
        read_model(BytesIO())


def test_with_a_cache_equal_contents_and_bindings_are_sized_once(tmp_path: Path) -> None:
    cache = GraphCache(16)
    path = tmp_path / "m.onnx"
    path.write_bytes(OPEN)
    first = read_model(path, dims={"N": 2, "M": 3}, cache=cache)
    assert read_model(path, dims={"M": 3, "N": 2}, cache=cache) is first
    assert read_model(path, dims={"N": 2, "M": 4}, cache=cache) is not first
    copy = tmp_path / "copy.onnx"
    copy.write_bytes(OPEN)
    again = read_model(copy, dims={"N": 2, "M": 3}, cache=cache)
    assert again.path == str(copy)
    assert again.tensors is first.tensors
    path.write_bytes(model([node("Relu", "x", "z")], [value("x", ["N", "M"])], "z"))
    assert read_model(path, dims={"N": 2, "M": 3}, cache=cache).outputs == ("z",)


def test_errors_are_not_cached() -> None:
    cache = GraphCache(16)
    for _ in range(2):
        with pytest.raises(ShapeError):
            read_model(OPEN, cache=cache)
    assert read_model(OPEN, dims={"N": 2, "M": 3}, cache=cache).tensors["y"].shape == (2, 3)


def test_files_that_no_front_end_claims_go_to_onnx() -> None:
    files = ((OPEN, "m.onnx"), (b"{", "m.json"), (OPEN, "-"), (b"", ""))
    assert {front_end_of(head, name).name for head, name in files} == {"ONNX"}


def test_alone_in_its_process_onnx_is_imported_in_part(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(OPEN)
    program = (
        "import sys\n"
        "from spillprof.frontends import read_model\n"
        "graph = read_model(sys.argv[1], dims={'N': 2, 'M': 3}, is_alone=True)\n"
        "assert graph.tensors['y'].shape == (2, 3)\n"
        "assert 'onnx' not in sys.modules\n"
        "import onnx.checker, onnx.helper, onnx.shape_inference\n"
        "from spillprof.frontends.onnx.proto import ModelProto\n"
        "assert onnx.ModelProto is ModelProto\n"
        "(output,) = onnx.shape_inference.infer_shapes(onnx.load(sys.argv[1])).graph.output\n"
        "assert output.type.tensor_type.elem_type == onnx.TensorProto.FLOAT\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
