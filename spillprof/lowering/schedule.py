"""The order of the steps: file order, made topological where it is not."""

from collections.abc import Sequence, Set
from heapq import heapify, heappop, heappush
from itertools import pairwise

from spillprof.ir.errors import ModelError
from spillprof.ir.graph import Graph, TensorKind
from spillprof.lowering.draft import Draft, Task, task_of


def first_draft(graph: Graph) -> Draft:
    """One task an operator, in file order made topological; nothing folded, fused or shared yet.

    An operator that only defines weights (Constant) is no task: its value is in DRAM already. ``ModelError`` if a
    tensor is written twice, read but never written, or needs itself.
    """
    weights = {name: tensor.nbytes for name, tensor in graph.tensors.items() if tensor.kind is TensorKind.WEIGHT}
    tasks = [task_of(op) for op in graph.operators]
    if weights:
        tasks = [task for task in tasks if not task.outputs or not all(name in weights for name in task.outputs)]
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


def _runs_as_it_is(graph: Graph, tasks: Sequence[Task], present: Set[str]) -> bool:
    """Whether each task reads only what is there by then, and no tensor is written twice."""
    there = set(present)
    written = 0
    for task in tasks:
        if not there.issuperset(task.inputs):
            return False
        there.update(task.outputs)
        written += len(task.outputs)
    return len(there) == len(present) + written and there.issuperset(graph.outputs)


def _writers(tasks: Sequence[Task]) -> dict[str, int]:
    writers: dict[str, int] = {}
    for i, task in enumerate(tasks):
        for name in task.outputs:
            if name in writers:
                where = [f"operator '{tasks[j].lead.name}'" for j in (writers[name], i)]
                raise ModelError(f"tensor '{name}' is written twice", where=where)
            writers[name] = i
    return writers


def _check_reads(graph: Graph, tasks: Sequence[Task], writers: dict[str, int], present: Set[str]) -> None:
    for task in tasks:
        for name in task.inputs:
            if name not in writers and name not in present:
                raise ModelError(f"tensor '{name}' is read but never written", where=[f"operator '{task.lead.name}'"])
    for name in graph.outputs:
        if name not in writers and name not in present:
            raise ModelError(f"graph output '{name}' is never written")


def _topological_order(tasks: Sequence[Task], writers: dict[str, int]) -> list[int]:
    """Task indices; among those that are ready, the first of the file goes first (Kahn's algorithm, a heap)."""
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
    """An operator of a cycle: walk from one that never became ready to one that it waits for, until one repeats."""
    seen: set[int] = set()
    while start not in seen:
        seen.add(start)
        start = min(j for j in needs[start] if missing[j] > 0)
    return start
