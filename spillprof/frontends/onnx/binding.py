"""Binds every dimension of the model's inputs to a number."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spillprof.frontends.onnx.elements import DTYPE_OF_ELEMENT, ValueType, check_size, parse_type, tensor_type
from spillprof.frontends.onnx.proto import TensorShapeProto, TypeProto
from spillprof.ir.errors import ModelError, ShapeError, UsageError
from spillprof.ir.graph import Bindings
from spillprof.ir.nearest import nearest

_AXIS_KEY = re.compile(r"(.*)\[(-?\d+)\]", re.DOTALL | re.ASCII)
_LISTED = 8

Axis = int | str | None
"""A known size, a symbol, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundInputs:
    """Input types with all dimensions known, and the size of each symbol."""

    types: Mapping[str, ValueType]
    dims: Mapping[str, int]


def bind_inputs(inputs: Sequence[tuple[str, TypeProto | None]], bindings: Bindings) -> BoundInputs:
    """Sizes of all inputs. ``UsageError`` for bindings that fit nothing, ``ShapeError`` for conflicts and gaps."""
    binder = _Binder(inputs)
    for name, shape in bindings.shapes.items():
        binder.bind_shape(name, shape)
    for key, size in bindings.dims.items():
        binder.bind_dim(key, size)
    if bindings.batch is not None:
        binder.bind_batch(bindings.batch)
    return binder.result()


class _Binder:
    """Sizes of symbols and of unnamed axes."""

    def __init__(self, inputs: Sequence[tuple[str, TypeProto | None]]) -> None:
        self.others: dict[str, TypeProto] = {}  # inputs that are no tensors
        self.dtypes: dict[str, str] = {}
        self.axes: dict[str, list[Axis] | None] = {}  # None: the rank is unknown
        self.sizes: dict[str, int] = {}  # by symbol, and by ``INPUT[AXIS]`` for unnamed axes
        self.sources: dict[str, str] = {}
        for name, proto in inputs:
            self._declare(name, proto)
        self.symbols = {axis for axes in self.axes.values() for axis in axes or () if isinstance(axis, str)}
        self.symbols.update(dim.dim_param for proto in self.others.values() for dim in _inner_dims(proto))

    def _declare(self, name: str, proto: TypeProto | None) -> None:
        stated = None if proto is None else parse_type(proto.SerializeToString())
        if proto is None or stated is None:
            raise ModelError(f"the input '{name}' has no type", hint="export the model again, with types")
        if stated.dtype not in DTYPE_OF_ELEMENT.values():
            self.others[name] = proto
            return
        self.dtypes[name] = stated.dtype
        if stated.shape is None:
            self.axes[name] = None
            return
        self.axes[name] = [
            dim if dim is not None and dim >= 0 else (entry.dim_param or None)
            for dim, entry in zip(stated.shape, proto.tensor_type.shape.dim, strict=True)
        ]

    def bind_shape(self, name: str, shape: Sequence[int]) -> None:
        """Binds the whole shape of one input."""
        if name not in self.axes:
            raise UsageError(f"the model has no input '{name}'", hint=_nearest(name, list(self.axes)))
        option = f"--shape {name}={'x'.join(map(str, shape))}"
        declared = self.axes[name]
        if any(size < 0 for size in shape):
            raise UsageError(f"{option}: a size is negative")
        if declared is None:
            self.axes[name] = list(shape)
            return
        if len(declared) != len(shape):
            what = f"the input '{name}' has {len(declared)} dimensions, not {len(shape)}"
            raise ShapeError(what, where=(option, f"declared: {_written(declared)}"))
        for axis, size in enumerate(shape):
            self._bind_axis(name, axis, size, option)

    def bind_dim(self, key: str, size: int) -> None:
        """Binds a symbol, or one axis of an input."""
        option = f"--dim {key}={size}"
        if size < 0:
            raise UsageError(f"{option}: a size is negative")
        match = _AXIS_KEY.fullmatch(key)
        if key in self.symbols:
            self._set(key, size, option)
        elif match and match[1] in self.axes:
            self._bind_axis(match[1], int(match[2]), size, option)
        else:
            raise UsageError(f"no input has a dimension '{key}'", hint=_nearest(key, self._keys()))

    def bind_batch(self, size: int) -> None:
        """Binds the first axis of every input where it is open."""
        option = f"--batch {size}"
        if size < 0:
            raise UsageError(f"{option}: a size is negative")
        ranked = [(name, axes) for name, axes in self.axes.items() if axes]
        open_inputs = [name for name, axes in ranked if not isinstance(axes[0], int)]
        for name in open_inputs:
            self._bind_axis(name, 0, size, option)
        if not open_inputs and all(axes[0] != size for _, axes in ranked):
            raise UsageError(f"{option} binds nothing: every input's first dimension is fixed")

    def _bind_axis(self, name: str, axis: int, size: int, option: str) -> None:
        axes = self.axes[name]
        if axes is None:
            hint = f"give the whole shape: --shape {name}=1x3x224x224"
            raise UsageError(f"{option}: the input '{name}' has no declared rank", hint=hint)
        if not 0 <= axis < len(axes):
            raise UsageError(f"{option}: the input '{name}' has {len(axes)} dimensions", where=(_written(axes),))
        declared = axes[axis]
        if isinstance(declared, int):
            if declared != size:
                raise ShapeError(
                    f"{option}: that dimension is fixed at {declared}", where=(f"{name}: {_written(axes)}",)
                )
            return
        self._set(declared or f"{name}[{axis}]", size, option)

    def _set(self, key: str, size: int, option: str) -> None:
        if self.sizes.setdefault(key, size) != size:
            what = f"the dimension '{key}' is bound to both {self.sizes[key]} and {size}"
            raise ShapeError(what, where=(self.sources[key], option))
        self.sources.setdefault(key, option)

    def result(self) -> BoundInputs:
        """All input types. ``ShapeError`` lists the options that are missing."""
        types = {name: self._filled(proto) for name, proto in self.others.items()}
        missing: dict[str, str] = {}  # option → where it is needed
        for name, axes in self.axes.items():
            if axes is None:
                missing.setdefault(f"--shape {name}=1x3x224x224", f"{name}: no shape declared")
                continue
            shape = [self._size(name, axis, missing) for axis in range(len(axes))]
            if None not in shape:
                check_size(self.dtypes[name], tuple(size or 0 for size in shape))
            types[name] = tensor_type(self.dtypes[name], tuple(shape))
        if missing:
            places = list(dict.fromkeys(missing.values()))
            more = [f"and {len(places) - _LISTED} more"] if len(places) > _LISTED else []
            what = "the size of an input is open" if len(places) == 1 else f"the sizes of {len(places)} inputs are open"
            hint = "bind it: " + " ".join(quoted(option) for option in list(missing)[:_LISTED])
            raise ShapeError(what, where=(*places[:_LISTED], *more), hint=hint)
        return BoundInputs(types=types, dims=dict(self.sizes))

    def _filled(self, proto: TypeProto) -> ValueType:
        """A sequence, map or optional, its bound symbols replaced."""
        filled = TypeProto()
        filled.CopyFrom(proto)
        for dim in _inner_dims(filled):
            if dim.dim_param in self.sizes:
                dim.dim_value = self.sizes[dim.dim_param]
        known = parse_type(filled.SerializeToString())
        assert known is not None
        return known

    def _size(self, name: str, axis: int, missing: dict[str, str]) -> int | None:
        axes = self.axes[name]
        assert axes is not None
        declared = axes[axis]
        if isinstance(declared, int):
            return declared
        key = declared or f"{name}[{axis}]"
        if key not in self.sizes:
            size = plausible_size(declared or "", axis, len(axes))
            missing.setdefault(f"--dim {key}={size}", f"{name}: {_written(axes)}")
        return self.sizes.get(key)

    def _keys(self) -> list[str]:
        unnamed = [f"{n}[{i}]" for n, axes in self.axes.items() for i, axis in enumerate(axes or ()) if axis is None]
        return [*sorted(self.symbols), *unnamed]


def plausible_size(symbol: str, axis: int, rank: int) -> int:
    """A size to propose for an open dimension, from words in its name, else from its axis and rank."""
    words = [word for word in re.split(r"[^a-z]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", symbol).lower()) if word]
    for size, meant in _SIZE_OF_WORDS:
        if any(word.startswith(meant) or (symbol.isalpha() and word in _LETTERS.get(size, ())) for word in words):
            return size
    if axis == 0 or rank > len(_IMAGE):
        return 1
    return _IMAGE[axis] if rank == len(_IMAGE) else _SEQUENCE


_SEQUENCE, _IMAGE = 128, (1, 3, 224, 224)
_SIZE_OF_WORDS = (
    (1, ("batch",)),
    (_SEQUENCE, ("seq", "len", "token", "past", "total", "time", "frame", "step", "position")),
    (224, ("height", "width", "image")),
    (3, ("channel",)),
)
_LETTERS = {1: ("n", "b", "bs"), _SEQUENCE: ("s", "t", "l"), 224: ("h", "w"), 3: ("c",)}
"""Sizes by prefixes of the words in a symbol's name, and by words of one or two letters."""


def _inner_dims(proto: TypeProto) -> list[TensorShapeProto.Dimension]:
    """Symbolic dimensions of the tensors in a sequence, map or optional."""
    while (kind := proto.WhichOneof("value")) in ("sequence_type", "optional_type", "map_type"):
        inner = getattr(proto, kind)
        proto = inner.value_type if kind == "map_type" else inner.elem_type
    return [dim for dim in proto.tensor_type.shape.dim if dim.dim_param] if kind == "tensor_type" else []


def _nearest(name: str, known: list[str]) -> str:
    close = nearest(name, known, most=3, cutoff=0.4) or known[:_LISTED]
    if not close:
        return "the model leaves none open"
    return "there is " + ", ".join(f"'{k}'" for k in close)


def _written(axes: Sequence[Axis]) -> str:
    return "[" + ", ".join("?" if axis is None else str(axis) for axis in axes[:64]) + "]"


def quoted(option: str) -> str:
    """An option, quoted for a shell."""
    flag, value = option.split(" ", 1)
    return option if re.fullmatch(r"[\w.=,:/@%+-]+", value, re.ASCII) else f'{flag} "{value}"'
