"""The page that ``inspect`` prints: what a model is, its largest tensors and operators."""

from collections.abc import Callable, Iterable, Sequence

from spillprof.analysis.inspection import Inspection, OperatorFact, TensorFact
from spillprof.ir.control_flow import ControlFlow
from spillprof.ir.dtypes import UNSIZED_DTYPES
from spillprof.ir.program import BufferKind
from spillprof.ir.units import format_size, format_size_exact
from spillprof.report.text import cells, count_of, label, ljust, printable, rjust

NAME_WIDTH = 48
MAX_REMARKS = 12
MAX_BODIES = 4


def render(inspection: Inspection, *, top: int, color: bool) -> str:
    """The page, with ``top`` rows a table, largest first."""
    return "\n".join(_lines(inspection, top, _bold if color else str)) + "\n"


def _lines(found: Inspection, top: int, strong: Callable[[str], str]) -> Iterable[str]:
    opset = f", opset {found.opset}" if found.opset is not None else ""
    yield f"{strong(label(found.path or found.model))}   {count_of(len(found.operators), 'step')}{opset}"
    peak = found.operators[found.peak_step] if found.operators else None
    smallest = found.operators[found.min_sram_step] if found.operators else None
    yield f"weights           {format_size_exact(found.weight_bytes)}, {found.macs:,} MACs"
    padding = f"; {format_size(found.peak_padding_bytes)} of it is padding" if found.peak_padding_bytes else ""
    yield f"peak live bytes   {format_size_exact(found.peak_live_bytes)}{_at(peak)}{padding}"
    yield f"smallest SRAM     {format_size_exact(found.min_sram_bytes)} without tiling{_at(smallest)}"
    if found.folded_operators or found.removed_operators:
        yield f"left out          {found.folded_operators:,} folded into weights, {found.removed_operators:,} dead"
    held = [t for t in found.tensors if t.kind is not BufferKind.WEIGHT or t.is_output]
    yield from _tensors(sorted(held, key=lambda t: -t.nbytes)[:top], len(held), strong)
    yield from _operators(sorted(found.operators, key=lambda o: -o.nbytes)[:top], len(found.operators), strong)
    yield from _control_flow(found.control_flow[:top], len(found.control_flow), strong)
    remarks = [printable(note) for note in found.notes]
    remarks += [f"assumed: {printable(a.what)} ({count_of(a.count, 'time')})" for a in found.assumptions]
    if remarks:
        yield ""
        yield from remarks[:MAX_REMARKS]
        if len(remarks) > MAX_REMARKS:
            yield f"and {len(remarks) - MAX_REMARKS:,} more remarks, in the JSON"


def _tensors(rows: Sequence[TensorFact], total: int, strong: Callable[[str], str]) -> Iterable[str]:
    if rows:
        table = [("size", "type", "shape", "kind", "live", "tensor")]
        table += [
            (format_size(t.nbytes), t.dtype, _shape(t), _kind(t), _live(t), label(t.name, NAME_WIDTH))
            for t in rows
        ]  # fmt: skip
        yield ""
        yield strong(f"Largest tensors ({len(rows):,} of {total:,}, without weights)")
        yield from _aligned(table, right=(0,))


def _operators(rows: Sequence[OperatorFact], total: int, strong: Callable[[str], str]) -> Iterable[str]:
    if rows:
        table = [("bytes", "MACs", "step", "type", "operator")]
        table += [
            (format_size(o.nbytes), f"{o.macs:,}", f"#{o.step}", label(o.op_type, 24), label(o.name, NAME_WIDTH))
            for o in rows
        ]
        yield ""
        yield strong(f"Largest operators ({len(rows):,} of {total:,})")
        yield from _aligned(table, right=(0, 1, 2))


def _control_flow(rows: Sequence[ControlFlow], total: int, strong: Callable[[str], str]) -> Iterable[str]:
    if rows:
        table = [("runs", "operators", "MACs", "live", "body", "type", "operator")]
        for row in rows:
            name = label(f"{row.inside}/{row.name}" if row.inside else row.name, NAME_WIDTH)
            kind = row.op_type if row.is_unfolded else f"{row.op_type}, one step"
            bodies = [
                (f"{b.runs:,}", f"{b.operators:,}", f"{b.macs:,}", format_size(b.peak_live_bytes), b.name, kind, name)
                for b in row.bodies
            ]
            if len(bodies) > MAX_BODIES:  # of a loop in which sizes change: one for each trip
                left_out = f"{len(bodies) - 2:,} more"
                bodies[1:-1] = [("...", "", "", "", left_out, kind, name)]
            table += bodies
        yield ""
        yield strong(f"Control flow ({len(rows):,} of {total:,}, one run of each body)")
        yield from _aligned(table, right=(0, 1, 2, 3))


def _aligned(table: Sequence[Sequence[str]], *, right: Sequence[int]) -> Iterable[str]:
    widths = [max(cells(row[i]) for row in table) for i in range(len(table[0]))]
    for row in table:
        placed = (rjust(c, w) if i in right else ljust(c, w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
        yield ("  " + "  ".join(placed)).rstrip()


def _shape(tensor: TensorFact) -> str:
    """Its sizes; a sequence has none."""
    if tensor.dtype in UNSIZED_DTYPES - {"string"}:
        return "-"
    return "x".join(map(str, tensor.shape)) or "scalar"


def _kind(tensor: TensorFact) -> str:
    """Where it comes from; an output that is a view of an input, or a constant, is both."""
    return f"{tensor.kind}, output" if tensor.is_output and tensor.kind is not BufferKind.OUTPUT else str(tensor.kind)


def _live(tensor: TensorFact) -> str:
    start = "start" if tensor.def_step is None else str(tensor.def_step)
    return f"{start}..{'-' if tensor.last_use is None else tensor.last_use}"


def _at(operator: OperatorFact | None) -> str:
    return "" if operator is None else f", at #{operator.step} {label(operator.name, NAME_WIDTH)}"


def _bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m"
