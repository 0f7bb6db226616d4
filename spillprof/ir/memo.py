"""Functions of a program that are computed once for it: the values are stored on the program and die with it."""

from collections.abc import Callable, Hashable
from functools import wraps
from typing import TypeVar

from spillprof.ir.program import Memo, Program

_Value = TypeVar("_Value")


def once_per_program(make: Callable[..., _Value]) -> Callable[..., _Value]:
    """Memoizes ``make(program, *switches)`` on the program. The value must not refer to the program."""
    return _once(make, lambda program: program.memo)


def once_per_steps(make: Callable[..., _Value]) -> Callable[..., _Value]:
    """Memoizes a function of steps, buffers and switches alone.

    Programs that have both in common (fitted to another memory, with nothing to stream) share one value.
    """
    return _once(make, lambda program: program.memo_of_steps)


def _once(make: Callable[..., _Value], memo_of: Callable[[Program], Memo]) -> Callable[..., _Value]:
    @wraps(make)
    def get(program: Program, *switches: Hashable) -> _Value:
        values = memo_of(program).values
        key = (make, switches)
        if key not in values:
            values[key] = make(program, *switches)
        found: _Value = values[key]
        return found

    return get
