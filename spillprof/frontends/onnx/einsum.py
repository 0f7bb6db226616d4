"""Einsum's equation against its operands: onnx's own inference never ends on some that are malformed."""

import re
from collections.abc import Sequence

_TERM = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")


def equation_fault(equation: str, ranks: Sequence[int | None]) -> str:
    """What is wrong with an equation over operands of these ranks (None: unknown); "" if nothing is."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    for term in (*terms, right):
        if not _TERM.fullmatch(term):
            return f"'{term[:40]}' is no term: letters, and at most one ellipsis '...'"
    if len(terms) != len(ranks):
        return f"{len(terms)} terms for {len(ranks)} operands"
    for term, rank in zip(terms, ranks, strict=True):
        letters = len(term.replace("...", ""))
        if rank is not None and (letters > rank or (letters < rank and "..." not in term)):
            return f"the term '{term[:40]}' does not fit an operand with {rank} dimensions"
    if arrow:
        shown = right.replace("...", "")
        if len(set(shown)) != len(shown):
            return f"a letter repeats in the result '{right[:40]}'"
        if unknown := set(right) - set(left):
            return f"the result has '{min(unknown)}', and no operand has it"
    return ""
