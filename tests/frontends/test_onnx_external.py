"""Small external tensors: read only where sizes depend on them, and only from the model's folder."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_builders import body, node, value

from spillprof.frontends import read_model
from spillprof.ir.errors import ShapeError
from spillprof.ir.graph import Graph

RESHAPE = node("Reshape", "x s", "y")
X = value("x", [2, 12])


def outside(name: str, array: np.ndarray, **said: object) -> onnx.TensorProto:
    """A tensor that says it lies in another file; keys with value None are left out."""
    tensor = onnx.TensorProto(name=name, data_type=helper.np_dtype_to_tensor_dtype(array.dtype), dims=array.shape)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, text in ({"location": "data.bin", "offset": 0, "length": array.nbytes} | said).items():
        if text is not None:
            tensor.external_data.append(onnx.StringStringEntryProto(key=key, value=str(text)))
    return tensor


def built(nodes: list[onnx.NodeProto], *stored: onnx.TensorProto, outputs: str = "y") -> bytes:
    graph = helper.make_graph(nodes, "g", [X], [onnx.ValueInfoProto(name=n) for n in outputs.split()], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


def read_in(folder: Path, data: bytes) -> Graph:
    path = folder / "m.onnx"
    path.write_bytes(data)
    return read_model(path)


SHAPE = np.array([4, 6], np.int64)


@pytest.mark.parametrize(
    ("said", "before"),
    [
        ({}, b""),
        ({"offset": 8}, b"\xff" * 8),
        ({"length": None}, b""),
        ({"length": None, "offset": 3}, b"\xff" * 3),
        ({"offset": None}, b""),
        ({"checksum": "0" * 40}, b""),
        ({"location": "sub/./data.bin"}, b""),
    ],
)
def test_a_stored_shape_is_read(tmp_path: Path, said: dict[str, object], before: bytes) -> None:
    file = tmp_path / str(said.get("location", "data.bin"))
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(before + SHAPE.tobytes() + (b"" if said.get("length", 1) is None else b"behind it"))
    graph = read_in(tmp_path, built([RESHAPE], outside("s", SHAPE, **said)))
    assert graph.tensors["y"].shape == (4, 6)
    assert (graph.assumptions, graph.notes) == ((), ())


def test_scales_constants_and_conditions_are_read_too(tmp_path: Path) -> None:
    scales, condition, axes = np.array([1, 2], np.float32), np.array(False), np.array([0], np.int64)
    (tmp_path / "data.bin").write_bytes(scales.tobytes() + condition.tobytes() + axes.tobytes())
    constant = onnx.NodeProto(op_type="Constant", output=["axes"])
    constant.attribute.append(helper.make_attribute("value", outside("", axes, offset=9)))
    nodes = [
        node("Resize", "x - scales", "y"),
        node("If", "c", "z", then_branch=body([node("Relu", "x", "t")], "t"),
             else_branch=body([constant, node("Unsqueeze", "x axes", "e")], "e")),
    ]  # fmt: skip
    stored = [outside("scales", scales), outside("c", condition, offset=8)]
    graph = read_in(tmp_path, built(nodes, *stored, outputs="y z"))
    assert (graph.tensors["y"].shape, graph.tensors["z"].shape) == ((2, 24), (1, 2, 12))
    assert graph.assumptions == ()


def test_the_same_model_with_other_data_is_another_model(tmp_path: Path) -> None:
    data = built([RESHAPE], outside("s", SHAPE))
    graphs = {}
    for name, shape in (("a", [4, 6]), ("b", [3, 8]), ("c", [4, 6])):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data.bin").write_bytes(np.array(shape, np.int64).tobytes())
        graphs[name] = read_in(tmp_path / name, data)
    assert [g.tensors["y"].shape for g in graphs.values()] == [(4, 6), (3, 8), (4, 6)]
    assert len({g.sha256 for g in graphs.values()}) == 1
    assert graphs["a"].fingerprint == graphs["c"].fingerprint != graphs["b"].fingerprint
    (tmp_path / "a" / "data.bin").write_bytes(np.array([1, 24], np.int64).tobytes())
    assert read_model(tmp_path / "a" / "m.onnx").tensors["y"].shape == (1, 24)


def test_files_are_left_alone_where_nothing_is_open_without_them(tmp_path: Path) -> None:
    stored = outside("s", np.ones((2, 12), np.int64), location="absent.bin")
    graph = read_in(tmp_path, built([node("Cast", "s", "f", to=1), node("Add", "x f", "y")], stored))
    assert graph.tensors["y"].shape == (2, 12)
    assert graph.fingerprint == graph.sha256
    assert graph.notes == ()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"location": "absent.bin"}, "there is no such file"),
        ({"location": None}, "it has no location"),
        ({"location": ""}, "it has no location"),
        ({"location": "/etc/hostname"}, "its location is absolute"),
        ({"location": "C:\\data.bin"}, "its location is absolute"),
        ({"location": "\\\\host\\data.bin"}, "its location is absolute"),
        ({"location": "../data.bin"}, "leads out of the model's folder"),
        ({"location": "sub/../../data.bin"}, "leads out of the model's folder"),
        ({"location": "sub\\..\\..\\data.bin"}, "leads out of the model's folder"),
        ({"location": "."}, "it is not a regular file"),
        ({"length": 8}, "its length is 8 bytes, and its shape takes 16"),
        ({"length": "1e1"}, "no numbers"),
        ({"offset": -8}, "no numbers"),
        ({"offset": "9" * 30}, "no numbers"),
        ({"offset": 8}, "the file has 16 bytes, and the tensor takes 16 from 8 on"),
        ({"offset": 1 << 50}, "the file has 16 bytes"),
        ({"length": None, "offset": 8}, "the file has 16 bytes"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, said: dict[str, object], why: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "data.bin").write_bytes(SHAPE.tobytes())
    (tmp_path / "data.bin").write_bytes(SHAPE.tobytes())
    with pytest.raises(ShapeError, match="stays unknown") as refused:
        read_in(folder, built([RESHAPE], outside("s", SHAPE, **said)))
    assert "'s'" in refused.value.where[-1]
    assert why in refused.value.where[-1]
    assert "in a file of its folder" in str(refused.value.hint)


@pytest.mark.skipif(os.name == "nt", reason="links and pipes need rights or do not exist there")
def test_links_out_of_the_folder_and_pipes_are_not_opened(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(SHAPE.tobytes())
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    (folder / "up").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe.bin")
    (folder / "real.bin").write_bytes(SHAPE.tobytes())
    (folder / "inner.bin").symlink_to("real.bin")
    expected = {
        "link.bin": "a link leads out", "up/secret.bin": "a link leads out", "pipe.bin": "not a regular file",
    }  # fmt: skip
    for location, why in expected.items():
        with pytest.raises(ShapeError) as refused:
            read_in(folder, built([RESHAPE], outside("s", SHAPE, location=location)))
        assert why in refused.value.where[-1]
    graph = read_in(folder, built([RESHAPE], outside("s", SHAPE, location="inner.bin")))
    assert graph.tensors["y"].shape == (4, 6)


def test_a_model_without_a_folder_says_so() -> None:
    with pytest.raises(ShapeError) as refused:
        read_model(built([RESHAPE], outside("s", SHAPE)), name="-")
    assert "the model came without a folder" in refused.value.where[-1]


def test_a_guess_that_a_file_would_have_spared_is_noted(tmp_path: Path) -> None:
    stored = [outside("a", np.array([0], np.int64)), outside("b", np.array([1], np.int64), offset=8)]
    data = built([node("Slice", "x a b", "y")], *stored)
    graph = read_in(tmp_path, data)
    assert graph.tensors["y"].shape == (2, 12)
    assert "'a', stored in 'data.bin': there is no such file" in graph.notes[-1]
    (tmp_path / "data.bin").write_bytes(np.array([0, 1], np.int64).tobytes())
    graph = read_in(tmp_path, data)
    assert (graph.tensors["y"].shape, graph.notes, graph.assumptions) == ((1, 12), (), ())


OPENED = """
import json, sys
opened = []
sys.addaudithook(lambda event, arguments: opened.append(str(arguments[0])) if event == "open" else None)
from spillprof.ir.errors import SpillprofError
from spillprof.frontends import read_model
for path in sys.argv[1:]:
    try:
        read_model(path)
    except SpillprofError:
        pass
print(json.dumps(opened))
"""


def test_only_named_files_of_the_folder_are_ever_opened(tmp_path: Path) -> None:
    """Large tensors are not opened, nor what lies elsewhere; whatever Python opens is seen."""
    folder = tmp_path / "model"
    folder.mkdir()
    for place in (tmp_path, folder):
        (place / "data.bin").write_bytes(SHAPE.tobytes())
        (place / "large.bin").write_bytes(bytes(1 << 20))
    large = np.zeros((12, 1 << 14), np.float32)
    locations = ["data.bin", "../data.bin", str(tmp_path / "data.bin"), "/dev/zero", "/dev/stdin", "//host/data.bin"]
    paths = []
    for number, location in enumerate(locations):
        stored = [outside("s", SHAPE, location=location), outside("w", large, location="large.bin")]
        nodes = [RESHAPE, node("MatMul", "x w", "z")]
        paths.append(folder / f"m{number}.onnx")
        paths[-1].write_bytes(built(nodes, *stored, outputs="y z"))
    command = [sys.executable, "-c", OPENED, *map(str, paths)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    opened = [Path(name) for name in json.loads(run.stdout)]
    seen = [path for path in opened if path.suffix == ".bin" or path.is_relative_to("/dev")]
    assert [path for path in seen if path != Path(os.devnull)] == [(folder / "data.bin").resolve()]


def test_external_data_equals_stored_data(tmp_path: Path) -> None:
    """As onnx itself writes it, every tensor outside."""
    weights = [numpy_helper.from_array(SHAPE, "s"), numpy_helper.from_array(np.zeros((6, 300), np.float32), "w")]
    inside = built([RESHAPE, node("MatMul", "y w", "z")], *weights, outputs="z")
    model = onnx.ModelProto.FromString(inside)
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, size_threshold=0, location="all.bin")
    graph = read_model(tmp_path / "m.onnx")
    assert {n: t.shape for n, t in graph.tensors.items()} == {
        n: t.shape for n, t in read_model(inside, name="m").tensors.items()
    }
