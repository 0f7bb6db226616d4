"""Weights that a task reads: as a whole, or rows of a table."""

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from spillprof.lowering.costs import attribute_bytes
from spillprof.lowering.draft import Draft, Task
from spillprof.lowering.families import ML_DOMAIN
from spillprof.lowering.options import WeightsPolicy


class WeightReads(NamedTuple):
    """Distinct weights that a task reads, by name: payload bytes that it moves."""

    whole: Mapping[str, int]  # operands
    in_part: Mapping[str, int]  # they only pass through

    @property
    def read_bytes(self) -> int:
        """What the task reads of all of them."""
        return sum(self.whole.values()) + sum(self.in_part.values())

    def streamed_bytes(self, policy: WeightsPolicy) -> int:
        """What passes through the weight staging area: all under ``stream``, under ``cached`` what is read in part."""
        match policy:
            case WeightsPolicy.STREAM:
                return self.read_bytes
            case WeightsPolicy.CACHED:
                return sum(self.in_part.values())
            case WeightsPolicy.RESIDENT:
                return 0


NO_WEIGHTS = WeightReads(whole={}, in_part={})


def weight_reads(task: Task, draft: Draft, parts: Mapping[str, Fraction]) -> WeightReads:
    """The weights of a task; of control flow in one step those of its bodies too.

    ``parts``: the share that it reads of tensors, where that is not all.
    """
    views, stored = draft.views, draft.weights
    read: dict[str, int] = {}
    for name in dict.fromkeys(task.inputs) if parts else task.inputs:
        storage = views.get(name, name)
        if storage in stored:
            whole = stored[storage]
            read[storage] = min(read.get(storage, 0) + part_of(whole, parts.get(name)), whole)
    inner = _inner_weights(task, draft)
    if not read and not inner:
        return NO_WEIGHTS
    in_part = {name: nbytes for name, nbytes in read.items() if nbytes != stored[name]} if parts else {}
    return WeightReads(whole={n: b for n, b in read.items() if n not in in_part} | inner, in_part=in_part)


def part_of(nbytes: int, share: Fraction | None) -> int:
    """A share of so many bytes, rounded up; all of them if no share is given."""
    return nbytes if share is None else -(-nbytes * share.numerator // share.denominator)


def _inner_weights(task: Task, draft: Draft) -> dict[str, int]:
    """Of the bodies of control flow, and those that operators of classical models have in their attributes."""
    block = draft.blocks.get(task.lead.name) if draft.blocks else None
    inner = {} if block is None else dict(block.weights)
    for op in task.members:
        if op.domain == ML_DOMAIN and (nbytes := attribute_bytes(op)):
            inner[f"{op.name}/attributes"] = nbytes
    return inner
