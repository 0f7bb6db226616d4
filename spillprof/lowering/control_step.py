"""Control flow that stays one step: the costs and operands of the bodies that run in it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from spillprof.ir.graph import Graph, Operator, TensorKind
from spillprof.lowering.bodies import Choices
from spillprof.lowering.operators.classical import attribute_bytes
from spillprof.lowering.operators.table import is_pure, stated_assumptions

_LONGEST_PREFIX = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlStep:
    """An operator with bodies as one step, all its trips included."""

    macs: int
    vector_ops: int
    uncosted: int  # operators inside whose multiplications are not counted
    touched_bytes: int  # payload read and written inside
    workspace_bytes: int  # largest sum of live activations beside the operands
    weights: Mapping[str, int]  # payload bytes of those that the bodies bring along
    captures: tuple[str, ...]  # outer tensors that the bodies read
    stated: tuple[str, ...]  # assumptions of the cost rules of operators inside, repeated as often as made
    is_pure: bool  # a function of its operands, without side effects


def control_step(op: Operator, choices: Choices) -> ControlStep:
    """The step of an operator with bodies; branches that are not taken count for nothing."""
    executed = list(_executed(op, choices))
    weights: dict[str, int] = {}
    reads: dict[int, dict[str, None]] = {}  # by body: names of graphs outside, in order of first read
    for body, prefix in reversed(executed):  # innermost first
        captured, found = set(body.captures), dict.fromkeys(_reads(body, choices, reads))
        reads[id(body)] = {name: None for name in found if name in captured}
        weights.update(
            (prefix + name, tensor.nbytes)
            for name in found
            if name not in captured and (tensor := body.tensors[name]).kind is TensorKind.WEIGHT
        )
        weights.update((f"{prefix}{o.name}/attributes", n) for o in body.operators if (n := attribute_bytes(o)))
    operators = [inner for body, _ in executed for inner in body.operators]
    total = choices[id(op)].total
    own = dict.fromkeys(name for index in choices[id(op)].taken for name in reads[id(op.subgraphs[index])])
    return ControlStep(
        macs=total.macs,
        vector_ops=total.vector_ops,
        uncosted=total.uncosted,
        touched_bytes=total.touched_bytes,
        workspace_bytes=total.beside_bytes,
        weights=weights,
        captures=tuple(own),
        stated=tuple(text for inner in operators for text in stated_assumptions(inner)),
        is_pure=all(map(is_pure, operators)),
    )


def _executed(op: Operator, choices: Choices) -> Iterator[tuple[Graph, str]]:
    """Every body that runs, after those around it, with a unique prefix for its weights."""
    stack = [(op, "")]
    while stack:
        owner, prefix = stack.pop()
        for index in choices[id(owner)].taken:
            body = owner.subgraphs[index]
            yield body, prefix
            for number, inner in enumerate(body.operators):
                if inner.subgraphs:
                    start = prefix if len(prefix) < _LONGEST_PREFIX else f"{prefix[: _LONGEST_PREFIX // 2]}~{number}~"
                    stack.append((inner, f"{start}{inner.name}/"))


def _reads(body: Graph, choices: Choices, reads: Mapping[int, Mapping[str, None]]) -> Iterator[str]:
    """Names that a body reads, with repeats; ``reads`` are those of the bodies inside."""
    for op in body.operators:
        yield from filter(None, op.inputs)
        if op.subgraphs:
            for index in choices[id(op)].taken:
                yield from reads[id(op.subgraphs[index])]
    yield from filter(None, body.outputs)
