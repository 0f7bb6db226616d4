"""Metadata in a model file: encoded as protobuf does, every other byte unchanged."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from spillprof.frontends import read_model
from spillprof.frontends.onnx.rewriting import Annotated, annotate
from spillprof.ir.errors import ModelError


def model(*, weight_bytes: int = 400) -> onnx.ModelProto:
    """Nodes with names, without, and two of one name; a constant between them; a weight; metadata of others."""
    weight = numpy_helper.from_array(np.zeros(weight_bytes // 4, np.float32), "w")
    shape = numpy_helper.from_array(np.array([-1], np.int64), "shape")
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="act"),
        helper.make_node("Constant", [], ["s"], value=shape),
        helper.make_node("Reshape", ["a", "s"], ["b"]),
        helper.make_node("Add", ["b", "w"], ["c"], name="act"),
        helper.make_node("Relu", ["c"], ["y"], name="last"),
    ]
    helper.set_model_props(nodes[4], {"pkg.torch": "1"})
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [weight_bytes // 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [weight_bytes // 4])],
        [weight],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    helper.set_model_props(made, {"author": "somebody"})
    return made


def annotated(path: Path, of_model: Any = (), of_nodes: Any = None) -> Annotated:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return annotate(str(path), sha256=digest, of_model=of_model, of_nodes=of_nodes or {})


def expected(made: onnx.ModelProto, of_model: Any, by_position: dict[int, Any]) -> onnx.ModelProto:
    """The same notes put in by protobuf."""
    for place, notes in [(made, of_model), *((made.graph.node[k], n) for k, n in by_position.items())]:
        for key, text in notes:
            place.metadata_props.add(key=f"spillprof.{key}", value=text)
    return made


def test_notes_stand_where_protobuf_would_put_them(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(model(), path)
    names = [op.name for op in read_model(path).operators]
    assert names == ["act", "Reshape_2", "act_1", "last"]  # the constant is no operator
    notes = {"act": [("a", "1")], "Reshape_2": [("b", "2")], "act_1": [("c", "3")], "last": [("d", "4")]}
    found = annotated(path, [("verdict", "spills")], {**notes, "inside/of/a/body": [("e", "5")]})
    assert found.found == 4
    written = onnx.ModelProto.FromString(b"".join(found.contents()))
    by_position = {0: notes["act"], 2: notes["Reshape_2"], 3: notes["act_1"], 4: notes["last"]}
    assert written == expected(model(), [("verdict", "spills")], by_position)
    onnx.checker.check_model(written, full_check=True)


def test_older_notes_give_way_and_those_of_others_stay(tmp_path: Path) -> None:
    first, second = tmp_path / "first.onnx", tmp_path / "second.onnx"
    onnx.save(model(), first)
    old = annotated(first, [("verdict", "old")], {"act": [("a", "old")], "last": [("a", "old")]})
    second.write_bytes(b"".join(old.contents()))
    again = annotated(second, [("verdict", "new")], {"last": [("b", "new")]})
    written = onnx.ModelProto.FromString(b"".join(again.contents()))
    assert written == expected(model(), [("verdict", "new")], {4: [("b", "new")]})
    assert b"".join(annotated(second).contents()) == first.read_bytes()


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=300), min_size=4, max_size=4),
    weight_bytes=st.sampled_from([4, 100, 120, 128, 16_000, 16_400]),
)
def test_lengths_grow_over_every_size_of_number(
    texts: list[str], weight_bytes: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("m") / "m.onnx"
    onnx.save(model(weight_bytes=weight_bytes), path)
    found = annotated(path, [("v", texts[0])], {"act": [("a", texts[1]), ("b", texts[2])], "last": [("c", texts[3])]})
    written = onnx.ModelProto.FromString(b"".join(found.contents()))
    by_position = {0: [("a", texts[1]), ("b", texts[2])], 4: [("c", texts[3])]}
    assert written == expected(model(weight_bytes=weight_bytes), [("v", texts[0])], by_position)


def test_text_that_is_no_unicode_is_written_as_an_escape(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(model(), path)
    written = onnx.ModelProto.FromString(b"".join(annotated(path, [("v", "\udcff")]).contents()))
    assert written.metadata_props[-1].value == "\\udcff"


def test_weights_in_other_files_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(model(weight_bytes=8000), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    assert annotated(path).has_external_weights
    onnx.save(model(), path)
    assert not annotated(path).has_external_weights


def test_another_file_or_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    with pytest.raises(ModelError, match="cannot be read"):
        annotate(str(path), sha256="0" * 64, of_model=(), of_nodes={})
    onnx.save(model(), path)
    with pytest.raises(ModelError, match="not the one that was analysed"):
        annotate(str(path), sha256="0" * 64, of_model=(), of_nodes={})


@pytest.mark.parametrize(
    "contents",
    [
        b"",
        b"\x00",
        b"no model at all",
        b"\x3a\x05",
        b"\x3a\x02\x0a\x7f",
        b"\x3a\x00\x3a\x00",
        b"\x3a\x04\x0a\x02\x0a\xff",
    ],
)
def test_a_file_that_is_no_model_is_refused(contents: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(contents)
    with pytest.raises(ModelError):
        annotated(path, [("v", "1")])


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", ".", "a\0b", ""])
def test_what_is_no_file_is_refused(path: str) -> None:
    with pytest.raises(ModelError):
        annotate(path, sha256=hashlib.sha256().hexdigest(), of_model=(), of_nodes={})


def test_notes_of_old_versions_of_the_format_pass_the_checker(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    made = model()
    made.ir_version = 8
    onnx.save(made, path)
    written = onnx.ModelProto.FromString(b"".join(annotated(path, [("v", "1")], {"last": [("a", "1")]}).contents()))
    onnx.checker.check_model(written, full_check=True)


def test_every_model_of_the_corpus_takes_notes_and_keeps_the_rest(corpus: Path) -> None:
    paths = sorted(p for p in (corpus / "models").rglob("*.onnx") if p.stat().st_size < 3_000_000)[:25]
    assert paths
    for path in paths:
        names = [op.name for op in onnx.load(path, load_external_data=False).graph.node if op.name]
        found = annotated(path, [("v", "1")], {name: [("a", "1")] for name in names[:50]})
        written = onnx.ModelProto.FromString(b"".join(found.contents()))
        for place in (written, *written.graph.node):
            kept = [p for p in place.metadata_props if not p.key.startswith("spillprof.")]
            del place.metadata_props[:]
            place.metadata_props.extend(kept)
        assert written == onnx.load(path, load_external_data=False), path.name
