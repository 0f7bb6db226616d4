"""What the texts behind options mean: NAME=N, shapes, names of strategies. ``UsageError`` says how to write them."""

from collections.abc import Sequence

from spillprof.ir.dtypes import AS_IN_FILE, NUMBER_DTYPES, SHORT_NAMES
from spillprof.ir.errors import SpillprofError, UsageError
from spillprof.ir.nearest import nearest
from spillprof.ir.target import builtin_target_names
from spillprof.planning.placements import PLACEMENTS
from spillprof.planning.strategies import STRATEGIES

_MAX_DIGITS = 18  # of a dimension: more than any tensor has elements


def parse_dim(text: str) -> tuple[str, int]:
    name, separator, size = text.rpartition("=")
    if not separator or not name or not _is_count(size):
        raise UsageError(f"'{text}' binds no dimension", hint="write it like --dim batch=1 or --dim 'input[0]=1'")
    return name, int(size)


def parse_shape(text: str) -> tuple[str, tuple[int, ...]]:
    return _named_shape(text, "an input", "--shape input=1x3x224x224")


def parse_assumed(text: str) -> tuple[str, tuple[int, ...]]:
    return _named_shape(text, "a tensor", "--assume boxes=100x4")


def _named_shape(text: str, whose: str, example: str) -> tuple[str, tuple[int, ...]]:
    name, separator, shape = text.rpartition("=")
    sizes = shape.lower().split("x") if shape else []
    if not separator or not name or not all(map(_is_count, sizes)):
        raise UsageError(f"'{text}' is no shape of {whose}", hint=f"write it like {example}")
    return name, tuple(int(size) for size in sizes)


def parse_branch(text: str) -> tuple[str, str]:
    name, separator, branch = text.rpartition("=")
    if not separator or not name or branch not in ("then", "else"):
        raise UsageError(f"'{text}' chooses no branch", hint="write it like --branch /model/If=then")
    return name, branch


def parse_trips(text: str) -> tuple[str, int]:
    name, separator, count = text.rpartition("=")
    if not _is_count(count) or (separator and not name):
        raise UsageError(f"'{text}' is no number of trips", hint="write it like --trips 8 or --trips /model/Loop=8")
    return name, int(count)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS


def parse_placement(text: str) -> str:
    if text not in PLACEMENTS:
        raise unknown_name("placement", text, PLACEMENTS)
    return text


def strategy_names(text: str) -> tuple[str, ...]:
    """The strategies that a list names, each once. ``UsageError`` for a name that is none, or no name."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise UsageError("no strategy is named", where=("--strategy",), hint=f"there are {', '.join(STRATEGIES)}")
    known = (*STRATEGIES, "none")
    for name in names:
        if name not in known:
            raise unknown_name("strategy", name, known)
    return names


def unknown_name(kind: str, name: str, known: Sequence[str]) -> UsageError:
    """The error for a name that is not one of ``known``."""
    near = nearest(name, known)
    hint = f"did you mean '{near[0]}'? There are {', '.join(known)}" if near else f"there are {', '.join(known)}"
    return UsageError(f"unknown {kind} '{name}'", hint=hint)


def dtype_names() -> Sequence[str]:
    """What options that take an element type complete."""
    return (AS_IN_FILE, *SHORT_NAMES, *NUMBER_DTYPES)


def target_names() -> Sequence[str]:
    """Built-in targets, and those of the configuration if it can be read."""
    from spillprof.cli.config import load_config

    try:
        return sorted({*builtin_target_names(), *load_config().targets})
    except SpillprofError:
        return builtin_target_names()
