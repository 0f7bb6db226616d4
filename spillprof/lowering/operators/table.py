"""The table of operators: registration, look-up, and what follows from a row: costs, reads, assumptions.

A row goes into the table of its kind (``products``, ``attention``, ``elementwise``, ``movement``, ``classical``);
``register`` adds one from outside of the package. All passes ask ``facts_of``.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import product

from spillprof.ir.graph import Graph, Operator
from spillprof.ir.target_fields import DEFAULT_KIND
from spillprof.lowering.operators.attention import ATTENTION
from spillprof.lowering.operators.classical import ATTRIBUTE_BYTES, CLASSICAL, attribute_bytes
from spillprof.lowering.operators.elementwise import ELEMENTWISE, POOLING, REDUCTIONS
from spillprof.lowering.operators.facts import (
    CONTRIB_DOMAINS,
    CONTROL_DOMAIN,
    KNOWN_DOMAINS,
    ML_DOMAIN,
    STANDARD_DOMAINS,
    OperandShapes,
    OperatorFacts,
    Randomness,
    ReadRule,
)
from spillprof.lowering.operators.movement import COPIES, LOOKUPS, OTHERS, SCANS
from spillprof.lowering.operators.products import CONVOLUTIONS, PRODUCTS
from spillprof.lowering.operators.vector_ops import is_quantised

_COPIED_PAST = "attention operators copy the keys and values of the past, none are appended in place"
_NO_ROW = OperatorFacts(types="")
_RULE_FAILS = (LookupError, ArithmeticError, ValueError, TypeError)
"""What a rule raises for operands that it does not foresee."""


class CostClass(StrEnum):
    """What the compute time of an operator comes from, besides its launch."""

    COUNTED = "counted"  # multiply-accumulates and bytes
    BYTES = "bytes"  # elementwise, reductions, data movement, comparisons: bytes read and written
    BODIES = "bodies"  # what its subgraphs cost
    UNKNOWN = "unknown"  # timed by bytes alone, and counted as an assumption


@dataclass(frozen=True, slots=True, kw_only=True)
class MacCount:
    """Multiply-accumulates, and how many operators were left out of the count."""

    macs: int
    uncosted: int = 0  # operators of unknown cost
    kind: str = DEFAULT_KIND  # of product


_NO_MACS, _UNCOSTED = MacCount(macs=0), MacCount(macs=0, uncosted=1)

_ALWAYS = Randomness.ALWAYS  # module names are looked up faster than enum members

_rows: dict[tuple[str, str], OperatorFacts] = {}


def register(row: OperatorFacts) -> None:
    """Adds an operator's row. ``ValueError`` if a domain has one for the type already.

    Known domains agree on what a type means, so a row for one of them holds in all; a row of another domain holds
    there alone.
    """
    domains = row.domains if row.domains and KNOWN_DOMAINS.isdisjoint(row.domains) else sorted(KNOWN_DOMAINS)
    keys = list(product(domains, row.names))
    for domain, name in keys:
        if (domain, name) in _rows:
            raise ValueError(f"operator {name} of domain '{domain}' has a row already")
    _rows.update(dict.fromkeys(keys, row))


for _table in (
    CONVOLUTIONS, PRODUCTS, ATTENTION, ELEMENTWISE, REDUCTIONS, POOLING, COPIES, LOOKUPS, SCANS, OTHERS, CLASSICAL,
):  # fmt: skip
    for _row in _table:
        register(_row)


def facts_of(op: Operator) -> OperatorFacts:
    """The row of an operator; one of defaults alone where its type has none."""
    return _rows.get((op.domain, op.op_type), _NO_ROW)


def known_rows() -> Mapping[str, OperatorFacts]:
    """The rows of the known domains, by operator type."""
    return {name: row for (domain, name), row in _rows.items() if domain == ""}


def is_known(op: Operator) -> bool:
    """Whether the operator is a pure function of its inputs; one of an unknown domain may have side effects."""
    return op.domain in KNOWN_DOMAINS or (op.domain, op.op_type) in _rows


def is_pure(op: Operator) -> bool:
    """Whether the result depends on the operands alone, as far as known; bodies are not looked at."""
    row = _rows.get((op.domain, op.op_type))
    return op.domain in KNOWN_DOMAINS if row is None else row.random is not _ALWAYS


def is_type(op: Operator, *types: str) -> bool:
    """Whether the operator is of one of these types, in a domain where types mean what they say."""
    return op.op_type in types and op.domain in KNOWN_DOMAINS


def cost_class(domain: str, op_type: str) -> CostClass:
    """How the cost of an operator type is known."""
    return _cost_class(_rows.get((domain, op_type), _NO_ROW), domain)


def _cost_class(row: OperatorFacts, domain: str) -> CostClass:
    if row.runs_bodies and domain in STANDARD_DOMAINS:
        return CostClass.BODIES
    if row.macs is not None:
        return CostClass.COUNTED
    if domain in STANDARD_DOMAINS or domain == CONTROL_DOMAIN or domain in row.domains:
        return CostClass.BYTES
    return CostClass.UNKNOWN


def count_macs(op: Operator, graph: Graph) -> MacCount:
    """Multiply-accumulates of an operator, without those of its bodies. Elementwise and data movement have none."""
    row = facts_of(op)
    if row.macs is None:
        return _UNCOSTED if _cost_class(row, op.domain) is CostClass.UNKNOWN else _NO_MACS
    shapes = OperandShapes(op=op, graph=graph)
    try:
        macs = row.macs(shapes)
    except _RULE_FAILS:
        return _UNCOSTED
    return MacCount(macs=macs, kind=_product_kind(row, shapes))


def _product_kind(row: OperatorFacts, shapes: OperandShapes) -> str:
    if row.product_kind is None:
        return DEFAULT_KIND
    try:
        return row.product_kind(shapes)
    except _RULE_FAILS:
        return DEFAULT_KIND


def count_vector_ops(op: Operator, graph: Graph, dtype: str) -> int:
    """Operations of the vector unit of an operator that works on this type, without those of its bodies.

    0 for data movement and for what has no rule: bytes are its time.
    """
    rule = facts_of(op).vector_ops
    if rule is None:
        return 0
    try:
        return rule(OperandShapes(op=op, graph=graph), is_quantised(dtype))
    except _RULE_FAILS:
        return 0


def elements_read(rule: ReadRule, op: Operator, graph: Graph) -> Mapping[int, int]:
    """Elements that the operator reads at most, by position of the inputs that it may read in part.

    Of a sequence, its bytes. ``rule``: the ``reads`` of its row.
    """
    try:
        return rule(OperandShapes(op=op, graph=graph))
    except _RULE_FAILS:
        return {}


def stated_assumptions(op: Operator) -> Iterable[str]:
    """What sizes and costs take as true, for an operator whose definition leaves it open."""
    row = facts_of(op)
    is_open = row.assumption or row.past_input is not None or op.domain == ML_DOMAIN
    return _stated(op, row) if is_open else ()


def _stated(op: Operator, row: OperatorFacts) -> Iterator[str]:
    past = row.past_input
    if past is not None and op.domain in CONTRIB_DOMAINS and past < len(op.inputs) and op.inputs[past]:
        yield _COPIED_PAST
    if attribute_bytes(op):
        yield ATTRIBUTE_BYTES
    if row.assumption and (row.assumed_of is None or row.assumed_of(op)):
        yield row.assumption
