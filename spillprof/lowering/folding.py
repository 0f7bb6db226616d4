"""Constant folding by structure, and dead code: tasks on weights alone are weights. No value is computed."""

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from spillprof.ir.graph import Graph
from spillprof.lowering.draft import Draft, LoweringTask
from spillprof.lowering.operators.facts import CONTROL_DOMAIN, LoopKind, ViewKind
from spillprof.lowering.operators.table import is_pure
from spillprof.lowering.options import Fuse, LoweringOptions, Views

_WHOLE, _STRIDED = _MOVES = ViewKind.WHOLE, ViewKind.STRIDED  # module names are looked up faster than enum members


def fold_constants(draft: Draft, options: LoweringOptions) -> Draft:
    """The draft without the tasks that read weights alone (or nothing); their results are weights.

    ``Shape`` and ``Size`` fold whatever they read, since all shapes are concrete. Random operators and operators
    of unknown domains do not fold. A folded tensor takes its own bytes in DRAM, with these exceptions:

    - A weight renamed, reshaped or transposed is that weight, if views are shared: tied weights are stored once.
    - With standard fusion, a weight computed element by element from a narrower one (dequantised, widened, scaled)
      keeps the bytes of what it is computed from, and so does a part of it: quantised weights stay quantised.
    """
    weights = dict(draft.weights)
    views = dict(draft.views)
    tasks: list[LoweringTask] = []
    for task in draft.tasks:
        if not (_reads_weights_alone(task, weights, views) and _may_fold(task, draft)):
            tasks.append(task)
        elif options.views is Views.SHARE and _rearranges(task, draft.graph):
            views[task.outputs[0]] = views.get(task.inputs[0], task.inputs[0])
        else:
            for name in task.outputs:
                weights[name] = _stored_bytes(name, task, weights, views, draft.graph, options.fuse)
    if len(tasks) == len(draft.tasks):
        return draft
    folded = sum(len(t.members) for t in draft.tasks) - sum(len(t.members) for t in tasks)
    return replace(draft, tasks=tuple(tasks), weights=weights, views=views, folded_operators=folded)


def _reads_weights_alone(task: LoweringTask, weights: Mapping[str, int], views: Mapping[str, str]) -> bool:
    for name in task.operands:
        if name not in weights and views.get(name, name) not in weights:
            return task.facts.reads_shape
    return True


def _may_fold(task: LoweringTask, draft: Draft) -> bool:
    if not task.outputs and task.lead.domain != CONTROL_DOMAIN:
        return False
    if task.lead.name in draft.control_steps and not draft.control_steps[task.lead.name].is_pure:
        return False
    return all(map(is_pure, task.members))


def _rearranges(task: LoweringTask, graph: Graph) -> bool:
    """Whether the only output has the elements of the first input, unchanged but for their order."""
    facts = task.facts
    reorders = facts.view is _WHOLE or (facts.view is _STRIDED and facts.loop is LoopKind.TRANSPOSE)
    if not reorders or len(task.members) > 1 or len(task.outputs) > 1 or not task.inputs:
        return False
    source, result = graph.tensors[task.inputs[0]], graph.tensors[task.outputs[0]]
    return (source.dtype, source.nbytes) == (result.dtype, result.nbytes)


def _stored_bytes(
    name: str, task: LoweringTask, weights: Mapping[str, int], views: Mapping[str, str], graph: Graph, fuse: Fuse
) -> int:
    result = graph.tensors[name]
    if fuse is Fuse.NONE or len(task.members) > 1 or not task.inputs:
        return result.nbytes
    sources = [graph.tensors[i] for i in dict.fromkeys(task.inputs)]
    facts = task.facts
    if facts.in_place and any(prod(s.shape) == prod(result.shape) for s in sources):
        return min(result.nbytes, sum(weights[views.get(s.name, s.name)] for s in sources))
    source = sources[0]
    storage = views.get(source.name, source.name)
    if facts.view in _MOVES and storage in weights and source.dtype == result.dtype:
        # The share of the stored form that the result is of the source: all of it, or a slice.
        return -(-weights[storage] * result.nbytes // source.nbytes) if source.nbytes > 0 else result.nbytes
    return result.nbytes


def remove_dead(draft: Draft) -> Draft:
    """The draft without dead tasks: those that no graph output depends on.

    A task without outputs exists for its side effect and is kept. A graph without outputs keeps everything.
    """
    if not draft.graph.outputs:
        return replace(draft, notes=(*draft.notes, "the graph declares no outputs: every operator is kept"))
    needed = set(draft.graph.outputs)
    live: list[LoweringTask] = []
    for task in reversed(draft.tasks):
        if not task.outputs or not needed.isdisjoint(task.outputs):
            live.append(task)
            needed.update(task.inputs)
    if len(live) == len(draft.tasks):
        return draft
    removed = sum(len(t.members) for t in draft.tasks) - sum(len(t.members) for t in live)
    return replace(draft, tasks=tuple(reversed(live)), removed_operators=draft.removed_operators + removed)
