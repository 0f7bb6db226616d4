"""Fusion: the chains that every NPU runs as one operation, and single pairs that the user names.

A pair is legal if the tensor need not be stored and nothing is computed twice:

- it is the only result of an operator, no output of the graph, and exactly one operator reads it, in its order;
- that reader is elementwise: element ``i`` of its result needs element ``i`` of the tensor, and of each other operand
  element ``i`` too, or a broadcast one. So it may run on each piece of the tensor as soon as the piece is computed.

The pair runs in the position of the second operator, where all its operands exist. Like every fused step it reads what
both read, writes what the second writes, does the work of both, and is launched once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from spillprof.ir.errors import UsageError
from spillprof.ir.graph import Operator
from spillprof.lowering.draft import Draft, LoweringTask, Uses, uses_in
from spillprof.lowering.naming import unknown_tensor
from spillprof.lowering.operators.facts import Follower, OperatorFacts
from spillprof.lowering.operators.table import facts_of, is_type

_RULE = "the one operator that reads it must work element by element, on a result that nothing else needs"


def fuse_chains(draft: Draft) -> Draft:
    """The draft with Conv, Gemm and MatMul joined to the bias, scale, BatchNormalization and activation after them.

    A BatchNormalization by itself takes the activation after it. The chain grows while the value between two
    operators has one reader, is no graph output and keeps its number of elements; followers read only weights besides,
    so the step runs in the position of its first operator. ``x * sigmoid(x)`` counts as one
    activation. The sums of an integer product are fused with their conversion to float, and with a scale known before.

    Run after views are resolved: a Reshape inside of a chain does not break it.
    """
    if not any(_leads(task.facts) for task in draft.tasks):
        return draft
    uses = uses_in(draft)
    fused: dict[int, LoweringTask] = {}
    consumed: set[int] = set()
    for i, task in enumerate(draft.tasks):
        if i in consumed or not _leads(task.facts):
            continue
        chain = _chain(i, uses)
        if chain:
            consumed.update(chain)
            fused[i] = _joined(task, [draft.tasks[j] for j in chain], draft)
    tasks = (fused.get(i, task) for i, task in enumerate(draft.tasks) if i not in consumed)
    return replace(draft, tasks=tuple(tasks))


def _chain(first: int, uses: Uses) -> list[int]:
    """Positions of the tasks that join the one at ``first``, in order."""
    tasks = uses.draft.tasks
    leads_with_product = tasks[first].facts.leads
    chain: list[int] = []
    last = first
    while len(tasks[last].outputs) == 1:
        value = tasks[last].outputs[0]
        if value in uses.outputs:
            break
        readers = uses.readers.get(value, ())
        if len(readers) == 1 and (
            _follows(tasks[readers[0]], value, uses.draft, after_product=leads_with_product)
            or _rescales(tasks[readers[0]], value, first, uses)
        ):
            followers = [readers[0]]
        elif _is_swish(readers, value, uses):
            followers = list(readers)
        else:
            break
        chain += followers
        last = followers[-1]
    return chain


def _follows(task: LoweringTask, value: str, draft: Draft, *, after_product: bool) -> bool:
    """Whether the task is a bias, scale, normalisation or activation of ``value`` that reads only weights besides."""
    operands = [name for name in task.inputs if draft.storage(name) == value]
    if len(operands) != 1 or operands[0] in draft.strided or not _same_elements(task, value, draft):
        return False
    if not all(name == operands[0] or draft.is_weight(name) for name in task.inputs):
        return False
    match task.facts.joins:
        case Follower.ACTIVATION:
            return task.inputs[0] == operands[0]
        case Follower.NORMALISATION:
            return after_product and task.inputs[0] == operands[0] and not _trains(task.lead)
        case Follower.SCALING:
            return after_product
        case None:
            return False


def _leads(facts: OperatorFacts) -> bool:
    """Whether an activation may be fused into the operator."""
    return facts.leads or facts.joins is Follower.NORMALISATION


def _trains(op: Operator) -> bool:
    return bool(op.attributes.get("training_mode", 0))


def _rescales(task: LoweringTask, value: str, first: int, uses: Uses) -> bool:
    """Whether the task converts sums of an integer product to float, or scales them by a value known before it."""
    draft = uses.draft
    if not draft.tasks[first].facts.sums_integers or not _same_elements(task, value, draft):
        return False
    storages = [draft.storage(name) for name in task.inputs]
    if storages.count(value) != 1 or not draft.strided.isdisjoint(task.inputs):
        return False
    if is_type(task.lead, "Cast"):
        return True
    return is_type(task.lead, "Mul") and all(
        storage == value or draft.is_weight(storage) or uses.writer.get(storage, -1) < first for storage in storages
    )


def _is_swish(readers: Sequence[int], value: str, uses: Uses) -> bool:
    """Whether the two readers are a Sigmoid of the value and the Mul of the value with that Sigmoid."""
    if len(readers) != 2:
        return False
    sigmoid, mul = (uses.draft.tasks[i] for i in readers)
    if not is_type(sigmoid.lead, "Sigmoid") or not is_type(mul.lead, "Mul"):
        return False
    gate = sigmoid.outputs[0]
    return (
        list(uses.readers.get(gate, ())) == [readers[1]]
        and gate not in uses.outputs
        and sorted(map(uses.draft.storage, mul.inputs)) == sorted((value, gate))
        and uses.draft.strided.isdisjoint((*sigmoid.inputs, *mul.inputs))
        and _same_elements(sigmoid, value, uses.draft)
        and _same_elements(mul, value, uses.draft)
    )


def _same_elements(task: LoweringTask, value: str, draft: Draft) -> bool:
    """Whether the task has one result, of as many elements as ``value``."""
    tensors = draft.graph.tensors
    return len(task.outputs) == 1 and prod(tensors[task.outputs[0]].shape) == prod(tensors[value].shape)


def _joined(lead: LoweringTask, followers: Sequence[LoweringTask], draft: Draft) -> LoweringTask:
    """One task of several, each of which reads the one result of the task before it."""
    tasks = (lead, *followers)
    inner = {name for task in tasks[:-1] for name in task.outputs}
    return LoweringTask(
        lead=lead.lead,
        facts=lead.facts,
        members=tuple(op for task in tasks for op in task.members),
        inputs=tuple(name for task in tasks for name in task.inputs if draft.storage(name) not in inner),
        outputs=tasks[-1].outputs,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two operators that could be one, and the tensor between them."""

    tensor: str
    producer: Operator
    consumer: Operator


def fuse_pairs(draft: Draft, tensors: Sequence[str]) -> Draft:
    """The draft with the operators joined over each of the tensors, one tensor after another.

    A view stands for its storage; a tensor inside of a step is fused already. ``UsageError`` for a tensor over which no
    pair is legal. Run after chains are fused: a fused chain joins as one operator.
    """
    if not tensors:
        return draft
    pairs = _Pairs(draft)
    for name in tensors:
        pairs.join(name)
    return replace(draft, tasks=pairs.tasks)


def legal_pairs(draft: Draft) -> tuple[Pair, ...]:
    """Every pair that is legal by itself, in the order of the first operators."""
    pairs = _Pairs(draft)
    written = [(draft.storage(task.outputs[0]), task) for task in draft.tasks if len(task.outputs) == 1]
    return tuple(
        Pair(tensor=name, producer=task.lead, consumer=pairs.reader(name).lead)
        for name, task in written
        if pairs.obstacle(name) is None
    )


class _Pairs:
    """Tasks joined one pair at a time; each keeps the position of its last operator."""

    def __init__(self, draft: Draft) -> None:
        uses = uses_in(draft)
        self._draft, self._outputs = draft, uses.outputs
        stacks = [task for task in draft.tasks if task.facts.stacks]
        self._stacked = {draft.storage(name) for task in stacks for name in task.inputs}
        self._tasks: list[LoweringTask | None] = list(draft.tasks)
        self._writer = dict(uses.writer)
        self._readers = {name: set(readers) for name, readers in uses.readers.items()}

    @property
    def tasks(self) -> tuple[LoweringTask, ...]:
        return tuple(task for task in self._tasks if task is not None)

    def reader(self, storage: str) -> LoweringTask:
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
        self._tasks[first], self._tasks[second] = None, _joined(producer, (consumer,), self._draft)
        for each in map(self._draft.storage, producer.inputs):
            self._readers[each] = (self._readers[each] - {first}) | {second}
        del self._writer[storage], self._readers[storage]

    def obstacle(self, storage: str) -> str | None:
        """The reason why no pair is legal over a storage; None if one is."""
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
        if producer.lead.name in draft.control_steps or consumer.lead.name in draft.control_steps:
            return "control flow stays one step"
        if producer.facts.stacks:
            return "it collects slices in place"
        if not self._stacked.isdisjoint(map(draft.storage, producer.inputs)):
            return "what it is made of is written over meanwhile"
        if not all(map(_is_pointwise, consumer.members)) or not _same_elements(consumer, storage, draft):
            return f"{_types(consumer)}, which reads it, does not work on it element by element"
        if any(name in draft.strided for name in consumer.inputs if draft.storage(name) == storage):
            return f"{_types(consumer)} reads it in another order"
        return None

    def _is_inside(self, name: str) -> bool:
        """Whether the tensor is an intermediate value of a fused step."""
        return any(name in op.outputs for task in self.tasks for op in task.members)


def _types(task: LoweringTask) -> str:
    """``Conv``, or ``Conv + Add`` for operators that run as one."""
    types = [op.op_type for op in task.members[:4]]
    return " + ".join(types if len(task.members) <= len(types) else [*types, "..."])


def _is_pointwise(op: Operator) -> bool:
    """Whether element i of its result needs only element i of each operand, broadcast operands excepted."""
    facts = facts_of(op)
    return facts.in_place or (facts.joins is Follower.NORMALISATION and not _trains(op))
