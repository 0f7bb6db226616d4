"""Standard fusion: what every NPU runs as one operation."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from spillprof.lowering.draft import Draft, Task
from spillprof.lowering.families import ACTIVATIONS, LEADERS, SCALINGS, is_one_of

NORMALISATION = frozenset({"BatchNormalization"})
_FIRST = LEADERS | NORMALISATION
_INTEGER_PRODUCTS = frozenset({"MatMulInteger", "ConvInteger"})
_CAST = frozenset({"Cast"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """Who writes and reads each storage: positions in ``draft.tasks``; and the storages that are graph outputs."""

    draft: Draft
    writer: Mapping[str, int]
    readers: Mapping[str, Sequence[int]]
    outputs: frozenset[str]


def fuse_chains(draft: Draft) -> Draft:
    """The draft with Conv, Gemm and MatMul joined to the bias, scale, BatchNormalization and activation after them.

    A BatchNormalization by itself takes the activation after it. The chain grows while the value between two
    operators has one reader, is no graph output and keeps its number of elements; the only other thing that a
    follower may read is weights, so the step runs where its first operator stood. ``x * sigmoid(x)`` counts as one
    activation. The sums of an integer product take in their conversion to float, and the scale that is known before.

    Run after views are resolved: a Reshape inside of a chain does not break it.
    """
    if not draft.has_some_of(_FIRST):
        return draft
    uses = reading(draft)
    fused: dict[int, Task] = {}
    consumed: set[int] = set()
    for i, task in enumerate(draft.tasks):
        if i in consumed or not is_one_of(task.lead, _FIRST):
            continue
        chain = _chain(i, uses)
        if chain:
            consumed.update(chain)
            fused[i] = joined(task, [draft.tasks[j] for j in chain], draft)
    tasks = (fused.get(i, task) for i, task in enumerate(draft.tasks) if i not in consumed)
    return replace(draft, tasks=tuple(tasks))


def reading(draft: Draft) -> Uses:
    """Who writes and reads each storage of the draft."""
    readers: dict[str, list[int]] = defaultdict(list)
    for i, task in enumerate(draft.tasks):
        for storage in dict.fromkeys(map(draft.storage, task.inputs)):
            readers[storage].append(i)
    writer = {draft.storage(name): i for i, task in enumerate(draft.tasks) for name in task.outputs}
    outputs = frozenset(map(draft.storage, draft.graph.outputs))
    return Uses(draft=draft, writer=writer, readers=readers, outputs=outputs)


def _chain(first: int, uses: Uses) -> list[int]:
    """Positions of the tasks that join the one at ``first``, in order."""
    tasks = uses.draft.tasks
    leads_with_product = is_one_of(tasks[first].lead, LEADERS)
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


def _follows(task: Task, value: str, draft: Draft, *, after_product: bool) -> bool:
    """Whether the task is a bias, scale, normalisation or activation of ``value`` that reads only weights besides."""
    operands = [name for name in task.inputs if draft.storage(name) == value]
    if len(operands) != 1 or operands[0] in draft.strided or not same_elements(task, value, draft):
        return False
    if not all(name == operands[0] or draft.is_weight(name) for name in task.inputs):
        return False
    if is_one_of(task.lead, ACTIVATIONS):
        return task.inputs[0] == operands[0]
    if is_one_of(task.lead, NORMALISATION):
        return after_product and task.inputs[0] == operands[0] and not task.lead.attributes.get("training_mode", 0)
    return after_product and is_one_of(task.lead, SCALINGS)


def _rescales(task: Task, value: str, first: int, uses: Uses) -> bool:
    """Whether the task turns sums of an integer product into floats, or scales them by what is known before it."""
    draft = uses.draft
    if not is_one_of(draft.tasks[first].lead, _INTEGER_PRODUCTS) or not same_elements(task, value, draft):
        return False
    storages = [draft.storage(name) for name in task.inputs]
    if storages.count(value) != 1 or not draft.strided.isdisjoint(task.inputs):
        return False
    if is_one_of(task.lead, _CAST):
        return True
    return is_one_of(task.lead, frozenset({"Mul"})) and all(
        storage == value or draft.is_weight(storage) or uses.writer.get(storage, -1) < first for storage in storages
    )


def _is_swish(readers: Sequence[int], value: str, uses: Uses) -> bool:
    """Whether the two readers are a Sigmoid of the value and the Mul of the value with that Sigmoid."""
    if len(readers) != 2:
        return False
    sigmoid, mul = (uses.draft.tasks[i] for i in readers)
    if not is_one_of(sigmoid.lead, frozenset({"Sigmoid"})) or not is_one_of(mul.lead, frozenset({"Mul"})):
        return False
    gate = sigmoid.outputs[0]
    return (
        list(uses.readers.get(gate, ())) == [readers[1]]
        and gate not in uses.outputs
        and sorted(map(uses.draft.storage, mul.inputs)) == sorted((value, gate))
        and uses.draft.strided.isdisjoint((*sigmoid.inputs, *mul.inputs))
        and same_elements(sigmoid, value, uses.draft)
        and same_elements(mul, value, uses.draft)
    )


def same_elements(task: Task, value: str, draft: Draft) -> bool:
    """Whether the task has one result, of as many elements as ``value``."""
    tensors = draft.graph.tensors
    return len(task.outputs) == 1 and prod(tensors[task.outputs[0]].shape) == prod(tensors[value].shape)


def joined(lead: Task, followers: Sequence[Task], draft: Draft) -> Task:
    """One task in place of several, each of which reads the one result of the task before it."""
    tasks = (lead, *followers)
    inner = {name for task in tasks[:-1] for name in task.outputs}
    return Task(
        lead=lead.lead,
        members=tuple(op for task in tasks for op in task.members),
        inputs=tuple(name for task in tasks for name in task.inputs if draft.storage(name) not in inner),
        outputs=tasks[-1].outputs,
    )
