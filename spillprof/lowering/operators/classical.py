"""Classical machine learning, domain ``ai.onnx.ml``: models whose parameters lie in attributes."""

from spillprof.ir.graph import Operator
from spillprof.lowering.operators.facts import ML_DOMAIN, LoopKind, OperandShapes, OperatorFacts
from spillprof.lowering.operators.movement import one_element_each
from spillprof.lowering.operators.vector_ops import of_elements, of_reductions

ATTRIBUTE_BYTES = "parameters in attributes of classical models are weights of 8 bytes a whole number, 4 any other"


def attribute_bytes(op: Operator) -> int:
    """Bytes of the parameters that an operator of classical machine learning keeps in its attributes.

    Trees, coefficients, tables: lists of numbers. Texts and tensors are left out.
    """
    if op.domain != ML_DOMAIN:
        return 0
    lists = (value for value in op.attributes.values() if isinstance(value, tuple))
    return sum(
        len(values) * (8 if isinstance(values[0], int) else 4)
        for values in lists
        if values and not isinstance(values[0], str)
    )


def _linear_model(o: OperandShapes) -> int:
    return _rows(o) * o.length("coefficients")


def _support_vectors(o: OperandShapes) -> int:
    """The kernel against each support vector, then the coefficients."""
    return _rows(o) * (o.length("support_vectors") + o.length("coefficients"))


def _rows(o: OperandShapes) -> int:
    shape = o.input(0)
    return shape[0] if len(shape) > 1 else 1


CLASSICAL = (
    OperatorFacts(
        types="Binarizer Scaler", domains=(ML_DOMAIN,), loop=LoopKind.ELEMENTWISE, in_place=True, vector_ops=of_elements
    ),
    OperatorFacts(types="Imputer LabelEncoder", domains=(ML_DOMAIN,), loop=LoopKind.ELEMENTWISE),
    OperatorFacts(types="Normalizer", domains=(ML_DOMAIN,), loop=LoopKind.REDUCTION, vector_ops=of_reductions),
    OperatorFacts(types="FeatureVectorizer", domains=(ML_DOMAIN,), loop=LoopKind.CONCATENATION),
    OperatorFacts(types="ArrayFeatureExtractor", domains=(ML_DOMAIN,), loop=LoopKind.LOOKUP, reads=one_element_each),
    OperatorFacts(types="CastMap CategoryMapper DictVectorizer OneHotEncoder ZipMap", domains=(ML_DOMAIN,)),
    OperatorFacts(types="LinearClassifier LinearRegressor", domains=(ML_DOMAIN,), macs=_linear_model),
    OperatorFacts(types="SVMClassifier SVMRegressor", domains=(ML_DOMAIN,), macs=_support_vectors),
)
