"""Values that depend on a program alone: computed when first asked for, and forgotten with the program."""

from collections.abc import Callable, Hashable
from functools import wraps
from typing import TypeVar
from weakref import ref

from spillprof.model.program import Program

_Value = TypeVar("_Value")


def once_per_program(make: Callable[..., _Value]) -> Callable[..., _Value]:
    """``make(program, *switches)``, computed once for each program and switches. The value must not hold the program.

    Programs are told apart by identity: comparing two of them, or hashing one, would take as long as the computation.
    """
    kept: dict[int, tuple[ref[Program], dict[tuple[Hashable, ...], _Value]]] = {}

    @wraps(make)
    def get(program: Program, *switches: Hashable) -> _Value:
        at = id(program)
        if at not in kept:
            kept[at] = (ref(program, lambda _: kept.pop(at, None)), {})
        values = kept[at][1]
        if switches not in values:
            values[switches] = make(program, *switches)
        return values[switches]

    return get
