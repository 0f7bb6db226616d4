"""Parsers of sweep axes: comma lists, ``A..B`` doubling, ``A..B/STEP``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from spillprof.ir.dtypes import AS_IN_FILE, parse_dtype
from spillprof.ir.errors import UsageError
from spillprof.ir.target import Target
from spillprof.ir.target_settings import target_field, target_value, with_fields
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.options import Order, PlanningOptions

LONGEST_AXIS = 10_000
LOWERING_AXES = ("act_dtype", "weight_dtype")
"""Lowering options that can be swept. Settings hold them beside target fields; ``file`` stands for None."""
PLANNING_AXES = ("order",)
"""Planning options that can be swept, besides strategy and placement."""
OPTION_AXES = (*LOWERING_AXES, *PLANNING_AXES)


def parse_axis(text: str, parse: Callable[[str], int]) -> tuple[int, ...]:
    """Values of a comma list whose items are single values, ``A..B`` or ``A..B/STEP``; each once, ascending.

    ``A..B`` doubles: A, 2 A, 4 A, ... and B. ``A..B/STEP`` counts: A, A + STEP, ... up to B. ``UsageError`` if
    the text is malformed.
    """
    values: set[int] = set()
    for item in text.split(","):
        values.update(_span(item.strip(), parse) if ".." in item else [parse(item)])
        if len(values) > LONGEST_AXIS:
            raise UsageError(f"'{text}' has more than {LONGEST_AXIS:,} values", hint="take a larger step")
    return tuple(sorted(values))


def parse_variation(text: str) -> tuple[str, tuple[Any, ...]]:
    """``(target field, values)`` of ``dram-read=30GB/s,60GB/s``. ``UsageError`` for an invalid field or value."""
    name, separator, listed = text.partition("=")
    if not separator or not listed.strip():
        raise UsageError(f"'{text}' varies nothing", hint="write it like --vary dram-read=30GB/s,60GB/s")
    field = target_field(name)
    return field, tuple(dict.fromkeys(target_value(field, item.strip(), "--vary") for item in listed.split(",")))


def settings_of(variations: Sequence[tuple[str, Sequence[Any]]]) -> list[dict[str, Any]]:
    """All combinations of the varied fields' values, the last field fastest. ``UsageError`` for a repeated field."""
    names = [name for name, _ in variations]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"'{twice}' is varied twice", hint="give all of its values in one list")
    return [dict(zip(names, values, strict=True)) for values in product(*(values for _, values in variations))]


def parse_dtypes(text: str) -> tuple[str, ...]:
    """Element types of ``file,fp16,int8``, each once. ``UsageError`` for an unknown type."""
    return tuple(dict.fromkeys(parse_dtype(item) or AS_IN_FILE for item in text.split(",")))


def with_settings(target: Target, settings: Mapping[str, Any]) -> Target:
    """The target with its varied fields set. A single MAC rate applies to every element type."""
    fields = {name: value for name, value in settings.items() if name not in OPTION_AXES}
    return with_fields(target, fields)


def lowering_with(options: LoweringOptions, settings: Mapping[str, Any]) -> LoweringOptions:
    """The lowering options with the varied ones set."""
    swept = {name: settings[name] for name in LOWERING_AXES if name in settings}
    changes: dict[str, Any] = {name: None if value == AS_IN_FILE else value for name, value in swept.items()}
    return replace(options, **changes)


def planning_with(options: PlanningOptions, settings: Mapping[str, Any]) -> PlanningOptions:
    """The planning options with the varied ones set."""
    return replace(options, order=Order(settings["order"])) if "order" in settings else options


def parse_orders(text: str) -> tuple[str, ...]:
    """Orders of ``file,memory``, each once. ``UsageError`` for an unknown order."""
    names = tuple(dict.fromkeys(item.strip() for item in text.split(",")))
    for name in names:
        if name not in list(Order):
            raise UsageError(f"'{name}' is no order", hint=f"there are {', '.join(Order)}")
    return names


def _span(item: str, parse: Callable[[str], int]) -> list[int]:
    ends, slash, step_text = item.partition("/")
    low_text, _, high_text = ends.partition("..")
    low, high = parse(low_text), parse(high_text)
    if low > high:
        raise UsageError(f"'{item}' runs from large to small", hint=f"write it like {high_text}..{low_text}")
    if slash:
        step = parse(step_text)
        if step < 1 or (high - low) // step >= LONGEST_AXIS:
            raise UsageError(f"'{item}' has more than {LONGEST_AXIS:,} values", hint="take a larger step")
        return list(range(low, high + 1, step))
    values = [low]
    while values[-1] * 2 < high:
        values.append(values[-1] * 2)
    return [*values, high]
