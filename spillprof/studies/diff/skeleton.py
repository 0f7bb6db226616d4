"""A run's steps and the buffers that tie them together, ready to be compared."""

import re
from collections import defaultdict
from collections.abc import Hashable
from enum import Enum

from spillprof.ir.profile import Profile
from spillprof.ir.profile_facts import BufferFact

_LONGEST_NUMBERED = 64
_NUMBERED = re.compile(r"(?:node_|op_|n_)?(.*?)[_.:]?\d+")


class Detail(Enum):
    """What of a step counts besides its edges."""

    SIZES = "sizes"
    TYPES = "types"


class Skeleton:
    """One run's steps, with the buffers that tie them together. Weights are left out: policies move them."""

    def __init__(self, profile: Profile) -> None:
        self.names = [step.name for step in profile.steps]
        self.op_types = [step.op_type for step in profile.steps]
        self.buffers = profile.buffers
        self.reads: list[list[int]] = [[] for _ in profile.steps]
        self.writes: list[list[int]] = [[] for _ in profile.steps]
        self.rank = [0] * len(profile.buffers)  # which of its writer's results a buffer is
        for b, buffer in enumerate(profile.buffers):
            if buffer.written_by is not None:
                self.rank[b] = len(self.writes[buffer.written_by])
                self.writes[buffer.written_by].append(b)
            if buffer.kind != "weight":
                for step in buffer.read_by:
                    self.reads[step].append(b)
        self.signatures = {detail: self._signatures(detail) for detail in Detail}

    def _signatures(self, detail: Detail) -> list[Hashable]:
        """Type of each step, kind and size of its results."""
        results = [(b.kind, size_in(b, detail)) for b in self.buffers]
        known: dict[Hashable, Hashable] = {}  # equal ones are one object: quick to compare
        return [
            known.setdefault(signature, signature)
            for signature in (
                (op_type, tuple(results[b] for b in writes))
                for op_type, writes in zip(self.op_types, self.writes, strict=True)
            )
        ]

    def reliable_names(self) -> list[Hashable]:
        """(name, how many of it came before), or None for a name that only counts: one operator more shifts those."""
        seen: defaultdict[str, int] = defaultdict(int)
        keys: list[Hashable] = []
        for name, op_type in zip(self.names, self.op_types, strict=True):
            keys.append(None if _is_numbered(name, op_type) else (name, seen[name]))
            seen[name] += 1
        return keys


class Numbers:
    """A number for each value; equal values, equal numbers."""

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}

    def __call__(self, value: Hashable) -> int:
        """The number of the value."""
        return self._known.setdefault(value, len(self._known))


def _is_numbered(name: str, op_type: str) -> bool:
    """Whether a name is a type and a number, as exporters and readers call operators that have no name."""
    if len(name) > _LONGEST_NUMBERED:
        return False
    found = _NUMBERED.fullmatch(name)
    return not name or (found is not None and found[1].strip("_").lower() in ("", "node", "op", op_type.lower()))


def size_in(buffer: BufferFact, detail: Detail) -> int:
    """Bytes of the buffer as far as they count."""
    return buffer.size_bytes if detail is Detail.SIZES else 0
