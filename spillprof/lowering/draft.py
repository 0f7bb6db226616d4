"""Draft: a Graph on its way to a Program. Every pass takes a Draft and returns one; the first sorts the operators."""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import pairwise

from spillprof.ir.errors import ModelError
from spillprof.ir.fast_init import fast_init
from spillprof.ir.graph import Graph, Operator, TensorKind
from spillprof.ir.program import ControlFlow
from spillprof.lowering.control_step import ControlStep
from spillprof.lowering.operators.facts import OperatorFacts
from spillprof.lowering.operators.table import facts_of


@fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class LoweringTask:
    """Operators that run as one step, and the tensors that it reads and writes."""

    lead: Operator  # gives the step its name and type
    facts: OperatorFacts  # the row of ``lead``
    members: tuple[Operator, ...]  # all that run in it, in order
    inputs: tuple[str, ...]  # those present, in operand order, then captures and held tensors; may repeat
    outputs: tuple[str, ...]  # those present

    @property
    def operands(self) -> tuple[str, ...]:
        """The ``inputs`` that it reads, without those that it only holds."""
        held = len(self.lead.holds)
        return self.inputs[:-held] if held else self.inputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Scheduled tasks over the tensors of a graph."""

    graph: Graph
    tasks: tuple[LoweringTask, ...]  # topological order
    weights: Mapping[str, int]  # tensors known before the run: payload bytes in DRAM
    views: Mapping[str, str] = field(
        default_factory=dict
    )  # the tensor whose storage each view shares, never itself a view
    strided: frozenset[str] = frozenset()  # views of a part of their storage, or in another order
    control_steps: Mapping[str, ControlStep] = field(default_factory=dict)  # by operator name
    control_flow: tuple[ControlFlow, ...] = ()
    folded_operators: int = 0
    removed_operators: int = 0
    notes: tuple[str, ...] = ()

    def storage(self, tensor: str) -> str:
        """The tensor that was written first into the storage of ``tensor``."""
        return self.views.get(tensor, tensor)

    def is_weight(self, tensor: str) -> bool:
        """Whether the tensor is known before the run."""
        return self.views.get(tensor, tensor) in self.weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """The writer and readers of each storage, as positions in ``draft.tasks``, and the storages of graph outputs."""

    draft: Draft
    writer: Mapping[str, int]
    readers: Mapping[str, Sequence[int]]
    outputs: frozenset[str]


def uses_in(draft: Draft) -> Uses:
    """The uses of each storage of the draft."""
    readers: dict[str, list[int]] = defaultdict(list)
    for i, task in enumerate(draft.tasks):
        for storage in dict.fromkeys(map(draft.storage, task.inputs)):
            readers[storage].append(i)
    writer = {draft.storage(name): i for i, task in enumerate(draft.tasks) for name in task.outputs}
    outputs = frozenset(map(draft.storage, draft.graph.outputs))
    return Uses(draft=draft, writer=writer, readers=readers, outputs=outputs)


def first_draft(graph: Graph) -> Draft:
    """One task an operator, in file order made topological; nothing folded, fused or shared yet.

    An operator that only defines weights (Constant) is no task: its value is in DRAM already. ``ModelError`` if a
    tensor is written twice, read but never written, or needs itself.
    """
    weights = {name: tensor.nbytes for name, tensor in graph.tensors.items() if tensor.kind is TensorKind.WEIGHT}
    tasks = [_task_of(op) for op in graph.operators if not (weights and _defines_weights(op, weights))]
    present = {*graph.inputs, *(name for name, t in graph.tensors.items() if t.kind is not TensorKind.ACTIVATION)}
    if _runs_as_it_is(graph, tasks, present):
        return Draft(graph=graph, tasks=tuple(tasks), weights=weights, notes=graph.notes)
    writers = _writers(tasks)
    _check_reads(graph, tasks, writers, present)
    order = _topological_order(tasks, writers)
    notes = graph.notes
    if any(a > b for a, b in pairwise(order)):
        notes = (*notes, "operators are not in topological order in the file: sorted, file order kept where possible")
    return Draft(graph=graph, tasks=tuple(tasks[i] for i in order), weights=weights, notes=notes)


def _runs_as_it_is(graph: Graph, tasks: Sequence[LoweringTask], present: Set[str]) -> bool:
    """Whether each task reads only tensors written before it, and no tensor is written twice."""
    there = set(present)
    written = 0
    for task in tasks:
        if not there.issuperset(task.inputs):
            return False
        there.update(task.outputs)
        written += len(task.outputs)
    return len(there) == len(present) + written and there.issuperset(graph.outputs)


def _writers(tasks: Sequence[LoweringTask]) -> dict[str, int]:
    writers: dict[str, int] = {}
    for i, task in enumerate(tasks):
        for name in task.outputs:
            if name in writers:
                where = [f"operator '{tasks[j].lead.name}'" for j in (writers[name], i)]
                raise ModelError(f"tensor '{name}' is written twice", where=where)
            writers[name] = i
    return writers


def _check_reads(graph: Graph, tasks: Sequence[LoweringTask], writers: dict[str, int], present: Set[str]) -> None:
    for task in tasks:
        for name in task.inputs:
            if name not in writers and name not in present:
                raise ModelError(f"tensor '{name}' is read but never written", where=[f"operator '{task.lead.name}'"])
    for name in graph.outputs:
        if name not in writers and name not in present:
            raise ModelError(f"graph output '{name}' is never written")


def _topological_order(tasks: Sequence[LoweringTask], writers: dict[str, int]) -> list[int]:
    """Indices of tasks in topological order; of ready tasks, the first of the file (Kahn's algorithm, a heap)."""
    if all(writers.get(name, -1) < i for i, task in enumerate(tasks) for name in task.inputs):
        return list(range(len(tasks)))
    needs = [{writers[name] for name in task.inputs if name in writers} for task in tasks]
    readers: list[list[int]] = [[] for _ in tasks]
    for i, need in enumerate(needs):
        for j in need:
            readers[j].append(i)
    missing = [len(need) for need in needs]
    ready = [i for i, count in enumerate(missing) if count == 0]
    heapify(ready)
    order: list[int] = []
    while ready:
        i = heappop(ready)
        order.append(i)
        for reader in readers[i]:
            missing[reader] -= 1
            if missing[reader] == 0:
                heappush(ready, reader)
    if len(order) < len(tasks):
        stuck = next(i for i, count in enumerate(missing) if count > 0)
        raise ModelError(
            "the graph has a cycle", where=[f"operator '{tasks[_on_cycle(stuck, needs, missing)].lead.name}'"]
        )
    return order


def _on_cycle(start: int, needs: Sequence[set[int]], missing: Sequence[int]) -> int:
    """An operator of a cycle: follows unmet dependences from one that never became ready until one repeats."""
    seen: set[int] = set()
    while start not in seen:
        seen.add(start)
        start = min(j for j in needs[start] if missing[j] > 0)
    return start


def _defines_weights(op: Operator, weights: Mapping[str, int]) -> bool:
    written = _present(op.outputs)
    return bool(written) and written[0] in weights and all(name in weights for name in written)


def _task_of(op: Operator) -> LoweringTask:
    """A task of one operator."""
    inputs = (*op.inputs, *op.captures, *op.holds)
    facts = facts_of(op)
    return LoweringTask(lead=op, facts=facts, members=(op,), inputs=_present(inputs), outputs=_present(op.outputs))


def _present(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(filter(None, names)) if "" in names else names
