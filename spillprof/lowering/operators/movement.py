"""Operators that move elements or look them up: views, copies, tables, sequences, and what writes without reading."""

from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from math import prod

from spillprof.ir.graph import Operator
from spillprof.lowering.operators.facts import (
    CONTRIB_DOMAINS,
    CONTROL_DOMAIN,
    PREVIEW_DOMAINS,
    Channels,
    LoopKind,
    OperandShapes,
    OperatorFacts,
    Randomness,
    ViewKind,
)


def one_element_each(o: OperandShapes) -> Mapping[int, int]:
    """Gather and its kin, Slice: one element of the first input for each of the output."""
    return {0: prod(o.output()) if o.has_output(0) else 0}


def _nothing(_: OperandShapes) -> Mapping[int, int]:
    """Shape, Size: the first input's contents do not matter."""
    return {0: 0}


def _one_member(o: OperandShapes) -> Mapping[int, int]:
    """SequenceAt: one of the tensors that the sequence holds."""
    tensors, op = o.graph.tensors, o.op
    return {0: tensors[op.outputs[0]].nbytes} if tensors[op.inputs[0]].elements else {}


def _new_slice(o: OperandShapes) -> Mapping[int, int]:
    """A slice more on a stack: the slices that it holds already are not read."""
    return {0: 0} if len(o.op.inputs) > 1 else {}


def _embeddings(o: OperandShapes) -> Mapping[int, int]:
    """EmbedLayerNormalization: a row of each of the three tables for each token."""
    embedded = prod(o.output())
    return {2: embedded, 3: embedded, 4: embedded}


def _quantised_rows(o: OperandShapes) -> Mapping[int, int]:
    """GatherBlockQuantized: rows of the table, of its scales and of its zero points, in the same proportion."""
    written = prod(o.output())
    packed, dtype = o.op.attributes.get("bits", 4), o.graph.tensors[o.op.inputs[0]].dtype
    per_byte = 8 // packed if isinstance(packed, int) and packed in (2, 4) and "int8" in dtype else 1
    table = prod(o.input(0)) * per_byte
    share = min(Fraction(written, table), Fraction(1)) if table else Fraction(1)
    partial = [i for i in (0, 2, 3) if o.has_input(i)]
    return {i: -(-prod(o.input(i)) * share.numerator // share.denominator) for i in partial}


def _is_blocked_layout(op: Operator) -> bool:
    return op.domain == "com.microsoft.nchwc"


_elementwise = partial(OperatorFacts, loop=LoopKind.ELEMENTWISE)
_concatenation = partial(OperatorFacts, loop=LoopKind.CONCATENATION)
_transpose = partial(OperatorFacts, loop=LoopKind.TRANSPOSE)
_lookup = partial(OperatorFacts, loop=LoopKind.LOOKUP)

COPIES = (
    _elementwise(types="Reshape Squeeze Unsqueeze Flatten", view=ViewKind.WHOLE),
    _elementwise(types="Identity", view=ViewKind.WHOLE, channels=Channels.KEPT),
    _elementwise(types="ExpandDims", domains=CONTRIB_DOMAINS),
    _elementwise(types="Expand", channels=Channels.KEPT),
    _elementwise(types="Trilu", domains=CONTRIB_DOMAINS),
    _concatenation(types="Concat CenterCropPad Tile", channels=Channels.RESIZED),
    _concatenation(types="Pad", domains=CONTRIB_DOMAINS, channels=Channels.RESIZED),
    _concatenation(types="QLinearConcat", domains=CONTRIB_DOMAINS, channels=Channels.RESIZED, quantised=True),
    _concatenation(types="Split", view=ViewKind.STRIDED, channels=Channels.RESIZED),
    _concatenation(types="Slice", view=ViewKind.STRIDED, reads=one_element_each, channels=Channels.RESIZED),
    _transpose(types="Transpose", view=ViewKind.STRIDED),
    _transpose(types="DepthToSpace SpaceToDepth", channels=Channels.MAP),
    _transpose(
        types="ReorderInput", domains=CONTRIB_DOMAINS, channels=Channels.BLOCKED,
        assumption="channels of the NCHWc layout come in blocks of 16", assumed_of=_is_blocked_layout,
    ),
    _transpose(types="ReorderOutput", domains=CONTRIB_DOMAINS, channels=Channels.BLOCKED),
)  # fmt: skip

LOOKUPS = (
    _lookup(types="Gather GatherElements", reads=one_element_each),
    _lookup(types="GatherND TorchEmbedding", domains=CONTRIB_DOMAINS, reads=one_element_each),
    _lookup(types="GatherBlockQuantized", domains=CONTRIB_DOMAINS, reads=_quantised_rows, quantised=True),
    _lookup(types="EmbedLayerNormalization QEmbedLayerNormalization", domains=CONTRIB_DOMAINS, reads=_embeddings),
    _lookup(types="SequenceAt", reads=_one_member),
    OperatorFacts(types="Shape Size", reads=_nothing, reads_shape=True, keeps_float=True),
    OperatorFacts(types="SequenceLength", reads=_nothing),
)  # fmt: skip

SCANS = (
    OperatorFacts(types="ScanSlice", domains=(CONTROL_DOMAIN,), view=ViewKind.STRIDED, reads=one_element_each),
    OperatorFacts(types="ScanView", domains=(CONTROL_DOMAIN,), view=ViewKind.PART, reads=one_element_each),
    OperatorFacts(types="ScanAppend", domains=(CONTROL_DOMAIN,), stacks=True, reads=_new_slice),
)
"""What loops do with the slices that they scan and collect, once they are unfolded."""

OTHERS = (
    OperatorFacts(types="If Loop Scan", runs_bodies=True, keeps_float=True),
    OperatorFacts(types="SequenceMap", runs_bodies=True),
    OperatorFacts(types="Constant", keeps_float=True),
    OperatorFacts(
        types="RandomNormal RandomUniform RandomNormalLike RandomUniformLike Bernoulli Multinomial",
        random=Randomness.ALWAYS,
    ),
    OperatorFacts(types="Sampling", random=Randomness.IN_TRAINING),
    OperatorFacts(
        types="MurmurHash3 NGramRepeatBlock Range RelativePositionBias RemovePadding RestorePadding SampleOp "
        "UnfoldTensor Unique",
        domains=CONTRIB_DOMAINS,
    ),
    _elementwise(types="Adagrad Adam Momentum", domains=PREVIEW_DOMAINS),
)
