"""What gives way where a terminal is narrow: gaps, then columns that can be spared, never a digit."""

import re
import textwrap
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


def wrapped(text: str, width: int, *, first: str = "", others: str = "") -> list[str]:
    """``text`` in lines of ``width`` columns, none of which parts a number from its unit; ``first`` and ``others``
    stand before the lines."""
    lines = textwrap.wrap(glued(text), width, initial_indent=first, subsequent_indent=others)
    return [line.replace(GLUE, " ") for line in lines]


def least_width(rows: Sequence[Sequence[str]], *, gap: int = 1) -> int:
    """Columns of the terminal that a table takes with nothing cut."""
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    return sum(widths) + gap * (len(widths) - 1)


def fitting(rows: Sequence[Sequence[str]], width: int, spared: Sequence[str]) -> tuple[list[int], int]:
    """Columns of a table that fit into ``width``, and the gap between them: 2 or 1.

    The first of ``rows`` is the head. ``spared``: heads of the columns that go, the first first.
    """
    kept = list(range(len(rows[0])))
    for gone in [None, *spared]:
        kept = [i for i in kept if rows[0][i] != gone]
        for gap in (2, 1):
            if least_width([[row[i] for i in kept] for row in rows], gap=gap) <= width:
                return kept, gap
    return kept, 1
