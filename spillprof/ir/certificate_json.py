"""Certificates from JSON values: a file of their own, or part of a Profile."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from spillprof.ir.certificate import SCHEMA, Certificate, CertificateRow
from spillprof.ir.errors import PlanError

_HINT = "give a Profile JSON ('analyze -o x.json', with --events if it is long), or its bounds.certificate"


def certificate_from_json(data: object) -> Certificate:
    """The certificate that JSON values hold. ``PlanError`` if there is none, or it is malformed."""
    if isinstance(data, Mapping) and "bounds" in data:
        data = data["bounds"]
    if isinstance(data, Mapping) and "certificate" in data:
        data = data["certificate"]
    if not isinstance(data, Mapping) or data.get("schema") != SCHEMA:
        raise PlanError("there is no certificate in the file", hint=_HINT)
    table = _read(Certificate, data, "certificate", skip="rows")
    rows = data.get("rows")
    if not isinstance(rows, list):
        raise PlanError("certificate.rows must be a list", where=["certificate"])
    read = [_read(CertificateRow, row, f"rows[{k}]") for k, row in enumerate(rows)]
    return Certificate(**table, rows=tuple(CertificateRow(**row) for row in read))


def _read(noun: type, data: object, where: str, *, skip: str = "") -> dict[str, Any]:
    if not isinstance(data, Mapping):
        raise PlanError(f"{where} must be an object", where=[where])
    return {f.name: _value(f.type, data.get(f.name), f"{where}.{f.name}") for f in fields(noun) if f.name != skip}


def _value(kind: Any, raw: object, where: str) -> Any:
    if kind in (tuple[str, ...], tuple[int, ...]):
        if not isinstance(raw, list):
            raise PlanError(f"{where} must be a list", where=[where])
        item = str if kind == tuple[str, ...] else int
        return tuple(_value(item, each, where) for each in raw)
    if not isinstance(raw, kind) or (kind is int and isinstance(raw, bool)):
        raise PlanError(f"{where} must be of type {kind.__name__}", where=[where])
    return raw
