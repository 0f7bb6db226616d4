"""Certificate: integers that prove a lower bound on spill bytes, checkable without a solver; and its JSON."""

from collections.abc import Mapping
from dataclasses import dataclass

from spillprof.ir.errors import PlanError
from spillprof.ir.json_values import MalformedError, reader_of

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
class TiledStep:
    """The least of all modes of an operator that does not fit, as an enumeration of its tilings found it."""

    step: int
    footprint_bytes: int  # of its tiles
    excess_bytes: int  # that it moves beyond one transfer of each operand that passes in tiles


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
    tiled: tuple[TiledStep, ...] = ()  # steps that do not fit, by step: taken as stated
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
    try:
        certificate: Certificate = reader_of(Certificate)(data)
    except MalformedError as error:
        what = "a key is missing" if error.what is None else f"it cannot hold {error.what}"
        raise PlanError(f"the certificate is malformed: {what}", where=[error.place]) from None
    return certificate
