"""The columns of an operator's row."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from spillprof.ir.graph import Graph, Operator

STANDARD_DOMAINS = ("", "ai.onnx")
CONTRIB_DOMAINS = ("com.microsoft", "com.microsoft.nchwc", "com.ms.internal.nhwc")
ML_DOMAIN = "ai.onnx.ml"
PREVIEW_DOMAINS = ("ai.onnx.preview", "ai.onnx.preview.training")
CONTROL_DOMAIN = "spillprof.control"
"""Operators of our own that stand where control flow was unfolded: decisions, slices and stacks of loops."""

KNOWN_DOMAINS = frozenset({*STANDARD_DOMAINS, *CONTRIB_DOMAINS, *PREVIEW_DOMAINS, ML_DOMAIN, CONTROL_DOMAIN})
"""Domains whose operators are pure functions of their inputs, and agree on what a type means."""

TensorShape = tuple[int, ...]


class LoopKind(StrEnum):
    """The loop nest that computes an operator: what a tiling of it may cut."""

    CONVOLUTION = "convolution"  # rows and columns of the output, output channels, input channels
    PRODUCT = "product"  # M, N, K and batch
    POOLING = "pooling"  # rows and channels, each channel by itself: pooling, interpolation
    ELEMENTWISE = "elementwise"  # any axes, each element once; copies and broadcasts too
    CONCATENATION = "concatenation"  # blocks copied side by side, into one tensor or out of one
    REDUCTION = "reduction"  # the outer axes; the reduced axes whole, or in two passes
    LOOKUP = "lookup"  # rows of a table
    TRANSPOSE = "transpose"  # two-dimensional tiles
    OTHER = "other"  # none of these


class ViewKind(StrEnum):
    """How a result can share the storage of the first input."""

    WHOLE = "whole"  # the same elements in the same order; of a Cast, if the types are equal
    STRIDED = "strided"  # some of the elements, or another order: on targets that read with strides
    PART = "part"  # some of the elements in one piece: on every target


class Follower(StrEnum):
    """What an operator is to the product that it is fused to."""

    ACTIVATION = "activation"  # a function of the first input; all its other operands must be weights
    SCALING = "scaling"  # bias and scale: one operand must be a weight
    NORMALISATION = "normalisation"


class Channels(StrEnum):
    """Where an operator's image (the first input) and its results hold channels."""

    MAP = "map"  # by definition on axis 1, or on the last where channels come last
    BLOCKED = "blocked"  # into the blocks of com.microsoft.nchwc, or out of them
    KEPT = "kept"  # on the axis where the operands have them, as long as the rank stays
    RESIZED = "resized"  # on that axis too, but their number may change


class Randomness(StrEnum):
    """When an operator draws random numbers."""

    ALWAYS = "always"
    IN_TRAINING = "in training"  # or when it samples


@dataclass(frozen=True, slots=True, kw_only=True)
class OperandShapes:
    """Shapes and attributes of one operator, for its rules. Absent operands raise ``KeyError`` or ``IndexError``."""

    op: Operator
    graph: Graph

    def input(self, index: int) -> TensorShape:
        """Shape of an input."""
        return self.graph.tensors[self.op.inputs[index]].shape

    def output(self, index: int = 0) -> TensorShape:
        """Shape of an output."""
        return self.graph.tensors[self.op.outputs[index]].shape

    def has_input(self, index: int) -> bool:
        """Whether an optional input is given."""
        return index < len(self.op.inputs) and bool(self.op.inputs[index])

    def has_output(self, index: int) -> bool:
        """Whether an optional output is given."""
        return index < len(self.op.outputs) and bool(self.op.outputs[index])

    def integer(self, attribute: str, default: int = 0) -> int:
        """An integer attribute. ``TypeError`` if it is something else."""
        value = self.op.attributes.get(attribute, default)
        if not isinstance(value, int):
            raise TypeError(attribute)
        return value

    def text(self, attribute: str) -> str:
        """A text attribute, "" if absent."""
        value = self.op.attributes.get(attribute, "")
        return value.decode() if isinstance(value, bytes) else str(value)

    def length(self, attribute: str) -> int:
        """Elements of a list attribute, 0 if absent."""
        value = self.op.attributes.get(attribute, ())
        return len(value) if isinstance(value, tuple) else 1


MacRule = Callable[[OperandShapes], int]
KindRule = Callable[[OperandShapes], str]
"""The kind of product, of ``PRODUCT_KINDS``: products of one kind reach the same share of the peak."""
VectorRule = Callable[[OperandShapes, bool], int]
"""Operations of the vector unit; the flag says whether the operator works on integers of at most 8 bits."""
ReadRule = Callable[[OperandShapes], Mapping[int, int]]
"""Elements that are read at most, by input position. Inputs that it leaves out are read whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorFacts:
    """One row: all that lowering knows of some operator types. The defaults hold for types without a row."""

    types: str  # names of the types, separated by spaces
    domains: tuple[str, ...] = ()  # besides the standard's: those that define the types, so that their cost is known
    loop: LoopKind = LoopKind.OTHER
    macs: MacRule | None = None  # counts multiply-accumulates; None: bytes are its cost
    product_kind: KindRule | None = None  # None: ``default``
    vector_ops: VectorRule | None = None  # beside multiply-accumulates; None: none
    runs_bodies: bool = False  # its cost is that of its subgraphs
    leads: bool = False  # a product or convolution: bias, normalisation and activation are fused into it
    joins: Follower | None = None
    in_place: bool = False  # output element i depends on element i of each operand, broadcast ones apart
    stacks: bool = False  # writes one slice more into the buffer of its first input, always in place
    view: ViewKind | None = None
    reads: ReadRule | None = None  # None: every input whole
    reads_shape: bool = False  # depends on the shape of its input alone
    channels: Channels | None = None
    channels_last: bool = False
    kernel_input: int | None = None  # position of the kernel, for convolutions with a choice of algorithms
    kernel_channels_last: bool = False
    sums_integers: bool = False  # a product of integers: a conversion to float and a scale are fused into it
    quantised: bool = False  # on quantised tensors: the float weights that it reads are scales and biases
    keeps_float: bool = False  # never absorbs the DequantizeLinear and QuantizeLinear around it
    random: Randomness | None = None
    past_input: int | None = None  # position of the keys of earlier tokens
    assumption: str = ""  # what its cost takes as true
    assumed_of: Callable[[Operator], bool] | None = None  # the operators for which that is said; None: all

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the operator types."""
        return tuple(self.types.split())

    @property
    def channel_rule(self) -> Channels | None:
        """``channels``; elementwise operators keep channels where they are."""
        return Channels.KEPT if self.channels is None and self.in_place else self.channels
