"""Output sizes of classical machine learning (``ai.onnx.ml``), where onnx infers only part of the shape or none."""

import math
from collections.abc import Mapping, Sequence

from spillprof.frontends.onnx.elements import DTYPE_OF_ELEMENT
from spillprof.frontends.onnx.proto import TypeProto
from spillprof.frontends.onnx.rule import OperatorCase, Sized, SizeRule, same, same_as, undecided


def _rows(case: OperatorCase) -> int:
    shape = case.shape(0)
    return shape[0] if len(shape) > 1 else 1


def _classifier(case: OperatorCase) -> Sequence[Sized]:
    texts = case.count("classlabels_strings")
    classes = texts or case.count("classlabels_int64s", "classlabels_ints", "intercepts")
    label = "string" if texts else "int64"
    return [(label, (_rows(case),)), ("float32", (_rows(case), max(classes, 2)))]


def _support_vector_classifier(case: OperatorCase) -> Sequence[Sized]:
    texts = case.count("classlabels_strings")
    classes = texts or case.count("classlabels_ints")
    pairs = classes * (classes - 1) // 2
    columns = classes if case.count("prob_a") or not case.count("vectors_per_class") else max(pairs, 2)
    return [("string" if texts else "int64", (_rows(case),)), ("float32", (_rows(case), columns))]


def _regressor(case: OperatorCase) -> Sequence[Sized]:
    targets = case.number("n_targets", case.number("targets", 1))
    return [("float32", (_rows(case), targets))]


def _label_encoder(case: OperatorCase) -> Sequence[Sized]:
    shape = case.shape(0)
    for name, dtype in (("values_strings", "string"), ("values_int64s", "int64"), ("values_floats", "float32")):
        if case.count(name):
            return [(dtype, shape)]
    for attribute in case.node.attributes:
        if attribute.name == "values_tensor":
            return [(DTYPE_OF_ELEMENT[attribute.t.data_type], shape)]
    return [("int64" if case.dtype(0) == "string" else "string", shape)]


def _dict_vectorizer(case: OperatorCase) -> Sequence[Sized]:
    """One row with a column for each word of the vocabulary, of the type of the map's values."""
    values = TypeProto.FromString(case.known(0).proto).map_type.value_type
    dtype = DTYPE_OF_ELEMENT[values.tensor_type.elem_type]
    return [(dtype, (1, case.count("string_vocabulary", "int64_vocabulary") or undecided()))]


def _cast_map(case: OperatorCase) -> Sequence[Sized]:
    """Sparse: ``max_map`` columns. Dense: one column per key of the map, which is unknown before the run."""
    if case.settings.get("map_form", "DENSE") != "SPARSE":
        raise ValueError("not decided")
    dtypes = {"TO_FLOAT": "float32", "TO_INT64": "int64", "TO_STRING": "string"}
    return [(dtypes[str(case.settings.get("cast_to", "TO_FLOAT"))], (1, case.number("max_map", 1)))]


CLASSICAL_SIZES: Mapping[str, SizeRule] = {
    "ArrayFeatureExtractor": lambda c: [(c.dtype(0), (*(c.shape(0)[:-1] or (1,)), math.prod(c.shape(1))))],
    "Binarizer": same_as(0, "float32"),
    "CastMap": _cast_map,
    "CategoryMapper": lambda c: [("int64" if c.dtype(0) == "string" else "string", c.shape(0))],
    "DictVectorizer": _dict_vectorizer,
    "FeatureVectorizer": lambda c: [("float32", (_rows(c), sum(c.numbers("inputdimensions"))))],
    "Imputer": same,
    "LabelEncoder": _label_encoder,
    "LinearClassifier": _classifier,
    "LinearRegressor": _regressor,
    "Normalizer": same_as(0, "float32"),
    "OneHotEncoder": lambda c: [("float32", (*c.shape(0), c.count("cats_int64s", "cats_strings") or undecided()))],
    "SVMClassifier": _support_vector_classifier,
    "SVMRegressor": _regressor,
    "Scaler": same_as(0, "float32"),
    "TreeEnsemble": _regressor,
    "TreeEnsembleClassifier": _classifier,
    "TreeEnsembleRegressor": _regressor,
    "ZipMap": lambda c: [("sequence", ())],
}
"""By operator type."""
