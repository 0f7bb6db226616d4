"""Pairs the steps of two runs: by name, then by place in the graph. Linear in the steps.

A step's *place* is what it computes from (everything before it) or what it computes for (everything after it), as
nested types and sizes; equal places get equal numbers, so that no hash can collide. Steps that were paired stand for
themselves in the places of their neighbours: an operator between two pairs is found whatever changed elsewhere.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import product

from spillprof.ir.profile import Profile
from spillprof.ir.profile_facts import BufferFact

_LONGEST_NUMBERED = 64
_NUMBERED = re.compile(r"(?:node_|op_|n_)?(.*?)[_.:]?\d+")


class Detail(Enum):
    """What is compared of a step besides its edges."""

    SIZES = "sizes"
    TYPES = "types"


class Skeleton:
    """The steps of a run and the buffers between them. Weights are left out: their policy may differ."""

    def __init__(self, profile: Profile) -> None:
        self.names = [step.name for step in profile.steps]
        self.op_types = [step.op_type for step in profile.steps]
        self.buffers = profile.buffers
        self.reads: list[list[int]] = [[] for _ in profile.steps]
        self.writes: list[list[int]] = [[] for _ in profile.steps]
        self.rank = [0] * len(profile.buffers)  # position among the results of its writer
        for b, buffer in enumerate(profile.buffers):
            if buffer.written_by is not None:
                self.rank[b] = len(self.writes[buffer.written_by])
                self.writes[buffer.written_by].append(b)
            if buffer.kind != "weight":
                for step in buffer.read_by:
                    self.reads[step].append(b)
        self.signatures = {detail: self._signatures(detail) for detail in Detail}

    def _signatures(self, detail: Detail) -> list[Hashable]:
        """Operator type, and kind and size of the results, by step."""
        results = [(b.kind, size_in(b, detail)) for b in self.buffers]
        known: dict[Hashable, Hashable] = {}  # interned, so that comparison is fast
        return [
            known.setdefault(signature, signature)
            for signature in (
                (op_type, tuple(results[b] for b in writes))
                for op_type, writes in zip(self.op_types, self.writes, strict=True)
            )
        ]

    def reliable_names(self) -> list[Hashable]:
        """(name, number of earlier ones), or None for a numbered name: inserting an operator shifts those."""
        seen: defaultdict[str, int] = defaultdict(int)
        keys: list[Hashable] = []
        for name, op_type in zip(self.names, self.op_types, strict=True):
            keys.append(None if _is_numbered(name, op_type) else (name, seen[name]))
            seen[name] += 1
        return keys


class _Interner:
    """Maps equal values to equal numbers."""

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}

    def __call__(self, value: Hashable) -> int:
        """The number of the value."""
        return self._known.setdefault(value, len(self._known))


def _is_numbered(name: str, op_type: str) -> bool:
    """Whether a name is a type and a number, as exporters name nameless operators."""
    if len(name) > _LONGEST_NUMBERED:
        return False
    found = _NUMBERED.fullmatch(name)
    return not name or (found is not None and found[1].strip("_").lower() in ("", "node", "op", op_type.lower()))


def size_in(buffer: BufferFact, detail: Detail) -> int:
    """Bytes of the buffer; 0 if sizes are not compared."""
    return buffer.size_bytes if detail is Detail.SIZES else 0


_LOOKS = ((2, True, True), (1, True, True), (1, True, False), (1, False, True))
"""Last resort: neighbourhoods as (radius in edges, include producers, include consumers), closest first."""

_MOST_ROUNDS = 8
"""Most rounds of the last resort: each may pair neighbours of pairs of the round before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """Pairs of steps and of buffers of two runs. None: no partner."""

    after_of_step: tuple[int | None, ...]  # by step of the run before
    before_of_step: tuple[int | None, ...]  # by step of the run after
    after_of_buffer: tuple[int | None, ...]
    before_of_buffer: tuple[int | None, ...]


def match(before: Profile, after: Profile) -> Pairing:
    """The partner of each step and of each buffer."""
    sides = Skeleton(before), Skeleton(after)
    steps = _Pairing(*sides)
    steps.pair(lambda side: side.reliable_names())
    numbers = _Interner()
    for detail in Detail:
        _pair_by_place(steps, numbers, detail)
    steps.pair(lambda side: [(name, op_type) for name, op_type in zip(side.names, side.op_types, strict=True)])
    for _ in range(_MOST_ROUNDS):
        if not _pair_by_likeness(steps, numbers):
            break
        for detail in Detail:
            _pair_by_end(steps, numbers, detail)
    buffers = _match_buffers(*sides, steps.partner[0])
    return Pairing(
        after_of_step=tuple(steps.partner[0]),
        before_of_step=tuple(steps.partner[1]),
        after_of_buffer=tuple(buffers[0]),
        before_of_buffer=tuple(buffers[1]),
    )


class _Pairing:
    """Builds pairs of steps in rounds."""

    def __init__(self, before: Skeleton, after: Skeleton) -> None:
        self.sides = (before, after)
        self.partner: tuple[list[int | None], list[int | None]] = (
            [None] * len(before.names), [None] * len(after.names)
        )  # fmt: skip

    @property
    def count(self) -> int:
        """Pairs so far."""
        return sum(partner is not None for partner in self.partner[0])

    def pair(self, keys_of: Callable[[Skeleton], Sequence[Hashable]], *, only_even: bool = False) -> None:
        """Pairs remaining steps by equal keys: equal names first, then in order.

        A key of None pairs with nothing. ``only_even``: only where both sides have the same number of steps.
        """
        if any(None not in partners for partners in self.partner):
            return
        waiting = [self._by_key(i, keys_of(side)) for i, side in enumerate(self.sides)]
        for key, old in waiting[0].items():
            new = waiting[1].get(key, [])
            if not new or (only_even and len(old) != len(new)):
                continue
            old, new = self._pair_namesakes(old, new)
            for b, a in zip(old, new, strict=False):
                self._join(b, a)

    def number(self, side: Skeleton, step: int) -> int | None:
        """A number equal for both steps of a pair; None for an unpaired step."""
        if side is self.sides[0]:
            return None if self.partner[0][step] is None else step
        return self.partner[1][step]

    def _by_key(self, which: int, keys: Sequence[Hashable]) -> dict[Hashable, list[int]]:
        found: defaultdict[Hashable, list[int]] = defaultdict(list)
        for step, key in enumerate(keys):
            if key is not None and self.partner[which][step] is None:
                found[key].append(step)
        return found

    def _pair_namesakes(self, old: list[int], new: list[int]) -> tuple[list[int], list[int]]:
        named = {self.sides[0].names[b]: b for b in reversed(old)}
        rest = []
        for a in new:
            b = named.pop(self.sides[1].names[a], None)
            if b is None:
                rest.append(a)
            else:
                self._join(b, a)
        return [b for b in old if self.partner[0][b] is None], rest

    def _join(self, before: int, after: int) -> None:
        self.partner[0][before] = after
        self.partner[1][after] = before


def _pair_by_place(steps: _Pairing, numbers: _Interner, detail: Detail) -> None:
    """Pairs steps with equal ancestors and equal descendants, then with one of the two."""
    if not all(side.buffers for side in steps.sides):
        return  # there are no edges
    steps.pair(
        lambda side: [
            None if up is None or down is None else (up, down)
            for up, down in zip(
                _origins(side, steps, numbers, detail), _ends(side, steps, numbers, detail), strict=True
            )
        ]
    )
    _pair_by_end(steps, numbers, detail)


def _pair_by_end(steps: _Pairing, numbers: _Interner, detail: Detail) -> None:
    """Pairs steps with equal ancestors, then steps with equal descendants."""
    if all(side.buffers for side in steps.sides):
        steps.pair(lambda side: _origins(side, steps, numbers, detail))
        steps.pair(lambda side: _ends(side, steps, numbers, detail))


def _pair_by_likeness(steps: _Pairing, numbers: _Interner) -> bool:
    """Pairs steps with equal neighbourhoods, by the first neighbourhood that finds any; False if none does."""
    paired = steps.count
    for detail, look in product(Detail, _LOOKS):
        steps.pair(partial(_neighbourhoods, steps=steps, numbers=numbers, detail=detail, look=look), only_even=True)
        if steps.count > paired:
            return True
    return False


def _origins(side: Skeleton, steps: _Pairing, numbers: _Interner, detail: Detail) -> list[int | None]:
    """A number for the ancestors of each step; None if it reads nothing."""
    places: list[int] = []
    for step in range(len(side.names)):
        sources = []
        for b in side.reads[step]:
            writer = side.buffers[b].written_by
            if writer is None or writer >= step:  # a graph input
                sources.append(numbers(("input", size_in(side.buffers[b], detail))))
            else:
                sources.append(numbers(("from", _known(side, steps, writer, places[writer]), side.rank[b])))
        places.append(numbers(("up", side.signatures[detail][step], tuple(sorted(sources)))))
    return [place if side.reads[step] else None for step, place in enumerate(places)]


def _ends(side: Skeleton, steps: _Pairing, numbers: _Interner, detail: Detail) -> list[int | None]:
    """A number for the descendants of each step; None if its results are not read."""
    places = [0] * len(side.names)
    for step in reversed(range(len(side.names))):
        readers = [
            tuple(sorted(_known(side, steps, r, places[r]) for r in side.buffers[b].read_by if r > step))
            for b in side.writes[step]
        ]
        places[step] = numbers(("down", side.signatures[detail][step], tuple(readers)))
    return [place if _is_wanted(side, step) else None for step, place in enumerate(places)]


def _is_wanted(side: Skeleton, step: int) -> bool:
    return any(side.buffers[b].read_by or side.buffers[b].kind == "output" for b in side.writes[step])


def _neighbourhoods(
    side: Skeleton, steps: _Pairing, numbers: _Interner, detail: Detail, look: tuple[int, bool, bool]
) -> list[int | None]:
    """The neighbourhood of each step, a few edges wide."""
    if not side.buffers:
        return [None] * len(side.names)
    edges, above, below = look
    places = [numbers(("at", side.signatures[detail][step])) for step in range(len(side.names))]
    for _ in range(edges):
        known = [_known(side, steps, step, place) for step, place in enumerate(places)]
        places = [
            numbers(
                (
                    places[step],
                    _above(side, known, step) if above else None,
                    _below(side, known, step) if below else None,
                )
            )
            for step in range(len(side.names))
        ]
    return list(places)


def _above(side: Skeleton, known: Sequence[int], step: int) -> tuple[int, ...]:
    writers = (side.buffers[b].written_by for b in side.reads[step])
    return tuple(sorted(known[w] if w is not None else -1 for w in writers))


def _below(side: Skeleton, known: Sequence[int], step: int) -> tuple[int, ...]:
    return tuple(sorted(known[r] for b in side.writes[step] for r in side.buffers[b].read_by))


def _known(side: Skeleton, steps: _Pairing, step: int, place: int) -> int:
    """Label of a step in the neighbourhoods of others: its pair as a negative number, else its own."""
    pair = steps.number(side, step)
    return place if pair is None else -2 - pair


def _match_buffers(
    before: Skeleton, after: Skeleton, after_of_step: Sequence[int | None]
) -> tuple[list[int | None], list[int | None]]:
    """Pairs buffers by writer; inputs and the rest by name, then inputs in order."""
    old: list[int | None] = [None] * len(before.buffers)
    new: list[int | None] = [None] * len(after.buffers)

    def join(b: int, a: int) -> None:
        old[b], new[a] = a, b

    for step, partner in enumerate(after_of_step):
        if partner is not None:
            for b, a in zip(before.writes[step], after.writes[partner], strict=False):
                join(b, a)
    _join_equal(before, after, old, new, join, lambda buffer: buffer.name)
    _join_equal(
        before, after, old, new, join,
        lambda buffer: (buffer.kind, buffer.size_bytes) if buffer.written_by is None else None,
    )  # fmt: skip
    return old, new


def _join_equal(
    before: Skeleton,
    after: Skeleton,
    old: Sequence[int | None],
    new: Sequence[int | None],
    join: Callable[[int, int], None],
    key_of: Callable[[BufferFact], Hashable],
) -> None:
    waiting: defaultdict[Hashable, list[int]] = defaultdict(list)
    for b in reversed(_alone(old)):
        waiting[key_of(before.buffers[b])].append(b)
    for a in _alone(new):
        key = key_of(after.buffers[a])
        if key is not None and waiting[key]:
            join(waiting[key].pop(), a)


def _alone(partners: Iterable[int | None]) -> list[int]:
    return [i for i, partner in enumerate(partners) if partner is None]
