"""Graph: what the model says. Operators, tensors, shapes and types; nothing about memory yet.

Every tensor of a Graph has a concrete shape: front ends resolve symbolic and computed dimensions, or raise.
"""

import hashlib
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum

from spillprof.ir.dtypes import tensor_bytes
from spillprof.ir.fast_init import fast_init

AttributeValue = int | float | str | bytes | tuple[int, ...] | tuple[float, ...] | tuple[str, ...]
"""An operator attribute as plain Python. Tensor-valued attributes are left out; graphs are in ``subgraphs``."""


class TensorKind(StrEnum):
    """Where a tensor comes from."""

    INPUT = "input"  # fed by the caller, in DRAM at the start
    WEIGHT = "weight"  # an initializer or the output of a Constant node: in DRAM at the start
    ACTIVATION = "activation"  # written by an operator


@fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """An SSA value: written by one operator, or present at the start; never changed."""

    name: str
    dtype: str  # a key of DTYPE_BITS, or one of UNSIZED_DTYPES
    shape: tuple[int, ...]
    kind: TensorKind
    elements: tuple[tuple[str, tuple[int, ...]], ...] = ()  # of a sequence or optional: type and shape of what it holds

    @property
    def nbytes(self) -> int:
        """Size in bytes, without alignment or padding. 0 for a sequence of unknown elements."""
        dense = tensor_bytes(self.shape, self.dtype)
        return dense + sum([tensor_bytes(shape, dtype) for dtype, shape in self.elements]) if self.elements else dense


class TripBasis(StrEnum):
    """Where the trip count of a loop comes from."""

    KNOWN = "known"  # from the model, exact
    AT_MOST = "at most"  # from the model, an upper limit: the run may stop earlier
    GIVEN = "given"  # by the user
    ASSUMED = "assumed"  # unknown: ASSUMED_TRIPS


ASSUMED_TRIPS = 2
"""Trip count of a loop of unknown length: two trips have the peak memory of any longer run and carry state once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trips:
    """Trip count of a Loop or Scan."""

    count: int
    basis: TripBasis


@fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One node of the graph."""

    name: str  # never empty, unique within its graph
    op_type: str
    domain: str  # "" is the default ONNX domain
    inputs: tuple[str, ...]  # tensor names; "" for an optional input that is absent
    outputs: tuple[str, ...]  # tensor names; "" for an optional output that is absent
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    captures: tuple[str, ...] = ()  # tensors of enclosing graphs that the subgraphs read: uses of this operator
    subgraphs: tuple["Graph", ...] = ()  # branches of an If, as far as they can run, in attribute order; the body of a
    # Loop or Scan, or one for each of the first trips where sizes change from trip to trip
    subgraph_names: tuple[str, ...] = ()  # the attribute of each: "then_branch", "else_branch" or "body"
    trips: Trips | None = None  # of a Loop or Scan
    is_decided: bool = False  # of an If with a constant condition: only the branch that runs is planned for
    holds: tuple[
        str, ...
    ] = ()  # tensors that it does not read but that stay until it has run: a branch that is not taken might read them


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """A fact that the model file does not state and that is taken as true, and how often. Every report shows it."""

    what: str
    count: int


def model_fingerprint(sha256: str, external_sha256: str) -> str:
    """SHA-256 of the model file and of what was read from other files ("": nothing)."""
    return hashlib.sha256(f"{sha256} {external_sha256}".encode()).hexdigest() if external_sha256 else sha256


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """A model (or the body of a control-flow operator) with every tensor sized."""

    name: str
    operators: tuple[Operator, ...]  # in file order; lowering makes the order topological
    tensors: Mapping[str, Tensor]  # every tensor named by an operator, an input or an output
    inputs: tuple[str, ...]  # without initializers, even where the file lists them as inputs
    outputs: tuple[str, ...]  # in declared order; a name may repeat
    captures: tuple[str, ...] = ()  # of a body: tensors of enclosing graphs that it reads
    opset: int | None = None  # of the default domain
    path: str | None = None  # as the user gave it
    sha256: str | None = None  # of the file's bytes
    external_sha256: str | None = None  # of contents of other files that sizes depend on
    dims: Mapping[str, int] = field(default_factory=dict)  # the bindings that were used
    assumptions: tuple[Assumption, ...] = ()
    notes: tuple[str, ...] = ()  # for the user: stale value_info overruled, weights repeated as inputs, ...
    _digest: str = field(default="", init=False, repr=False, compare=False)

    @property
    def digest(self) -> str:
        """Of the contents, computed when first asked for: graphs with one digest are equal, in this process."""
        if not self._digest:
            contents = tuple(getattr(self, f.name) for f in fields(self) if f.init)
            object.__setattr__(
                self, "_digest", hashlib.sha256(pickle.dumps(contents, pickle.HIGHEST_PROTOCOL)).hexdigest()
            )
        return self._digest

    @property
    def fingerprint(self) -> str:
        """SHA-256 of everything that its figures depend on; "" for a graph that was not read from a file."""
        return model_fingerprint(self.sha256 or "", self.external_sha256 or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bindings:
    """Sizes of dimensions, shapes of tensors, and how control flow runs."""

    dims: Mapping[str, int] = field(default_factory=dict)  # by symbol, or by ``INPUT[AXIS]``
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # by input
    batch: int | None = None  # first axis of every input, where it is open
    assume: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # by tensor that inference cannot size
    branches: Mapping[str, str] = field(default_factory=dict)  # "then" or "else", by If
    trips: Mapping[str, int] = field(default_factory=dict)  # by Loop; "": every one whose length is left open

    @property
    def key(self) -> tuple[object, ...]:
        """Hashable value, equal for equal bindings in any order."""
        mappings = (self.dims, self.shapes, self.assume, self.branches, self.trips)
        return (*(tuple(sorted((k, _plain(v)) for k, v in m.items())) for m in mappings), self.batch)


def _plain(value: int | str | Sequence[int]) -> int | str | tuple[int, ...]:
    return value if isinstance(value, int | str) else tuple(value)


def written_shape(shape: tuple[int, ...]) -> str:
    """``1x3x224x224``, as the options write it."""
    return "x".join(map(str, shape))
