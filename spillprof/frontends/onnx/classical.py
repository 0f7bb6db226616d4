"""Operators of classical machine learning (``ai.onnx.ml``), where onnx infers no or only part of the shape."""

import math
from collections.abc import Mapping, Sequence

from spillprof.frontends.onnx.elements import DTYPE_OF_ELEMENT
from spillprof.frontends.onnx.proto import TypeProto
from spillprof.frontends.onnx.rule import OperatorCase, Sized, SizeRule, same, undecided


def _same_as_float(case: OperatorCase) -> Sequence[Sized]:
    return [("float32", case.shape(0))]


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


def _zip_map(case: OperatorCase) -> Sequence[Sized]:
    return [("sequence", ())]


def _one_hot_encoder(case: OperatorCase) -> Sequence[Sized]:
    return [("float32", (*case.shape(0), case.count("cats_int64s", "cats_strings") or undecided()))]


def _label_encoder(case: OperatorCase) -> Sequence[Sized]:
    shape = case.shape(0)
    for name, dtype in (("values_strings", "string"), ("values_int64s", "int64"), ("values_floats", "float32")):
        if case.count(name):
            return [(dtype, shape)]
    for attribute in case.node.attributes:
        if attribute.name == "values_tensor":
            return [(DTYPE_OF_ELEMENT[attribute.t.data_type], shape)]
    return [("int64" if case.dtype(0) == "string" else "string", shape)]


def _array_feature_extractor(case: OperatorCase) -> Sequence[Sized]:
    shape, picked = case.shape(0), math.prod(case.shape(1))
    return [(case.dtype(0), (*(shape[:-1] or (1,)), picked))]


def _feature_vectorizer(case: OperatorCase) -> Sequence[Sized]:
    return [("float32", (_rows(case), sum(case.numbers("inputdimensions"))))]


def _category_mapper(case: OperatorCase) -> Sequence[Sized]:
    return [("int64" if case.dtype(0) == "string" else "string", case.shape(0))]


def _dict_vectorizer(case: OperatorCase) -> Sequence[Sized]:
    """A row of one column for each word that the operator knows; of the type of the map's values."""
    return [(_map_values(case), (1, case.count("string_vocabulary", "int64_vocabulary") or undecided()))]


def _cast_map(case: OperatorCase) -> Sequence[Sized]:
    """Sparse: as many columns as the attribute says. Dense: as many as the map has keys, which nobody knows."""
    if case.settings.get("map_form", "DENSE") != "SPARSE":
        raise ValueError("not decided")
    dtypes = {"TO_FLOAT": "float32", "TO_INT64": "int64", "TO_STRING": "string"}
    return [(dtypes[str(case.settings.get("cast_to", "TO_FLOAT"))], (1, case.number("max_map", 1)))]


def _map_values(case: OperatorCase) -> str:
    values = TypeProto.FromString(case.known(0).proto).map_type.value_type
    return DTYPE_OF_ELEMENT[values.tensor_type.elem_type]


CLASSICAL_SIZES: Mapping[str, SizeRule] = {
    "ArrayFeatureExtractor": _array_feature_extractor,
    "Binarizer": _same_as_float,
    "CastMap": _cast_map,
    "CategoryMapper": _category_mapper,
    "DictVectorizer": _dict_vectorizer,
    "FeatureVectorizer": _feature_vectorizer,
    "Imputer": same,
    "LabelEncoder": _label_encoder,
    "LinearClassifier": _classifier,
    "LinearRegressor": _regressor,
    "Normalizer": _same_as_float,
    "OneHotEncoder": _one_hot_encoder,
    "SVMClassifier": _support_vector_classifier,
    "SVMRegressor": _regressor,
    "Scaler": _same_as_float,
    "TreeEnsemble": _regressor,
    "TreeEnsembleClassifier": _classifier,
    "TreeEnsembleRegressor": _regressor,
    "ZipMap": _zip_map,
}
"""By operator type."""
