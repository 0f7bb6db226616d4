"""The axis of a tensor that holds channels, which a target with ``channel_align`` stores in whole groups.

Convolutions, pooling and other operators on maps define it for their image and their result. It propagates from there,
in both directions, through operators that keep the axes: elementwise ones, normalisations, Concat, Resize, ... Matrix
products, Reshape and Transpose stop it, so that the heads of an attention are no channels.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from math import prod

from spillprof.ir.graph import Operator
from spillprof.lowering.draft import Draft, LoweringTask
from spillprof.lowering.operators.facts import Channels
from spillprof.lowering.operators.table import facts_of

_NHWC_DOMAIN = "com.ms.internal.nhwc"


def holds_channels_last(op: Operator) -> bool:
    """Whether the operator's maps are in NHWC layout."""
    return op.domain == _NHWC_DOMAIN or facts_of(op).channels_last or bool(op.attributes.get("channels_last"))


def channel_axes(draft: Draft) -> Mapping[str, int]:
    """The channel axis of each tensor that has one, by name. All have rank 3 at least."""
    return _Axes(draft).found


class _Axes:
    def __init__(self, draft: Draft) -> None:
        self._draft, self._tensors = draft, draft.graph.tensors
        self.found: dict[str, int] = {}
        self._fresh: deque[str] = deque()
        for task in draft.tasks:
            for name, axis in self._stated(task):
                self._hold(name, axis)
        if self.found:
            self._spread()

    def _stated(self, task: LoweringTask) -> Iterator[tuple[str, int]]:
        """Tensors whose channel axis the task's operator defines."""
        op, image = task.lead, task.inputs[:1]
        rule = task.facts.channel_rule
        if rule is Channels.MAP:
            last = holds_channels_last(op)
            for name in (*image, *task.outputs):
                yield name, self._rank(name) - 1 if last else 1
        elif rule is Channels.BLOCKED:
            last = holds_channels_last(op)
            for name, is_blocked in ((n, op.op_type == "ReorderOutput") for n in image):
                yield name, self._rank(name) - 1 if last and not is_blocked else 1
            for name in task.outputs:
                yield name, self._rank(name) - 1 if last and op.op_type == "ReorderOutput" else 1

    def _spread(self) -> None:
        """Propagates to all operands and results of operators that keep the axes. Each task is visited once."""
        tasks_of: dict[str, list[int]] = defaultdict(list)
        for i, task in enumerate(self._draft.tasks):
            if self._leaves_axes(task):
                for name in {*task.inputs, *task.outputs}:
                    tasks_of[name].append(i)
        names_of: dict[str, list[str]] = defaultdict(list)  # of the same elements in the same shape
        for view, storage in self._draft.views.items():
            if self._tensors[view].shape == self._tensors[storage].shape and view not in self._draft.strided:
                names_of[view].append(storage)
                names_of[storage].append(view)
        done: set[tuple[int, int, int]] = set()
        while self._fresh:
            name = self._fresh.popleft()
            axis, shape = self.found[name], self._tensors[name].shape
            for other in names_of[name]:
                self._hold(other, axis)
            for i in tasks_of[name]:
                task = self._draft.tasks[i]
                any_number = task.facts.channel_rule is Channels.RESIZED
                key = i, axis, -1 if any_number else shape[axis]
                if key in done:
                    continue
                done.add(key)
                for other in (*task.inputs, *task.outputs):
                    of_other = self._tensors[other].shape
                    if len(of_other) == len(shape) and (any_number or of_other[axis] == shape[axis]):
                        self._hold(other, axis)

    def _leaves_axes(self, task: LoweringTask) -> bool:
        """Whether operands and results have their channels on the same axis, as operands of a fused activation have."""
        lead, *rest = map(facts_of, task.members)
        if lead.channel_rule is Channels.MAP:
            return any(facts.in_place for facts in rest)
        return all(facts.channel_rule in (Channels.KEPT, Channels.RESIZED) or facts.stacks for facts in (lead, *rest))

    def _hold(self, name: str, axis: int) -> None:
        if name in self.found or self._rank(name) < 3 or self._draft.is_weight(name):
            return
        if prod(self._tensors[name].shape) > 0:
            self.found[name] = axis
            self._fresh.append(name)

    def _rank(self, name: str) -> int:
        return len(self._tensors[name].shape)
