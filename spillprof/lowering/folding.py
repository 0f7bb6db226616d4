"""Constant folding by structure: what depends on weights alone is a weight. No value is computed."""

from collections.abc import Mapping
from dataclasses import replace

from spillprof.lowering.draft import Draft, Task
from spillprof.lowering.families import KNOWN_DOMAINS, RANDOM, STRIDED_VIEWS, VIEWS, is_one_of
from spillprof.lowering.options import Fuse
from spillprof.model.graph import Graph, Operator

_SHAPES = frozenset({"Shape", "Size"})
_DATA_MOVEMENT = VIEWS | STRIDED_VIEWS


def fold_constants(draft: Draft, fuse: Fuse) -> Draft:
    """The draft without the tasks that read weights alone (or nothing); what they write are weights.

    ``Shape`` and ``Size`` fold whatever they read, since all shapes are concrete. Random operators and operators
    of unknown domains do not fold. A folded tensor takes its own bytes in DRAM; with standard fusion a dequantised
    weight keeps the bytes of its quantised form, also when it is moved about (transposed, split) before its use.
    """
    weights = dict(draft.weights)
    tasks: list[Task] = []
    for task in draft.tasks:
        if not _folds(task, weights):
            tasks.append(task)
            continue
        for name in task.outputs:
            weights[name] = _stored_bytes(name, task, weights, draft.graph, fuse)
    return replace(
        draft,
        tasks=tuple(tasks),
        weights=weights,
        folded_operators=sum(map(_size, draft.tasks)) - sum(map(_size, tasks)),
    )


def _folds(task: Task, weights: Mapping[str, int]) -> bool:
    if not task.outputs or any(op.domain not in KNOWN_DOMAINS or _is_random(op) for op in task.members):
        return False
    return is_one_of(task.lead, _SHAPES) or all(name in weights for name in task.inputs)


def _is_random(op: Operator) -> bool:
    return op.op_type in RANDOM or any(_is_random(inner) for body in op.subgraphs for inner in body.operators)


def _stored_bytes(name: str, task: Task, weights: Mapping[str, int], graph: Graph, fuse: Fuse) -> int:
    nbytes = graph.tensors[name].nbytes
    if fuse is Fuse.NONE or len(task.members) > 1:
        return nbytes
    if is_one_of(task.lead, frozenset({"DequantizeLinear"})):
        return sum(weights[i] for i in dict.fromkeys(task.inputs))
    source = task.lead.inputs[0] if task.lead.inputs else ""
    if is_one_of(task.lead, _DATA_MOVEMENT) and source in weights:
        before = graph.tensors[source]
        if before.dtype == graph.tensors[name].dtype and before.nbytes > 0:
            return -(-weights[source] * nbytes // before.nbytes)
    return nbytes


def _size(task: Task) -> int:
    return len(task.members)
