"""Fusion of one pair: the operator that makes a tensor joins the one that reads it, and the tensor never exists.

A pair is legal if nothing has to be kept of the tensor and nothing computed twice:

- it is the only result of an operator, no output of the graph, and one other operator alone reads it, in its order;
- that one works element by element: element ``i`` of its result needs element ``i`` of the tensor, and of each other
  operand element ``i`` too, or a broadcast one. So it may run on each piece of the tensor as soon as it is made.

The pair runs where the second operator stood, as all that it reads is there by then. Apart from that it is what every
fused step is: it reads what both read, writes what the second writes, does the work of both, and is launched once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from spillprof.ir.errors import UsageError
from spillprof.ir.graph import Operator
from spillprof.lowering.draft import Draft, Task
from spillprof.lowering.families import ELEMENTWISE, STACKS, is_one_of
from spillprof.lowering.fusion import NORMALISATION, joined, reading, same_elements
from spillprof.lowering.naming import unknown_tensor

_RULE = "the one operator that reads it must work element by element, on a result that nothing else needs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two operators that could be one, and the tensor between them."""

    tensor: str
    producer: Operator
    consumer: Operator


def fuse_pairs(draft: Draft, tensors: Sequence[str]) -> Draft:
    """The draft with the operators joined over each of the tensors, one tensor after another.

    A view stands for what it is stored in; a tensor inside of a step is fused over already. ``UsageError`` for a
    tensor over which no pair is legal. Run after chains are fused: what they made one operator joins as one.
    """
    if not tensors:
        return draft
    pairs = _Pairs(draft)
    for name in tensors:
        pairs.join(name)
    return replace(draft, tasks=pairs.tasks)


def legal_pairs(draft: Draft) -> tuple[Pair, ...]:
    """Every pair of the draft that is legal by itself, in the order of the first operators."""
    pairs = _Pairs(draft)
    written = [(draft.storage(task.outputs[0]), task) for task in draft.tasks if len(task.outputs) == 1]
    return tuple(
        Pair(tensor=name, producer=task.lead, consumer=pairs.reader(name).lead)
        for name, task in written
        if pairs.obstacle(name) is None
    )


class _Pairs:
    """Tasks that are joined one pair at a time; each keeps the place of its last."""

    def __init__(self, draft: Draft) -> None:
        uses = reading(draft)
        self._draft, self._outputs = draft, uses.outputs
        stacks = [task for task in draft.tasks if is_one_of(task.lead, STACKS)]
        self._stacked = {draft.storage(name) for task in stacks for name in task.inputs}
        self._tasks: list[Task | None] = list(draft.tasks)
        self._writer = dict(uses.writer)
        self._readers = {name: set(readers) for name, readers in uses.readers.items()}

    @property
    def tasks(self) -> tuple[Task, ...]:
        return tuple(task for task in self._tasks if task is not None)

    def reader(self, storage: str) -> Task:
        """The one task that reads a storage."""
        (reader,) = self._readers[storage]
        task = self._tasks[reader]
        assert task is not None
        return task

    def join(self, name: str) -> None:
        storage = self._draft.storage(name)
        if storage not in self._writer and self._is_inside(name):
            return
        why = self.obstacle(storage)
        if why is not None:
            if name not in self._draft.graph.tensors:
                known = (*self._writer, *self._draft.views)
                raise unknown_tensor(f"cannot fuse over '{name}': the model has no such tensor", name, known)
            raise UsageError(f"cannot fuse over tensor '{name}': {why}", hint=_RULE)
        first = self._writer[storage]
        (second,) = self._readers[storage]
        producer, consumer = self._tasks[first], self._tasks[second]
        assert producer is not None
        assert consumer is not None
        self._tasks[first], self._tasks[second] = None, joined(producer, (consumer,), self._draft)
        for each in map(self._draft.storage, producer.inputs):
            self._readers[each] = (self._readers[each] - {first}) | {second}
        del self._writer[storage], self._readers[storage]

    def obstacle(self, storage: str) -> str | None:
        """Why no pair is legal over a storage; None if one is."""
        draft = self._draft
        if storage not in self._writer:
            return "no operator of the run makes it"
        producer, readers = self._tasks[self._writer[storage]], self._readers.get(storage, set())
        assert producer is not None
        if storage in self._outputs:
            return "it is an output of the graph"
        if len(readers) != 1:
            return f"{len(readers) or 'no'} operators read it"
        if len(producer.outputs) != 1:
            return "the operator that makes it has other results too"
        consumer = self.reader(storage)
        if producer.lead.name in draft.blocks or consumer.lead.name in draft.blocks:
            return "control flow stays one step"
        if is_one_of(producer.lead, STACKS):
            return "it collects slices in place"
        if not self._stacked.isdisjoint(map(draft.storage, producer.inputs)):
            return "what it is made of is written over meanwhile"
        if not all(map(_is_pointwise, consumer.members)) or not same_elements(consumer, storage, draft):
            return f"{_types(consumer)}, which reads it, does not work on it element by element"
        if any(name in draft.strided for name in consumer.inputs if draft.storage(name) == storage):
            return f"{_types(consumer)} reads it in another order"
        return None

    def _is_inside(self, name: str) -> bool:
        """Whether a step makes the tensor on its way to its result."""
        return any(name in op.outputs for task in self.tasks for op in task.members)


def _types(task: Task) -> str:
    """``Conv``, or ``Conv + Add`` for operators that run as one."""
    types = [op.op_type for op in task.members[:4]]
    return " + ".join(types if len(task.members) <= len(types) else [*types, "..."])


def _is_pointwise(op: Operator) -> bool:
    """Whether element i of its result needs element i of each operand alone, operands that are broadcast apart."""
    normalises = is_one_of(op, NORMALISATION) and not op.attributes.get("training_mode", 0)
    return is_one_of(op, ELEMENTWISE) or normalises
