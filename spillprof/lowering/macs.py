"""Multiply-accumulates of an operator, from the shapes of its operands."""

from dataclasses import dataclass
from functools import lru_cache

from spillprof.ir.graph import Graph, Operator
from spillprof.lowering.costs import Cost, cost_class, mac_rule
from spillprof.lowering.operands import Operands


@dataclass(frozen=True, slots=True, kw_only=True)
class MacCount:
    """Multiply-accumulates, and how many operators were left out of the count."""

    macs: int
    uncosted: int = 0  # operators of unknown cost


NO_MACS = MacCount(macs=0)


def count_macs(op: Operator, graph: Graph) -> MacCount:
    """Multiply-accumulates of an operator, without those of bodies inside of it."""
    return _without_rule(op.domain, op.op_type) or _counted(operator_macs(op, graph))


def _counted(macs: int | None) -> MacCount:
    return NO_MACS if macs == 0 else MacCount(macs=macs or 0, uncosted=int(macs is None))


@lru_cache(maxsize=1024)
def _without_rule(domain: str, op_type: str) -> MacCount | None:
    """The count of every operator of a type; None if that depends on its operands."""
    if mac_rule(domain, op_type) is not None:
        return None
    return _counted(None if cost_class(domain, op_type) is Cost.UNKNOWN else 0)


def operator_macs(op: Operator, graph: Graph) -> int | None:
    """Multiply-accumulates of an operator; None if they cannot be told. Elementwise and data movement have none."""
    rule = mac_rule(op.domain, op.op_type)
    if rule is None:
        return None if cost_class(op.domain, op.op_type) is Cost.UNKNOWN else 0
    try:
        return rule(Operands(op=op, graph=graph))
    except (LookupError, ArithmeticError, ValueError, TypeError):
        return None  # operands that the rule does not foresee
