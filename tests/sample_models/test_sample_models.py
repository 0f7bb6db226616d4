import subprocess
import sys
from pathlib import Path

import onnx
import pytest

SAMPLES = Path(__file__).parents[2] / "sample_models"
NAMES = ("residual_cnn.onnx", "three_branch.onnx", "transformer_blocks.onnx", "unet.onnx")


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rebuilt")
    subprocess.run([sys.executable, SAMPLES / "make_models.py", "--out", folder], check=True, capture_output=True)
    return folder


def test_every_committed_model_has_a_builder_and_the_other_way_round(rebuilt: Path) -> None:
    assert sorted(p.name for p in SAMPLES.glob("*.onnx")) == sorted(p.name for p in rebuilt.iterdir()) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_building_again_writes_the_committed_bytes(name: str, rebuilt: Path) -> None:
    assert (rebuilt / name).read_bytes() == (SAMPLES / name).read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_committed_model_is_valid_onnx_with_every_shape_known(name: str) -> None:
    model = onnx.load(SAMPLES / name)
    onnx.checker.check_model(model, full_check=True)
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    shaped = {v.name: v.type.tensor_type for v in (*inferred.graph.value_info, *inferred.graph.output)}
    for node in inferred.graph.node:
        dims = shaped[node.output[0]].shape.dim
        assert all(dim.dim_value > 0 for dim in dims), node.name


@pytest.mark.parametrize("name", NAMES)
def test_committed_model_takes_tens_of_kilobytes(name: str) -> None:
    assert (SAMPLES / name).stat().st_size < 100_000


def test_residual_cnn_owns_35_megabytes_of_weights() -> None:
    model = onnx.load(SAMPLES / "residual_cnn.onnx")
    shapes = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    elements = sum(int(shapes[node.input[0]].prod()) for node in model.graph.node if node.op_type == "ConstantOfShape")
    assert 34.5e6 < 2 * elements < 36e6
