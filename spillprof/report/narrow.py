"""What gives way where a terminal is narrow: gaps, then columns that can be spared, never a digit."""

import re
from collections.abc import Sequence

from spillprof.report.text import cells

GLUE = "\ufdd0"
"""Stands for a blank at which no line may break, until the lines are broken. No printable name has it."""

_BEFORE_A_UNIT = re.compile(
    r"(?<=\d) (?=(?:[KMGTPE]iB|[kMGT]?B(?:/s)?|[nµm]?s|[nµmp]?J|%)(?![A-Za-z]))|(?<=\bopset) (?=\d)"
)


def glued(text: str) -> str:
    """``text``, of the same length, in which no number parts from its unit."""
    return _BEFORE_A_UNIT.sub(GLUE, text)


def fitting(rows: Sequence[Sequence[str]], width: int, spared: Sequence[str]) -> tuple[list[int], int]:
    """Columns of a table that fit into ``width``, and the gap between them: 2 or 1.

    The first of ``rows`` is the head. ``spared``: heads of the columns that go, the first first.
    """
    widths = [max(cells(row[i]) for row in rows) for i in range(len(rows[0]))]
    kept = list(range(len(widths)))
    for gone in ["", *spared]:
        kept = [i for i in kept if not gone or rows[0][i] != gone]
        for gap in (2, 1):
            if sum(widths[i] + gap for i in kept) - gap <= width:
                return kept, gap
    return kept, 1
