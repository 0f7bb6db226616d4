"""A checked plan as text and as JSON: the rules that it breaks, or what it costs."""

from collections.abc import Sequence
from typing import Any

from spillprof.ir.result import Result
from spillprof.ir.units import format_size_exact, format_time
from spillprof.report.table import Table
from spillprof.report.text import count_of, printable
from spillprof.verify import Violation


def render(violations: Sequence[Violation], result: Result | None, *, name: str, limit: int) -> str:
    """Renders the page of ``verify``, with at most ``limit`` violations."""
    if result is None:
        lines = [f"{name}: not legal, {count_of(len(violations), 'violation')}"]
        lines += [f"  {_sentence(violation)}" for violation in violations[:limit]]
        if len(violations) > limit:
            lines.append(f"  and {len(violations) - limit:,} more")
        return "\n".join(lines) + "\n"
    rows = (
        ("latency", format_time(result.latency_s)),
        ("spill time", format_time(result.spill_time_s)),
        ("spill bytes", format_size_exact(result.spill_bytes)),
        ("  written", format_size_exact(result.spill_write_bytes)),
        ("  read", format_size_exact(result.spill_read_bytes)),
        ("  streamed", format_size_exact(result.streamed_bytes)),
        ("spills", f"{result.spill_count:,}"),
        ("reloads", f"{result.reload_count:,}"),
        ("peak", format_size_exact(result.peak_bytes)),
    )
    return "\n".join([f"{name}: legal", *Table(cells=rows, align="ll").lines(indent=2)]) + "\n"


def render_bound(lower_bytes: int, result: Result | None) -> str:
    """Renders the page of ``verify --certificate``; ``result`` is that of a legal plan checked with it."""
    less = f"no plan in this order of operators spills less than {format_size_exact(lower_bytes)}"
    text = f"proven by the certificate, in whole numbers: {less}\n"
    if result is None:
        return text
    above = result.spill_bytes - lower_bytes
    return text + (f"this plan spills {format_size_exact(above)} more\n" if above else "this plan spills just that\n")


def to_json(violations: Sequence[Violation], result: Result | None) -> dict[str, Any]:
    """Returns violations and result as JSON values."""
    keys = ("strategy", "latency_s", "spill_time_s", "spill_bytes", "spill_write_bytes", "spill_read_bytes",
            "streamed_bytes", "spill_count", "reload_count", "peak_bytes", "energy_j")  # fmt: skip
    return {
        "legal": not violations,
        "violations": [
            {"rule": str(violation.rule), "message": violation.message, "step": violation.step}
            for violation in violations
        ],
        "result": None if result is None else {key: getattr(result, key) for key in keys},
    }


def _sentence(violation: Violation) -> str:
    at = "" if violation.step is None else f" (step {violation.step})"
    return f"{violation.rule}: {printable(violation.message)}{at}"
