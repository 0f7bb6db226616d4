"""Placement problems as CSV in the form of google/minimalloc: ``id,lower,upper,size``, upper exclusive.

Source of the format: the README of https://github.com/google/minimalloc. The column ``offset`` of solutions is ignored,
so a solution is read as its problem. Any other column would change the problem, and is refused.
"""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from spillprof.ir.errors import ModelError
from spillprof.ir.layout_problem import LayoutBuffer, LayoutProblem
from spillprof.ir.side_files.kinds import BUFFERS
from spillprof.ir.side_files.opening import read_bytes
from spillprof.ir.side_files.tables import check_table, table_lines
from spillprof.ir.units import LARGEST_SIZE

PROBLEM_COLUMNS = ("id", "lower", "upper", "size")
IGNORED_COLUMNS = ("offset",)
LARGEST_TIME = 2**60
"""Limit of times: they and sums of them stay exact in int64 columns."""

MOST_ROWS = 1_000_000
_HINT = "the first line is id,lower,upper,size; a buffer is live in [lower, upper)"
_SHOWN = 40  # characters of a value that an error quotes


def read_minimalloc(path: str | Path, *, alignment_bytes: int = 1) -> LayoutProblem:
    """The problem in a file. ``ModelError`` if it cannot be read as one."""
    return read_minimalloc_bytes(read_bytes(path, BUFFERS), name=str(path), alignment_bytes=alignment_bytes)


def read_minimalloc_bytes(data: bytes, *, name: str, alignment_bytes: int = 1) -> LayoutProblem:
    """The problem in the bytes of a file; errors show ``name``."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelError("the file is no text", where=(f"{name}: {error.reason}, byte {error.start}",)) from None
    buffers: list[LayoutBuffer] = []
    lines: dict[str, int] = {}
    total_bytes = 0
    for line, row in _rows(text, name):
        buffer = _buffer(row, f"{name}, line {line}")
        first = lines.setdefault(buffer.name, line)
        if first != line:
            raise ModelError(
                f"two buffers have the id '{buffer.name[:_SHOWN]}'", where=(f"{name}, lines {first} and {line}",),
                hint="give each buffer an id of its own",
            )  # fmt: skip
        buffers.append(buffer)
        total_bytes += buffer.size_bytes + alignment_bytes
        if total_bytes > LARGEST_SIZE or len(buffers) > MOST_ROWS:
            what = "larger than any memory" if total_bytes > LARGEST_SIZE else f"more than {MOST_ROWS:,}"
            raise ModelError(f"the buffers together are {what}", where=(f"{name}, line {line}",))
    return LayoutProblem(buffers=tuple(buffers), alignment_bytes=alignment_bytes)


def _rows(text: str, name: str) -> Iterator[tuple[int, Sequence[str]]]:
    """(line, [id, lower, upper, size]) of every line but the first and empty ones."""
    check_table(text, BUFFERS, name)
    reader = csv.reader(table_lines(text), strict=True)
    places: list[int] | None = None
    n_columns = 0
    try:
        for row in reader:
            if not any(cell.strip() for cell in row):
                continue
            if places is None:
                places, n_columns = _places([cell.strip().lower() for cell in row], name), len(row)
                continue
            if len(row) != n_columns:
                raise ModelError(
                    f"{len(row)} values where there are {n_columns} columns",
                    where=(f"{name}, line {reader.line_num}",), hint=_HINT,
                )  # fmt: skip
            yield reader.line_num, [row[place].strip() for place in places]
    except csv.Error as error:
        raise ModelError(
            "the file is no CSV", where=(f"{name}, line {reader.line_num}: {error}",), hint=_HINT
        ) from None
    if places is None:
        raise ModelError("the file is empty", where=(name,), hint=_HINT)


def _places(header: list[str], name: str) -> list[int]:
    for column in PROBLEM_COLUMNS:
        if header.count(column) != 1:
            found = "no" if column not in header else "more than one"
            raise ModelError(f"there is {found} column '{column}'", where=(f"{name}, line 1",), hint=_HINT)
    unknown = [column for column in header if column not in (*PROBLEM_COLUMNS, *IGNORED_COLUMNS)]
    if unknown:
        raise ModelError(
            f"column '{unknown[0][:_SHOWN]}' is not understood", where=(f"{name}, line 1",),
            hint=f"leave it out: the columns are {', '.join((*PROBLEM_COLUMNS, *IGNORED_COLUMNS))}",
        )  # fmt: skip
    return [header.index(column) for column in PROBLEM_COLUMNS]


def _buffer(row: Sequence[str], where: str) -> LayoutBuffer:
    name, *texts = row
    lower, upper, size = (_whole(text, column, where) for column, text in zip(PROBLEM_COLUMNS[1:], texts, strict=True))
    if not name:
        raise ModelError("a buffer has no id", where=(where,), hint=_HINT)
    for is_wrong, what, hint in (
        (lower >= upper, f"is never live: lower {lower}, upper {upper}", _HINT),
        (lower < 0, f"begins at time {lower}", "times are 0 or more: shift them up"),
        (upper > LARGEST_TIME, "lives beyond time 2^60", "scale the times down"),
        (size < 0, f"has the size {size}", "sizes are 0 or more"),
        (size > LARGEST_SIZE, "is larger than any memory", "sizes are bytes"),
    ):
        if is_wrong:
            raise ModelError(f"buffer '{name[:_SHOWN]}' {what}", where=(where,), hint=hint)
    return LayoutBuffer(name=name, lower=lower, upper=upper, size_bytes=size)


def _whole(text: str, column: str, where: str) -> int:
    digits = text[1:] if text[:1] == "-" else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 19:
        raise ModelError(
            f"{column} '{text[:_SHOWN]}' is no whole number of at most 19 digits", where=(where,), hint=_HINT
        )
    return int(text)
