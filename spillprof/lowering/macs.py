"""Multiply-accumulates of an operator, from the shapes of its operands."""

from dataclasses import dataclass

from spillprof.lowering.costs import Cost, cost_class, mac_rule
from spillprof.lowering.operands import Operands
from spillprof.model.graph import Graph, Operator


@dataclass(frozen=True, slots=True, kw_only=True)
class MacCount:
    """Multiply-accumulates, and how many operators were left out of the count or counted for one iteration."""

    macs: int
    uncosted: int = 0  # operators of unknown cost
    single_iterations: int = 0  # loops of unknown trip count
    branches: int = 0  # conditionals, costed by their larger branch


def count_macs(op: Operator, graph: Graph) -> MacCount:
    """Multiply-accumulates of an operator, the bodies of a control-flow operator included."""
    if op.subgraphs:
        return _control_flow(op, graph)
    macs = operator_macs(op, graph)
    return MacCount(macs=macs or 0, uncosted=int(macs is None))


def operator_macs(op: Operator, graph: Graph) -> int | None:
    """Multiply-accumulates of an operator; None if they cannot be told. Elementwise and data movement have none."""
    if op.subgraphs:
        return _control_flow(op, graph).macs
    rule = mac_rule(op.domain, op.op_type)
    if rule is None:
        return None if cost_class(op.domain, op.op_type) is Cost.UNKNOWN else 0
    try:
        return rule(Operands(op=op, graph=graph))
    except (IndexError, KeyError, ValueError, TypeError, ZeroDivisionError):
        return None  # operands that the rule does not foresee


def body_macs(body: Graph) -> MacCount:
    """Multiply-accumulates of one run of a body."""
    counts = [count_macs(op, body) for op in body.operators]
    return MacCount(
        macs=sum(c.macs for c in counts),
        uncosted=sum(c.uncosted for c in counts),
        single_iterations=sum(c.single_iterations for c in counts),
        branches=sum(c.branches for c in counts),
    )


def _control_flow(op: Operator, graph: Graph) -> MacCount:
    bodies = [body_macs(body) for body in op.subgraphs]
    if op.op_type == "If":
        larger = max(bodies, key=lambda count: count.macs)
        return MacCount(
            macs=larger.macs,
            uncosted=larger.uncosted,
            single_iterations=larger.single_iterations,
            branches=larger.branches + 1,
        )
    trips = _trip_count(op, graph) if op.op_type in ("Loop", "Scan") else 1
    return MacCount(
        macs=sum(c.macs for c in bodies) * (1 if trips is None else trips),
        uncosted=sum(c.uncosted for c in bodies),
        single_iterations=sum(c.single_iterations for c in bodies) + (trips is None),
        branches=sum(c.branches for c in bodies),
    )


def _trip_count(op: Operator, graph: Graph) -> int | None:
    """Iterations of a Loop (the length of its stacked outputs) or Scan (of its scanned axis); None if unknown."""
    try:
        if op.op_type == "Loop":
            carried = len(op.inputs) - 2
            stacked = [name for name in op.outputs[carried:] if name]
            return graph.tensors[stacked[0]].shape[0]
        if graph.opset is not None and graph.opset < 9:
            return None  # Scan had a batch axis then
        scanned = op.attributes["num_scan_inputs"]
        axes = op.attributes.get("scan_input_axes", ())
        axis = int(axes[0]) if isinstance(axes, tuple) and axes else 0
        if not isinstance(scanned, int):
            return None
        return graph.tensors[op.inputs[-scanned]].shape[axis]
    except (IndexError, KeyError):
        return None
