"""CSV within limits: a cell of one character takes fifty bytes once it is parsed."""

from collections.abc import Iterator
from io import StringIO

from spillprof.ir.side_files.kinds import FileKind

_DELIMITERS = ",;\t"


def check_table(text: str, kind: FileKind, shown: str) -> None:
    """An error of the kind if the table has too many lines or cells."""
    lines = max(text.count("\n"), text.count("\r"))
    if lines > kind.most_lines:
        raise kind.error(f"{kind.what} has more than {kind.most_lines:,} lines", where=(shown,), hint=kind.hint)
    if lines + sum(map(text.count, _DELIMITERS)) > kind.most_values:
        raise kind.error(f"{kind.what} has more than {kind.most_values:,} cells", where=(shown,), hint=kind.hint)


def table_lines(text: str) -> Iterator[str]:
    """Lines as the csv module wants them, each with its end: cells in quotes may go over several."""
    return iter(StringIO(text, newline=""))
