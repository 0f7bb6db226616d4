"""Keys of a configuration file, and how the value of each is read.

A reader returns the value as the option of that name takes it, or raises ``UsageError`` without saying where.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import partial
from typing import Any

from spillprof.explain.options import AnalyzeOptions
from spillprof.ir.errors import UsageError
from spillprof.ir.metric import Metric
from spillprof.ir.nearest import nearest
from spillprof.ir.option_rows import OptionRow, option_rows
from spillprof.ir.target import ROWS, read_fields, short_name
from spillprof.ir.units import parse_energy, parse_rate, parse_share, parse_size, parse_time
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.options import PlanningOptions

SettingValue = str | int | bool | tuple[str, ...]


def parse_metrics(text: str) -> tuple[Metric, ...]:
    """Metrics from ``spill-bytes,latency``. ``UsageError`` if one is unknown or none is named."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UsageError("no metric is named", hint=f"there are {', '.join(Metric)}")
    return tuple(dict.fromkeys(Metric(_one_of(list(Metric), name)) for name in names))


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise UsageError(f"{value!r} is no text", hint="write it in quotes")
    return value


def _quantity(parse: Callable[[str], Any], value: Any) -> str:
    """A size, rate, time or energy, as the text that its option takes."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise UsageError(f"{value!r} is no quantity", hint="write it in quotes, with its unit")
    parse(str(value))
    return str(value)


def _one_of(names: Iterable[str], value: Any) -> str:
    known = tuple(names)
    if value not in known:
        near = nearest(str(value), known)
        raise UsageError(
            f"{value!r} is none of {', '.join(known)}", hint=f"did you mean '{near[0]}'?" if near else None
        )
    return str(value)


def _switch(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return _one_of(("on", "off"), value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{value!r} is no switch", hint="write true or false")
    return value


def _count(value: Any, *, minimum: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value < 10**18:
        raise UsageError(f"{value!r} is not a whole number from {minimum} up")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    if not items:
        raise UsageError("an empty list", hint="leave the key out")
    return tuple(_text(item) for item in items)


def _listed(value: Any) -> str:
    """Texts joined by commas, as the option takes them."""
    return ",".join(_texts(value))


def _dims(value: Any) -> dict[str, int]:
    if not isinstance(value, dict):
        raise UsageError(f"{value!r} binds no dimensions", hint="write it like dims = { batch = 1 }")
    return {name: _count(size, minimum=0) for name, size in value.items()}


def _shapes(value: Any) -> dict[str, tuple[int, ...]]:
    if not isinstance(value, dict) or not all(isinstance(shape, list) for shape in value.values()):
        raise UsageError(f"{value!r} gives no shapes", hint="write it like shapes = { input = [1, 3, 8, 8] }")
    return {name: tuple(_count(size, minimum=0) for size in shape) for name, shape in value.items()}


def _branches(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise UsageError(f"{value!r} chooses no branches", hint='write it like branches = { "/model/If" = "then" }')
    return {name: _one_of(("then", "else"), branch) for name, branch in value.items()}


def _trips(value: Any) -> dict[str, int]:
    if isinstance(value, dict):
        return {name: _count(count, minimum=0) for name, count in value.items()}
    return {"": _count(value, minimum=0)}


def parse_budget(parse: Callable[[str], Any], text: str) -> Any:
    """A limit: unlike a size, time or energy, it may be 0."""
    return 0 if text.strip() == "0" else parse(text)


def _number(most: float, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise UsageError(f"{value!r} is no number from 0 to {most:,.0f}", hint="write it without quotes, like 10")
    return str(value)


def _parsed(parse: Callable[[str], Any], value: Any) -> str:
    """A text that the option can parse."""
    parse(_text(value))
    return str(value)


def _limit(parse: Callable[[str], Any], value: Any) -> Any:
    return parse_budget(parse, _quantity(partial(parse_budget, parse), value))


def _target_field(field_name: str, value: Any) -> Any:
    try:
        return read_fields({field_name: value}, name="")[field_name]
    except UsageError as error:
        raise UsageError(error.message.rpartition(f"{field_name}: ")[2], hint=error.hint) from None


def _metrics(value: Any) -> str:
    return ",".join(parse_metrics(_listed(value)))


def _reader(row: OptionRow) -> Callable[[Any], SettingValue]:
    """How the value of an option's key is read."""
    if row.switched_on is not None:
        return _flag
    match row.default:
        case bool():
            return _switch
        case StrEnum():
            return partial(_one_of, [str(value) for value in type(row.default)])
        case tuple():
            return _texts
    if row.most is not None:
        return partial(_number, row.most)
    if row.parse is not None:
        return partial(_parsed, row.parse)
    return _text if row.names is None else partial(_one_of, row.names())


_size, _rate = partial(_quantity, parse_size), partial(_quantity, parse_rate)
_ROWS = tuple(row for kind in (AnalyzeOptions, PlanningOptions, LoweringOptions) for row in option_rows(kind))

SETTINGS: Mapping[str, Callable[[Any], SettingValue]] = {
    "baseline": _text, "sram": _size, "target": _text, "align": _size, "dram-read": _rate, "dram-write": _rate,
    **{row.key: _reader(row) for row in _ROWS},
    "strategy": _listed, "top": partial(_count, minimum=0),
}  # fmt: skip
"""Settings at the top level of the file, and how each is read."""

FILE_SETTINGS = tuple(row.key for row in _ROWS if row.is_file)
"""Settings that are paths, relative to the configuration file."""

GATE_SETTINGS: Mapping[str, Callable[[Any], SettingValue]] = {
    "max-increase": partial(_quantity, parse_share),
    "min-increase": partial(_quantity, partial(parse_budget, parse_size)),
    "min-latency-increase": partial(_quantity, partial(parse_budget, parse_time)),
    "min-energy-increase": partial(_quantity, partial(parse_budget, parse_energy)),
    "metrics": _metrics,
    "strategy": _text,
}
"""Settings of ``[gate]``."""

BUDGETS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "max-spill": ("spill_bytes", parse_size), "max-latency": ("latency_s", parse_time),
    "max-peak": ("peak_bytes", parse_size), "max-energy": ("energy_j", parse_energy),
}  # fmt: skip
"""Keys of a model's budgets: the field of Budgets that each sets, and how a limit is read."""

MODEL_KEYS: Mapping[str, Callable[[Any], Any]] = {
    "path": _text, "name": _text, "dims": _dims, "shapes": _shapes, "batch": _count, "assume": _shapes,
    "branches": _branches, "trips": _trips, "targets": _texts,
    **{key: partial(_limit, parse) for key, (_, parse) in BUDGETS.items()},
}  # fmt: skip
"""Keys of each ``[[models]]``."""

TARGET_FIELDS = {
    **{name.replace("_", "-"): name for name in ROWS if name != "name"},
    **{short_name(name): name for name in ROWS if name != "name"},
    **{row.short: name for name, row in ROWS.items() if row.short},
}
"""Keys of ``[targets.NAME]`` besides ``inherit``, and the fields of a Target that they set."""

TARGET_KEYS: Mapping[str, Callable[[Any], Any]] = {
    "inherit": _text,
    **{key: partial(_target_field, name) for key, name in TARGET_FIELDS.items()},
}
