"""A table of text as a value, and its layout for terminals and for Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from spillprof.report.text import display_width, ljust, rjust, shorten_middle

_LEAST_CUT = 10
"""Columns of the terminal to which a column of names is cut at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Cells of text by row. Cells are printable: names in them went through ``label``.

    On a narrow terminal the column ``folded`` takes more lines. Without one, gaps shrink to one blank, then the columns
    in ``spared`` are dropped, then names (left-aligned columns) are cut in the middle. Numbers are never cut.
    """

    cells: Sequence[Sequence[str]]
    align: str
    """One letter a column: ``l`` for text, ``r`` for numbers."""
    heads: Sequence[str] = ()
    """None: a list without a line of heads."""
    spared: Sequence[str] = ()
    """Heads of columns to drop, the first to go first."""
    folded: int | None = None
    """Index of a column whose cells may take several lines."""

    def __post_init__(self) -> None:
        """Every line has a cell for each column."""
        if any(len(line) != len(self.align) for line in self._lines()):
            raise ValueError(f"a table of {len(self.align)} columns has a line with more or fewer cells")

    def width(self, *, gap: int = 2) -> int:
        """Columns of the terminal that it takes with nothing cut, without indentation."""
        widths = self._widths()
        return sum(widths) + gap * (len(widths) - 1)

    def fitted(self, width: int) -> tuple["Table", int]:
        """The table without the columns for which there is no room, and the gap between columns: 2 or 1."""
        table = self
        for gone in (None, *self.spared):
            table = table._without(gone)
            for gap in (2, 1):
                if table.width(gap=gap) <= width:
                    return table, gap
        return table, 1

    def blocks(self, *, width: int | None = None, indent: int = 0, gap: int = 2) -> list[list[str]]:
        """The lines of the heads, if any, and of each row: one line, or several where a cell is folded.

        ``width`` includes the indentation; None: as wide as it needs.
        """
        room = None if width is None else width - indent
        fits = room is None or self.folded is not None or self.width(gap=gap) <= room
        table, gap = (self, gap) if room is None or fits else self.fitted(room)
        widths = table._widths()
        if room is not None:
            table._narrow(widths, sum(widths) + gap * (len(widths) - 1) - room)
        return [
            [
                (" " * indent + (" " * gap).join(table._placed(line, widths))).rstrip()
                for line in table._folded(row, widths)
            ]
            for row in table._lines()
        ]

    def lines(self, *, width: int | None = None, indent: int = 0, gap: int = 2) -> list[str]:
        """The lines of ``blocks``, concatenated."""
        return [line for block in self.blocks(width=width, indent=indent, gap=gap) for line in block]

    def markdown(self) -> list[str]:
        """The lines of a GitHub-flavoured table. Cells are Markdown already: see ``markdown.code`` and ``plain``."""
        rules = ["--:" if letter == "r" else "---" for letter in self.align]
        head, *rows = self._lines()
        return ["|" + "".join(f" {cell} |" if cell else " |" for cell in line) for line in (head, rules, *rows)]

    def _lines(self) -> list[Sequence[str]]:
        return [*([self.heads] if self.heads else []), *self.cells]

    def _widths(self) -> list[int]:
        lines = self._lines()
        return [max((display_width(line[i]) for line in lines), default=0) for i in range(len(self.align))]

    def _without(self, head: str | None) -> "Table":
        kept = [i for i, each in enumerate(self.heads) if each != head]
        if head is None or len(kept) == len(self.heads):
            return self
        return replace(
            self,
            heads=[self.heads[i] for i in kept],
            cells=[[row[i] for i in kept] for row in self.cells],
            align="".join(self.align[i] for i in kept),
        )

    def _narrow(self, widths: list[int], excess: int) -> None:
        """Take ``excess`` from the folded column, or from the widest columns of text."""
        while excess > 0:
            cut = [i for i, letter in enumerate(self.align) if letter == "l"] if self.folded is None else [self.folded]
            widest = max(cut, key=lambda i: widths[i], default=None)
            if widest is None or widths[widest] <= _LEAST_CUT:
                return
            taken = min(excess, widths[widest] - _LEAST_CUT) if len(cut) == 1 else 1
            widths[widest] -= taken
            excess -= taken

    def _folded(self, row: Sequence[str], widths: Sequence[int]) -> list[Sequence[str]]:
        if self.folded is None:
            return [row]
        pieces = _fold(row[self.folded], widths[self.folded])
        rest = [["" if i != self.folded else piece for i in range(len(row))] for piece in pieces[1:]]
        return [[*row[: self.folded], pieces[0], *row[self.folded + 1 :]], *rest]

    def _placed(self, line: Sequence[str], widths: Sequence[int]) -> list[str]:
        return [
            rjust(cell, width) if letter == "r" else ljust(shorten_middle(cell, width), width)
            for cell, width, letter in zip(line, widths, self.align, strict=True)
        ]


def _fold(text: str, width: int) -> list[str]:
    """Lines of at most ``width`` columns, broken at blanks, and within words that are longer."""
    lines = [""]
    for word in text.split(" "):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if display_width(joined) <= width:
            lines[-1] = joined
            continue
        if lines[-1]:
            lines.append("")
        for character in word:
            if display_width(lines[-1] + character) > width:
                lines.append("")
            lines[-1] += character
    return lines
