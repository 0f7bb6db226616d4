"""The fingerprint of a result: every setting that shapes its figures and differs from its default.

A gate's baseline stores it; a sweep's rows are keyed by a digest of it. A field or option that a later version adds at
its default changes neither. Changing a default changes figures, and so takes a new simulator revision.
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from spillprof.explain.options import AnalyzeOptions, configuration
from spillprof.ir.fingerprint import changed_fields, default_of, has_default
from spillprof.ir.graph import Bindings, written_shape
from spillprof.ir.revision import SIMULATOR_REVISION
from spillprof.ir.target import Target

Fingerprint = dict[str, str | int | bool | None]

_ALWAYS = ("simulator", "strategy")
"""Settings that are in every fingerprint, even at their defaults."""
_NOT_COMPARED = ("name", "sources")
"""Fields of a target that shape no figure."""


def fingerprint(
    target: Target, config: Mapping[str, Any], bindings: Bindings, *, without: Collection[str] = ()
) -> Fingerprint:
    """Everything except the model that shapes the figures. Numbers that are not whole become strings.

    ``config``: the options, as ``configuration`` names them. ``without``: target fields to omit.
    """
    machine = changed_fields(target, without=(*_NOT_COMPARED, *without))
    return without_defaults(
        {
            "simulator": SIMULATOR_REVISION,
            **_options(config),
            **_bound(bindings),
            **{_of_target(name): _written(value) for name, value in machine.items()},
        }
    )


def without_defaults(config: Mapping[str, str | int | bool | None]) -> Fingerprint:
    """The fingerprint without settings at their defaults, which older baselines contain."""
    return {
        key: value for key, value in config.items() if key in _ALWAYS or value != default_setting(key, otherwise=_OTHER)
    }


def default_setting(key: str, *, otherwise: object = None) -> object:
    """The default of a setting as fingerprints write it; ``otherwise`` where it has none."""
    return _defaults().get(key, otherwise)


_OTHER = object()


def _defaults() -> Mapping[str, str | int | bool | None]:
    machine = {
        _of_target(column.name): _written(default_of(column)) for column in fields(Target) if has_default(column)
    }
    return {**_options(configuration(AnalyzeOptions())), **_bound(Bindings()), **machine}


def _options(config: Mapping[str, Any]) -> Fingerprint:
    return {"strategy" if key == "strategies" else key: _written(value) for key, value in config.items()}


def _bound(given: Bindings) -> Fingerprint:
    return {
        "dims": ",".join(f"{name}={size}" for name, size in sorted(given.dims.items())),
        "shapes": ",".join(f"{name}={written_shape(shape)}" for name, shape in sorted(given.shapes.items())),
        "batch": given.batch,
        "assume": ",".join(f"{name}={written_shape(shape)}" for name, shape in sorted(given.assume.items())),
        "branches": ",".join(f"{name}={branch}" for name, branch in sorted(given.branches.items())),
        "trips": ",".join(f"{name}={count}" for name, count in sorted(given.trips.items())),
    }


def _of_target(name: str) -> str:
    return f"target.{name}"


def _written(value: Any) -> str | int | bool | None:
    """One value: tables as ``name=number``, curves as ``bytes=number``, lists as names, all joined by commas."""
    if isinstance(value, Mapping):
        return ",".join(f"{name}={_written(each)}" for name, each in sorted(value.items()))
    if isinstance(value, tuple):
        return ",".join(f"{nbytes}={_written(figure)}" for nbytes, figure in value)
    if isinstance(value, list):
        return ",".join(map(str, value))
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else repr(value)
    found: str | int | bool | None = value
    return found


def digest(value: Any) -> str:
    """16 hexadecimal digits of the SHA-256 of JSON values."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def source_digest() -> str:
    """Digest of the code that computes figures: rows of other code, such as a changed strategy, are never reused."""
    root = files("spillprof")
    found = hashlib.sha256()
    for room in _SIMULATING:
        for path, text in sorted(_sources(root / room, room)):
            found.update(f"{path}\0{len(text)}\0".encode() + text)
    return found.hexdigest()[:16]


_SIMULATING = ("ir", "frontends", "lowering", "planning", "timing", "engine")


def _sources(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        path = f"{name}/{entry.name}"
        if entry.is_dir():
            yield from _sources(entry, path)
        elif path.endswith(".py"):
            yield path, entry.read_bytes().replace(b"\r\n", b"\n")
