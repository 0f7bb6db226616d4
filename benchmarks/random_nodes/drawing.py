"""One random node with its inputs, and what is drawn for it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

import numpy as np
import onnx
import onnx.defs
from numpy.typing import NDArray
from onnx import helper, numpy_helper

Array = NDArray[Any]
FLOAT, INT32, INT64, BOOL, UINT8, INT8 = np.float32, np.int32, np.int64, np.bool_, np.uint8, np.int8
LAST_OPSET = 24
"""Of those that the runtime's operators are taken from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """An input: what is in it, and whether it is stored in the model or fed."""

    array: Array
    is_stored: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A node, its inputs (None: absent), and the operator set that it is of."""

    op_type: str
    version: int
    inputs: Sequence[Operand | None]
    attributes: dict[str, Any] = field(default_factory=dict)
    n_outputs: int = 1
    domain: str = ""

    def model(self) -> bytes:
        """The node alone in a model; what is fed is an input of the graph with its shape, outputs say nothing."""
        names = [f"i{i}" if operand is not None else "" for i, operand in enumerate(self.inputs)]
        outputs = [f"o{i}" for i in range(self.n_outputs)]
        attributes = {name: setting for name, setting in self.attributes.items() if setting is not None}
        node = helper.make_node(self.op_type, names, outputs, domain=self.domain, **attributes)
        given = [(name, operand) for name, operand in zip(names, self.inputs, strict=True) if operand is not None]
        fed = [
            helper.make_tensor_value_info(name, element_of(o.array), o.array.shape)
            for name, o in given
            if not o.is_stored
        ]
        stored = [numpy_helper.from_array(o.array, name) for name, o in given if o.is_stored]
        ends = [onnx.ValueInfoProto(name=name) for name in outputs]
        imports = [helper.make_opsetid("", self.version if self.domain == "" else 17)]
        imports += [helper.make_opsetid(self.domain, self.version)] if self.domain else []
        graph = helper.make_graph([node], "g", fed, ends, stored)
        return helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString()

    def feeds(self) -> dict[str, Array]:
        """What is fed, by name."""
        return {f"i{i}": o.array for i, o in enumerate(self.inputs) if o is not None and not o.is_stored}

    def written(self) -> str:
        """For people."""
        shown = ["-" if o is None else f"{o.array.dtype}{list(o.array.shape)}{_values(o)}" for o in self.inputs]
        return f"{self.op_type}-{self.version} {', '.join(shown)} {self.attributes}"


def _values(operand: Operand) -> str:
    small = operand.array.size <= 8 and operand.array.dtype != FLOAT
    return f"{'=' if operand.is_stored else '~'}{operand.array.tolist()}" if small else ""


def element_of(array: Array) -> int:
    """ONNX's number of the element type."""
    return onnx.TensorProto.STRING if array.dtype == object else int(helper.np_dtype_to_tensor_dtype(array.dtype))


class Draw(Random):
    """Random sizes, values and settings."""

    def maybe(self, chance: float = 0.5) -> bool:
        """True with that chance."""
        return self.random() < chance

    def shape(
        self, least: int = 0, most: int = 4, *, low: int = 1, high: int = 5, empty: float = 0.03
    ) -> tuple[int, ...]:
        """Sizes of so many axes; now and then one is 0."""
        return tuple(0 if self.maybe(empty) else self.randint(low, high) for _ in range(self.randint(least, most)))

    def some(self, count: int, low: int, high: int) -> list[int]:
        """So many numbers."""
        return [self.randint(low, high) for _ in range(count)]

    def axis(self, rank: int) -> int:
        """Of a tensor of so many axes, counted from either end."""
        return self.randint(-rank, rank - 1) if rank else 0

    def axes(self, rank: int, least: int = 0) -> list[int]:
        """Different axes, counted from either end."""
        chosen = self.sample(range(rank), self.randint(min(least, rank), rank))
        return [a - rank if self.maybe(0.3) else a for a in chosen]

    def spread(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape that broadcasts to another one."""
        kept = [1 if self.maybe(0.3) else size for size in shape]
        return tuple(kept[self.randint(0, len(kept)) :] if self.maybe(0.4) else kept)

    def pair(self, least: int = 0, most: int = 4) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Two shapes that broadcast to a third."""
        shape = self.shape(least, most)
        pair = [self.spread(shape), self.spread(shape)]
        self.shuffle(pair)
        return pair[0], pair[1]

    def version(self, op_type: str) -> int:
        """One of those in which the operator changed."""
        return self.choice(versions(op_type))

    def fed(self, shape: Sequence[int], dtype: Any = FLOAT, low: int = 0, high: int = 3) -> Operand:
        """An input of the graph."""
        return Operand(array=self.array(shape, dtype, low, high))

    def stored(self, values: Any, dtype: Any = INT64) -> Operand:
        """In the model."""
        return Operand(array=np.array(values, dtype), is_stored=True)

    def deciding(self, values: Any, dtype: Any = INT64, chance: float = 0.85) -> Operand:
        """Values that sizes follow from: mostly in the model."""
        return Operand(array=np.array(values, dtype), is_stored=self.maybe(chance))

    def array(self, shape: Sequence[int], dtype: Any = FLOAT, low: int = 0, high: int = 3) -> Array:
        """Small whole numbers of a type."""
        count = int(np.prod(shape, dtype=np.int64))
        return np.array([self.randint(low, high) for _ in range(count)]).astype(dtype).reshape(shape)

    def real(self, *more: Any) -> Any:
        """A type of floats, mostly float32."""
        return FLOAT if self.maybe(0.7) else self.choice([np.float64, np.float16, *more])

    def number(self) -> Any:
        """A type of numbers, mostly float32."""
        return FLOAT if self.maybe(0.5) else self.choice([np.float64, np.float16, INT32, INT64, UINT8, INT8])


@cache
def versions(op_type: str, domain: str = "") -> list[int]:
    """Operator sets in which an operator changed."""
    schemas = onnx.defs.get_all_schemas_with_history()
    found = {s.since_version for s in schemas if s.name == op_type and s.domain == domain}
    return sorted(v for v in found if v <= LAST_OPSET)


Recipe = Callable[[Draw], Case]
RECIPES: dict[str, Recipe] = {}
"""By operator type, that of a vendor behind its domain: what draws a node."""


def recipe(*op_types: str) -> Callable[[Callable[[Draw, str], Case]], Callable[[Draw, str], Case]]:
    """Registers what draws nodes of these types."""

    def register(draw_node: Callable[[Draw, str], Case]) -> Callable[[Draw, str], Case]:
        for op_type in op_types:
            RECIPES[op_type] = lambda draw, op_type=op_type: draw_node(draw, op_type)  # type: ignore[misc]
        return draw_node

    return register


def node(draw: Draw, op_type: str, *inputs: Operand | None, n_outputs: int = 1, **attributes: Any) -> Case:
    """A node of the standard, of some version."""
    version = attributes.pop("version", None) or draw.version(op_type)
    return Case(op_type=op_type, version=version, inputs=inputs, attributes=attributes, n_outputs=n_outputs)


def vendor(op_type: str, *inputs: Operand | None, n_outputs: int = 1, **attributes: Any) -> Case:
    """A node of ``com.microsoft``."""
    kind = op_type.removeprefix("com.microsoft.")
    return Case(
        op_type=kind, version=1, inputs=inputs, attributes=attributes, n_outputs=n_outputs, domain="com.microsoft"
    )
