"""What the user says about sizes, branches and trips that a model leaves open."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


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
        """The same for bindings that say the same, whatever their order."""
        mappings = (self.dims, self.shapes, self.assume, self.branches, self.trips)
        return (*(tuple(sorted((k, _plain(v)) for k, v in m.items())) for m in mappings), self.batch)


def _plain(value: int | str | Sequence[int]) -> int | str | tuple[int, ...]:
    return value if isinstance(value, int | str) else tuple(value)


def written_shape(shape: tuple[int, ...]) -> str:
    """``1x3x224x224``, as options take it."""
    return "x".join(map(str, shape))
