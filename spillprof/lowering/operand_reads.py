"""What a task reads of its operands: whole tensors or shares of them, activations and weights."""

from collections.abc import Mapping
from fractions import Fraction
from math import prod
from typing import NamedTuple

from spillprof.ir.graph import Graph, Tensor
from spillprof.lowering.draft import Draft, LoweringTask
from spillprof.lowering.operators.classical import attribute_bytes
from spillprof.lowering.operators.table import elements_read
from spillprof.lowering.options import WeightsPolicy

_ALL_WHOLE: Mapping[str, Fraction] = {}


def parts_read(task: LoweringTask, graph: Graph) -> Mapping[str, Fraction]:
    """Shares of the tensors that a task reads in part; several readings of one tensor add up.

    Repeated rows are counted, up to the size of the tensor: a share is at most 1.
    """
    if task.facts.reads is None:
        return _ALL_WHOLE
    elements = elements_read(task.facts.reads, task.lead, graph)
    shares: dict[str, Fraction] = {}
    present = [i for i, name in enumerate(task.lead.inputs) if name]
    for position, name in enumerate(task.inputs):
        index = present[position] if position < len(present) else None  # after the lead's: scales, captures
        share = Fraction(1)
        if index is not None and index in elements:
            held = _held(graph.tensors[task.lead.inputs[index]])
            share = Fraction(min(elements[index], held), held) if held else Fraction(0)
        shares[name] = min(shares.get(name, Fraction(0)) + share, Fraction(1))
    return {name: share for name, share in shares.items() if share < 1}


def _held(tensor: Tensor) -> int:
    """Elements of a tensor; of a sequence, its bytes."""
    return tensor.nbytes if tensor.elements else prod(tensor.shape)


class WeightReads(NamedTuple):
    """Distinct weights that a task reads, by name: payload bytes that it moves."""

    whole: Mapping[str, int]  # operands
    in_part: Mapping[str, int]  # never kept on-chip

    @property
    def read_bytes(self) -> int:
        """Bytes that the task reads of all of them."""
        return sum(self.whole.values()) + sum(self.in_part.values())

    def streamed_bytes(self, policy: WeightsPolicy) -> int:
        """Bytes through the weight staging area: all under ``stream``, partial reads under ``cached``."""
        if policy is WeightsPolicy.STREAM:
            return self.read_bytes
        return sum(self.in_part.values()) if policy is WeightsPolicy.CACHED else 0


_NOTHING: Mapping[str, int] = {}
NO_WEIGHTS = WeightReads(whole=_NOTHING, in_part=_NOTHING)


def weight_reads(task: LoweringTask, draft: Draft, parts: Mapping[str, Fraction]) -> WeightReads:
    """The weights that a task reads, those of its bodies included if it is control flow in one step.

    ``parts``: the shares of tensors that it reads in part.
    """
    views, stored = draft.views, draft.weights
    whole: dict[str, int] = {}
    for name in task.operands:
        storage = views.get(name, name)
        if storage in stored:
            whole[storage] = stored[storage]
    in_part = _in_part(task, draft, parts) if parts and whole else _NOTHING
    for name in in_part:
        del whole[name]
    if draft.control_steps and task.lead.name in draft.control_steps:
        whole |= draft.control_steps[task.lead.name].weights
    for op in task.members:
        if nbytes := attribute_bytes(op):
            whole[f"{op.name}/attributes"] = nbytes
    return WeightReads(whole, in_part) if whole or in_part else NO_WEIGHTS


def _in_part(task: LoweringTask, draft: Draft, parts: Mapping[str, Fraction]) -> dict[str, int]:
    """Bytes of the weights of which all readings together are less than the whole."""
    read: dict[str, int] = {}
    for name in dict.fromkeys(task.inputs):
        storage = draft.storage(name)
        if storage in draft.weights:
            read[storage] = read.get(storage, 0) + part_of(draft.weights[storage], parts.get(name))
    return {name: nbytes for name, nbytes in read.items() if nbytes < draft.weights[name]}


def part_of(nbytes: int, share: Fraction | None) -> int:
    """A share of so many bytes, rounded up; all of them if no share is given."""
    return nbytes if share is None else -(-nbytes * share.numerator // share.denominator)
