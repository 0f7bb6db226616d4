"""Values that depend on a program alone: computed when first asked for, and forgotten with the program."""

from collections.abc import Callable, Hashable
from functools import wraps
from typing import TypeVar
from weakref import ref

from spillprof.ir.program import Program

_Value = TypeVar("_Value")


def once_per_program(make: Callable[..., _Value]) -> Callable[..., _Value]:
    """``make(program, *switches)``, computed once for each program and switches. The value must not hold the program.

    Programs are told apart by identity: comparing two of them, or hashing one, would take as long as the computation.
    """
    return _once(make, id)


def once_per_steps(make: Callable[..., _Value]) -> Callable[..., _Value]:
    """The same for what depends on steps, buffers and switches alone.

    Programs that have both in common (fitted to another memory, with nothing to stream) share one value.
    """
    return _once(make, lambda program: (id(program.steps), id(program.buffers)))


def _once(make: Callable[..., _Value], identity: Callable[[Program], Hashable]) -> Callable[..., _Value]:
    kept: dict[Hashable, tuple[ref[Program], dict[tuple[Hashable, ...], _Value]]] = {}

    @wraps(make)
    def get(program: Program, *switches: Hashable) -> _Value:
        at = identity(program)
        if at not in kept:  # while the program that is referred to lives, nothing else gets its ids
            kept[at] = (ref(program, lambda _: kept.pop(at, None)), {})
        values = kept[at][1]
        if switches not in values:
            values[switches] = make(program, *switches)
        return values[switches]

    return get
