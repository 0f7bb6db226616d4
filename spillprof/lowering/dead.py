"""Dead operators: those that no graph output needs."""

from dataclasses import replace

from spillprof.lowering.draft import Draft, Task


def remove_dead(draft: Draft) -> Draft:
    """The draft without tasks that no graph output needs, directly or through others.

    A task without outputs exists for its side effect and is kept. A graph without outputs keeps everything.
    """
    if not draft.graph.outputs:
        return replace(draft, notes=(*draft.notes, "the graph declares no outputs: every operator is kept"))
    needed = set(draft.graph.outputs)
    live: list[Task] = []
    for task in reversed(draft.tasks):
        if not task.outputs or not needed.isdisjoint(task.outputs):
            live.append(task)
            needed.update(task.inputs)
    if len(live) == len(draft.tasks):
        return draft
    removed = sum(len(t.members) for t in draft.tasks) - sum(len(t.members) for t in live)
    return replace(draft, tasks=tuple(reversed(live)), removed_operators=draft.removed_operators + removed)
