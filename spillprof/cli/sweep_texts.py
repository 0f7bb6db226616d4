"""What is written behind the options of ``sweep``: shares, sizes, counts, and axes of values."""

from collections.abc import Sequence
from typing import Any

from spillprof.cli.declaring import unknown_name
from spillprof.ir.errors import UsageError
from spillprof.ir.units import parse_size

AUTO = "auto"


def parse_within(text: str) -> float:
    """A share of ``--within``: 0.05 of ``5%``. ``UsageError`` for what is none, as by all of these."""
    try:
        share = float(text.strip().removesuffix("%").strip()) / 100
    except ValueError:
        share = -1.0
    if not 0 <= share < 1e6:
        raise UsageError(f"'{text}' is no share", hint="write it like --within 5%")
    return share


def parse_dims(text: str) -> tuple[str, tuple[int, ...]]:
    """``(dimension, sizes)`` of ``batch=1,2,4``."""
    from spillprof.studies.sweep.axes import parse_axis

    name, separator, sizes = text.rpartition("=")
    if not separator or not name:
        raise UsageError(f"'{text}' binds no dimension", hint="write it like --dim batch=1,2,4 or --dim batch=1..8")
    return name, parse_axis(sizes, _parse_count)


def _parse_count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise UsageError(f"'{text}' is no size of a dimension", hint="write it like --dim batch=1,2,4")
    return int(text)


def parse_sizes(text: str) -> str | tuple[int, ...]:
    """Bytes of ``1MB..4MB/1MB``, ascending; or ``AUTO``."""
    from spillprof.studies.sweep.axes import parse_axis

    return AUTO if text.strip().lower() == AUTO else parse_axis(text, parse_size)


def parse_order_names(text: str) -> tuple[str, ...]:
    """Orders of operators, each once."""
    from spillprof.studies.sweep.axes import parse_orders

    return parse_orders(text)


def parse_varied(text: str) -> tuple[str, tuple[Any, ...]]:
    """``(target field, values)`` of ``dram-read=30GB/s,60GB/s``."""
    from spillprof.studies.sweep.axes import parse_variation

    return parse_variation(text)


def parse_dtype_names(text: str) -> tuple[str, ...]:
    """Element types, each once."""
    from spillprof.studies.sweep.axes import parse_dtypes

    return parse_dtypes(text)


def names_of_list(text: str, known: Sequence[str], kind: str) -> tuple[str, ...]:
    """Names of a comma list, each once, all of them known."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise UsageError(f"no {kind} is named", where=(f"--{kind}",), hint=f"there are {', '.join(known)}")
    for name in names:
        if name not in known:
            raise unknown_name(kind, name, known)
    return names
