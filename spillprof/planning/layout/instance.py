"""A compressed layout problem: sizes in whole units, time in sections.

Only which buffers are live together matters, so time is cut into *sections*: the maximal sets of buffers live at once.
Each buffer covers a run of sections, two buffers conflict if their runs meet, and the load of a section is the sum of
the sizes in it. The largest load is a lower bound on every peak.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd

import numpy as np

from spillprof.ir.arrays import Ints
from spillprof.ir.layout_problem import LayoutProblem


@dataclass(frozen=True, kw_only=True)
class Instance:
    """Buffers of more than 0 bytes, as columns of shape (n,), in the order of the problem."""

    sizes: Ints  # in units
    first: Ints  # section in which it begins
    stop: Ints  # section after its last
    unit_bytes: int
    members: Ints  # position of each buffer in the problem

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def n_sections(self) -> int:
        """How many maximal sets of buffers live at once."""
        return int(self.stop.max(initial=0))

    @cached_property
    def loads(self) -> Ints:
        """Units live in each section. Shape (n_sections,)."""
        change = np.zeros(self.n_sections + 1, dtype=np.int64)
        np.add.at(change, self.first, self.sizes)
        np.subtract.at(change, self.stop, self.sizes)
        return np.cumsum(change)[:-1]

    @property
    def cells(self) -> int:
        """Pairs of a buffer and a section that it covers: the cost of one pass over everything."""
        return int((self.stop - self.first).sum())

    @property
    def lower_bound(self) -> int:
        """Lower bound on every peak, in units: the largest load."""
        return int(self.loads.max(initial=0))

    def part(self, chosen: Ints) -> "Instance":
        """The buffers at the chosen positions, with sections of their own."""
        first, stop = sections(self.first[chosen], self.stop[chosen])
        return Instance(
            sizes=self.sizes[chosen], first=first, stop=stop, unit_bytes=self.unit_bytes, members=self.members[chosen]
        )

    def components(self) -> list["Instance"]:
        """Parts that share no section, earliest first: each can be laid out independently."""
        order = np.lexsort((self.stop, self.first))
        ends = np.maximum.accumulate(self.stop[order])
        cuts = np.flatnonzero(self.first[order][1:] >= ends[:-1]) + 1
        return [self.part(np.sort(chosen)) for chosen in np.split(order, cuts) if len(chosen)]


def instance(problem: LayoutProblem) -> Instance:
    """The instance of a problem: its buffers of more than 0 bytes, sizes rounded up to the alignment."""
    align = problem.alignment_bytes
    kept = [k for k, buffer in enumerate(problem.buffers) if buffer.size_bytes]
    sizes = [-(-problem.buffers[k].size_bytes // align) * align for k in kept]
    unit = gcd(*sizes) or align
    first, stop = sections([problem.buffers[k].lower for k in kept], [problem.buffers[k].upper for k in kept])
    return Instance(
        sizes=np.array(sizes, dtype=np.int64) // unit,
        first=first,
        stop=stop,
        unit_bytes=unit,
        members=np.array(kept, dtype=np.int64),
    )


def sections(lower: Sequence[int] | Ints, upper: Sequence[int] | Ints) -> tuple[Ints, Ints]:
    """(first, stop) section of each time interval. A new section begins with the first start after an end."""
    starts, ends = np.array(lower, dtype=np.int64), np.array(upper, dtype=np.int64)
    opens = np.unique(starts)
    n_ended = np.searchsorted(np.sort(ends), opens, side="right")  # by each moment of a start
    opens = opens[np.concatenate([[True], n_ended[1:] > n_ended[:-1]])] if len(opens) else opens
    first = np.searchsorted(opens, starts, side="right") - 1
    stop = np.searchsorted(opens, ends, side="left")
    return first.astype(np.int64), stop.astype(np.int64)
