"""Types and small contents of values during the walk, by name, with lookup in enclosing graphs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from spillprof.frontends.onnx.elements import ValueType
from spillprof.frontends.onnx.proto import Array
from spillprof.ir.graph import TensorKind


@dataclass(slots=True, kw_only=True)
class Scope:
    """Types and small contents of values by name; unknown names are looked up in the enclosing graph."""

    parent: "Scope | None" = None
    types: dict[str, ValueType | None] = field(default_factory=dict)  # None: nothing is known
    values: dict[str, Array] = field(default_factory=dict)
    kinds: dict[str, TensorKind] = field(default_factory=dict)
    faults: dict[str, tuple[str, str]] = field(
        default_factory=dict
    )  # operator whose contents are impossible, and the reason
    bounded: set[str] = field(default_factory=set)  # values whose size or contents are an upper bound

    def holder(self, name: str) -> "Scope | None":
        """The innermost scope that defines a name."""
        scope: Scope | None = self
        while scope is not None and name not in scope.types:
            scope = scope.parent
        return scope

    def type_of(self, name: str) -> ValueType | None:
        """The type, None if unknown."""
        scope = self.holder(name)
        return None if scope is None else scope.types[name]

    def value_of(self, name: str) -> Array | None:
        """The contents, None unless known and small."""
        scope = self.holder(name)
        return None if scope is None else scope.values.get(name)

    def fault_of(self, name: str) -> tuple[str, str] | None:
        """The operator that makes a value's contents impossible, and the reason."""
        scope = self.holder(name)
        return None if scope is None else scope.faults.get(name)

    def kind_of(self, name: str) -> TensorKind:
        """The kind of the value; an activation if nothing defines it."""
        scope = self.holder(name)
        return TensorKind.ACTIVATION if scope is None else scope.kinds.get(name, TensorKind.ACTIVATION)

    def is_bounded(self, name: str) -> bool:
        """Whether size or contents are an upper bound, not exact."""
        scope = self.holder(name)
        return scope is not None and name in scope.bounded


_MOST_EXAMPLES = 3


@dataclass(slots=True)
class Tally:
    """Counts of assumptions and notes, in order of appearance."""

    assumptions: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)  # of a note, the first few

    def assume(self, what: str) -> None:
        """Counts an assumption."""
        self.assumptions[what] += 1

    def note(self, what: str, example: str = "") -> None:
        """Counts a note for the user."""
        self.notes[what] += 1
        self._illustrate(what, [example] if example else [])

    def add(self, other: "Tally") -> None:
        """Adds another tally's counts."""
        self.assumptions.update(other.assumptions)
        self.notes.update(other.notes)
        for what, examples in other.examples.items():
            self._illustrate(what, examples)

    def cover(self, other: "Tally") -> None:
        """Raises counts to those of another tally: operators in several trips count once."""
        for mine, others in ((self.assumptions, other.assumptions), (self.notes, other.notes)):
            for what, count in others.items():
                mine[what] = max(mine[what], count)
        for what, examples in other.examples.items():
            self.examples.setdefault(what, examples)

    def texts(self) -> tuple[str, ...]:
        """The notes, each with its count and a few examples."""
        return tuple(self._text(what, count) for what, count in self.notes.items())

    def _illustrate(self, what: str, examples: Sequence[str]) -> None:
        known = self.examples.setdefault(what, [])
        known.extend(examples[: max(_MOST_EXAMPLES - len(known), 0)])

    def _text(self, what: str, count: int) -> str:
        times = "" if count == 1 else f" ({count} times)"
        examples = self.examples.get(what, [])
        more = ", ..." if 0 < len(examples) < count else ""
        return f"{what}{times}{': ' if examples else ''}{', '.join(examples)}{more}"
