"""Builder of the unfolded graph: its operators and tensors, with unique names."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from spillprof.ir.graph import AttributeValue, Graph, Operator, Tensor, TensorKind
from spillprof.lowering.operators.facts import CONTROL_DOMAIN

_LONGEST_PREFIX = 200


class UnfoldedGraph:
    """The unfolded graph so far; methods append slices, stacks and decisions of loops."""

    def __init__(self, graph: Graph) -> None:
        self.operators: list[Operator] = []
        self.tensors: dict[str, Tensor] = dict(graph.tensors)
        self._operator_names = _Names(op.name for op in graph.operators)
        self._tensor_names = _Names(graph.tensors)

    def name(self, wanted: str) -> str:
        """Takes a unique operator name."""
        return self._operator_names.take(wanted)

    def prefix(self, around: str, name: str, part: str) -> str:
        """The prefix of names in a body; one that grows too long is truncated and numbered."""
        text = f"{around}{name}/{part}/" if part else f"{around}{name}/"
        if len(text) <= _LONGEST_PREFIX:
            return text
        return self._operator_names.take(f"{text[: _LONGEST_PREFIX // 2]}~") + "/"

    def tensor(self, prefix: str, tensor: Tensor) -> str:
        """Adds a copy of a tensor and returns its name."""
        name = self._tensor_names.take(prefix + tensor.name)
        kind = tensor.kind if tensor.kind is TensorKind.WEIGHT else TensorKind.ACTIVATION
        self.tensors[name] = replace(tensor, name=name, kind=kind)
        return name

    def scalar(self, prefix: str, name: str, dtype: str, kind: TensorKind) -> str:
        """Adds a scalar and returns its name."""
        return self.tensor(prefix, Tensor(name=name, dtype=dtype, shape=(), kind=kind))

    def constant(self, prefix: str, name: str, dtype: str) -> str:
        """Adds a scalar weight and returns its name."""
        return self.scalar(prefix, name, dtype, TensorKind.WEIGHT)

    def decide(
        self, op: Operator, name: str, inputs: Iterable[str], outputs: tuple[str, ...], holds: Iterable[str] = ()
    ) -> None:
        """Adds the step that evaluates a condition; ``holds`` are kept until then."""
        own = name == op.name  # at the top level the operator itself is gone, so its name is free
        self.operators.append(
            Operator(
                name=name if own else self._operator_names.take(name),
                op_type=op.op_type,
                domain=CONTROL_DOMAIN,
                inputs=tuple(filter(None, inputs)),
                outputs=outputs,
                holds=tuple(holds),
            )
        )

    def add(
        self, wanted: str, op_type: str, inputs: tuple[str, ...], output: str, domain: str = CONTROL_DOMAIN
    ) -> None:
        """Adds an operator with one result, under a unique name."""
        name = self._operator_names.take(wanted)
        self.operators.append(Operator(name=name, op_type=op_type, domain=domain, inputs=inputs, outputs=(output,)))

    def slice_of(self, prefix: str, source: str, part: Tensor, axes: AttributeValue, index: int) -> str:
        """Adds one trip's slice of a scanned tensor, a view if it is contiguous, and returns its name."""
        shape = self.tensors[source].shape
        axis = int(axes[index]) if isinstance(axes, tuple) and index < len(axes) else 0
        is_one_piece = all(size == 1 for size in shape[: axis % max(len(shape), 1)])
        result = self.tensor(prefix, part)
        self.add(f"{prefix}slice", "ScanView" if is_one_piece else "ScanSlice", (source,), result)
        return result

    def stack(
        self, prefix: str, slices: Sequence[str], stacks: Sequence[str], results: Sequence[str], *, is_last: bool
    ) -> list[str]:
        """Adds this trip's slices to the buffers that collect them, and returns the names of the results."""
        after = []
        for part, stack, result in zip(slices, stacks, results, strict=False):
            if not result:
                after.append("")
                continue
            filled = result if is_last else self.tensor(prefix, replace(self.tensors[result], name="stack"))
            self.add(f"{prefix}stack", "ScanAppend", (stack, part) if stack else (part,), filled)
            after.append(filled)
        return after

    def pass_on(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Adds an Identity from each source to its result, unless they are the same tensor."""
        for source, result in pairs:
            if result and source != result:
                self.add(f"{result}/identity", "Identity", (source,), result, domain="")


class _Names:
    """Names in use, and unique new ones."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    def take(self, wanted: str) -> str:
        """Takes the name, with a number appended if it is in use."""
        name = wanted
        while name in self._taken:
            number = self._next.get(wanted, 1)
            self._next[wanted] = number + 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name
