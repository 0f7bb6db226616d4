"""The page that ``inspect`` prints: what a model is, its largest tensors and operators."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from spillprof.analysis.inspection import Inspection, OperatorFact, TensorFact
from spillprof.ir.dtypes import UNSIZED_DTYPES
from spillprof.ir.program import BufferKind, ControlFlow
from spillprof.ir.units import format_size, format_size_exact
from spillprof.report.table import Table
from spillprof.report.text import count_of, label, printable

if TYPE_CHECKING:
    from spillprof.analysis.tilings import Tilings

_NAME_WIDTH = 48
_MAX_REMARKS = 12
_MAX_BODIES = 4


def render(inspection: Inspection, *, top: int, color: bool, tilings: "Tilings | None" = None) -> str:
    """Renders the page, with ``top`` rows a table, largest first."""
    strong = _bold if color else str
    lines = [*_lines(inspection, top, strong)]
    if tilings is not None:
        from spillprof.report.tilings import tiling_section  # numpy comes with it

        lines += tiling_section(tilings, top=top, strong=strong)
    return "\n".join(lines) + "\n"


def _lines(found: Inspection, top: int, strong: Callable[[str], str]) -> Iterable[str]:
    opset = f", opset {found.opset}" if found.opset is not None else ""
    yield f"{strong(label(found.path or found.model))}   {count_of(len(found.operators), 'step')}{opset}"
    peak = found.operators[found.peak_step] if found.operators else None
    smallest = found.operators[found.min_sram_step] if found.operators else None
    padding = f"; {format_size(found.peak_padding_bytes)} of it is padding" if found.peak_padding_bytes else ""
    facts = [
        ("weights", f"{format_size_exact(found.weight_bytes)}, {found.macs:,} MACs"),
        ("peak live bytes", f"{format_size_exact(found.peak_live_bytes)}{_at(peak)}{padding}"),
        ("smallest SRAM", f"{format_size_exact(found.min_sram_bytes)} without tiling{_at(smallest)}"),
    ]
    if found.folded_operators or found.removed_operators:
        facts.append(("left out", f"{found.folded_operators:,} folded into weights, {found.removed_operators:,} dead"))
    yield from Table(cells=facts, align="ll").lines(gap=3)
    held = [t for t in found.tensors if t.kind is not BufferKind.WEIGHT or t.is_output]
    yield from _tensors(sorted(held, key=lambda t: -t.nbytes)[:top], len(held), strong)
    yield from _operators(sorted(found.operators, key=lambda o: -o.nbytes)[:top], len(found.operators), strong)
    yield from _control_flow(found.control_flow[:top], len(found.control_flow), strong)
    remarks = [printable(note) for note in found.notes]
    remarks += [f"assumed: {printable(a.what)} ({count_of(a.count, 'time')})" for a in found.assumptions]
    if remarks:
        yield ""
        yield from remarks[:_MAX_REMARKS]
        if len(remarks) > _MAX_REMARKS:
            yield f"and {len(remarks) - _MAX_REMARKS:,} more remarks, in the JSON"


def _tensors(rows: Sequence[TensorFact], total: int, strong: Callable[[str], str]) -> Iterable[str]:
    if rows:
        heads = ("size", "type", "shape", "kind", "live", "tensor")
        cells = [
            (format_size(t.nbytes), t.dtype, _shape(t), _kind(t), _live(t), label(t.name, _NAME_WIDTH))
            for t in rows
        ]  # fmt: skip
        yield ""
        yield strong(f"Largest tensors ({len(rows):,} of {total:,}, without weights)")
        yield from Table(heads=heads, cells=cells, align="rlllll").lines(indent=2)


def _operators(rows: Sequence[OperatorFact], total: int, strong: Callable[[str], str]) -> Iterable[str]:
    if rows:
        heads = ("bytes", "MACs", "step", "type", "operator")
        cells = [
            (format_size(o.nbytes), f"{o.macs:,}", f"#{o.step}", label(o.op_type, 24), label(o.name, _NAME_WIDTH))
            for o in rows
        ]
        yield ""
        yield strong(f"Largest operators ({len(rows):,} of {total:,})")
        yield from Table(heads=heads, cells=cells, align="rrrll").lines(indent=2)


def _control_flow(rows: Sequence[ControlFlow], total: int, strong: Callable[[str], str]) -> Iterable[str]:
    if rows:
        heads = ("runs", "operators", "MACs", "live", "body", "type", "operator")
        cells: list[tuple[str, ...]] = []
        for row in rows:
            name = label(f"{row.inside}/{row.name}" if row.inside else row.name, _NAME_WIDTH)
            kind = row.op_type if row.is_unfolded else f"{row.op_type}, one step"
            bodies = [
                (f"{b.runs:,}", f"{b.operators:,}", f"{b.macs:,}", format_size(b.peak_live_bytes), b.name, kind, name)
                for b in row.bodies
            ]
            if len(bodies) > _MAX_BODIES:  # of a loop in which sizes change: one for each trip
                left_out = f"{len(bodies) - 2:,} more"
                bodies[1:-1] = [("...", "", "", "", left_out, kind, name)]
            cells += bodies
        yield ""
        yield strong(f"Control flow ({len(rows):,} of {total:,}, one run of each body)")
        yield from Table(heads=heads, cells=cells, align="rrrrlll").lines(indent=2)


def _shape(tensor: TensorFact) -> str:
    """Formats the shape; a sequence has none."""
    if tensor.dtype in UNSIZED_DTYPES - {"string"}:
        return "-"
    return "x".join(map(str, tensor.shape)) or "scalar"


def _kind(tensor: TensorFact) -> str:
    """Names the kind; an output that is a view of an input, or a constant, is both."""
    return f"{tensor.kind}, output" if tensor.is_output and tensor.kind is not BufferKind.OUTPUT else str(tensor.kind)


def _live(tensor: TensorFact) -> str:
    start = "start" if tensor.def_step is None else str(tensor.def_step)
    return f"{start}..{'-' if tensor.last_use is None else tensor.last_use}"


def _at(operator: OperatorFact | None) -> str:
    return "" if operator is None else f", at #{operator.step} {label(operator.name, _NAME_WIDTH)}"


def _bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m"
