"""MODEL, as a path or ``-``, to a Graph."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spillprof.cli.session import Session
from spillprof.ir.bindings import Bindings
from spillprof.ir.errors import UsageError

if TYPE_CHECKING:
    from spillprof.ir.graph import Graph


def load_graph(model: str, values: Mapping[str, Any], session: Session) -> "Graph":
    """The graph in a file, or on stdin for ``-``; equal reads of one command share it."""
    from spillprof.frontends import read_model

    given = read_bindings(values)
    session.files.reads(model)
    session.detail(f"reading {model}")
    if model == "-":
        if sys.stdin is None:
            raise UsageError("there is no stdin to read a model from", hint="give the path of a file")
        return read_model(sys.stdin.buffer, given, cache=session.graphs, is_alone=True)
    return read_model(model, given, cache=session.graphs, is_alone=True)


def read_bindings(values: Mapping[str, Any]) -> Bindings:
    """What the options say about open sizes, branches and trips."""
    return Bindings(
        dims=_mapping(values["dims"], "--dim"),
        shapes=_mapping(values["shapes"], "--shape"),
        batch=values["batch"],
        assume=_mapping(values["assume"], "--assume"),
        branches=_mapping(values["branches"], "--branch"),
        trips=_mapping(values["trips"], "--trips"),
    )


def _mapping(pairs: Sequence[tuple[str, Any]], option: str) -> dict[str, Any]:
    """Pairs as a mapping. ``UsageError`` if one name is given two values."""
    mapping: dict[str, Any] = {}
    for name, value in pairs:
        if mapping.setdefault(name, value) != value:
            raise UsageError(f"{option} gives '{name}' two values", hint=f"drop one of the two {option}")
    return mapping
