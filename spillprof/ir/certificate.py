"""Certificate: integers that prove a lower bound on spill bytes, checkable without a solver; and its JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from spillprof.ir.errors import PlanError

CERTIFICATE_SCHEMA = "spillprof-certificate/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateRow:
    """One weighted inequality: at a step, gaps outside the set must free what the gaps of the set leave needed."""

    step: int
    weight: int  # >= 0, in units of 1 / Certificate.scale
    need_bytes: int  # that the pool lacks at the step, less the gaps of the set
    apart: tuple[str, ...] = ()  # buffers of the gaps in the set
    apart_after: tuple[int, ...] = ()  # the use before each of these gaps: its step


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """Weighted rows that prove a lower bound for one fitted program. Buffers are named as in plan files."""

    spill_bytes_lower: int  # the bound that the rows prove
    steps: int  # of the program
    capacity_bytes: int
    reserved_bytes: int
    inputs_resident: bool  # graph inputs are on-chip for the whole run
    steady_state: bool  # cached weights outlive the run
    writes_always: bool  # every eviction of what was computed is written back
    scale: int  # weights are in units of 1 / scale
    rows: tuple[CertificateRow, ...]
    schema: str = CERTIFICATE_SCHEMA

    @property
    def entries(self) -> int:
        """Size: rows plus the gaps in their sets."""
        return len(self.rows) + sum(len(row.apart) for row in self.rows)


_HINT = "give a Profile JSON ('analyze -o x.json', with --events if it is long), or its bounds.certificate"


def certificate_from_json(data: object) -> Certificate:
    """The certificate that JSON values hold. ``PlanError`` if there is none, or it is malformed."""
    if isinstance(data, Mapping) and "bounds" in data:
        data = data["bounds"]
    if isinstance(data, Mapping) and "certificate" in data:
        data = data["certificate"]
    if not isinstance(data, Mapping) or data.get("schema") != CERTIFICATE_SCHEMA:
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
