"""The section of ``inspect --tilings``: operators alone in a memory, how they are tiled best, and the floor."""

from collections.abc import Callable, Iterable

from spillprof.analysis.tilings import OperatorTiling, Tilings
from spillprof.ir.loop_nest import LoopNest, Tiling
from spillprof.ir.units import format_size
from spillprof.planning.tiling.modes import Mode
from spillprof.report.table import Table
from spillprof.report.text import count_of, label

_NAME_WIDTH = 32
_MAX_TYPES = 8


def tiling_section(found: Tilings, *, top: int, strong: Callable[[str], str] = str) -> Iterable[str]:
    """Lines of the section, with the ``top`` operators that move most; those that do not fit come first."""
    fit = [o for o in found.operators if o.mode is not None]
    moved = sum(o.mode.cost.moved_bytes for o in fit if o.mode is not None)
    floor, once = sum(o.floor.nbytes for o in fit), sum(o.floor.once_bytes for o in fit)
    yield ""
    yield strong(f"Each operator alone in {format_size(found.sram_bytes)} of SRAM, in the best tiling found")
    facts = [
        ("moved", f"{format_size(moved)} by {count_of(len(fit), 'operator')}, each from DRAM and back"),
        ("floor", f"{format_size(floor)}: no execution of these operators, one by one, moves less"),
        ("operands once", format_size(once)),
    ]
    if len(fit) < len(found.operators):
        most = max(o.smallest.cost.footprint_bytes for o in found.operators if o.mode is None)
        misfits = count_of(len(found.operators) - len(fit), "operator")
        facts.append(("does not fit", f"{misfits}, however tiled; {most:,} B of SRAM is the least for all"))
    if found.unknown:
        named = [f"{label(op_type, 24)} ({count:,})" for op_type, count in found.unknown[:_MAX_TYPES]]
        left = [f"{len(found.unknown) - _MAX_TYPES:,} more types"] if len(found.unknown) > _MAX_TYPES else []
        facts.append(("not tiled", f"loops unknown: {', '.join([*named, *left])}"))
    yield from Table(cells=[(f"  {name}", text) for name, text in facts], align="ll").lines(gap=3)
    rows = sorted(found.operators, key=lambda o: (o.mode is not None, -_moved(o), o.step))[:top]
    if rows:
        heads = ("moved", "floor", "ratio", "step", "type", "operator", "passes", "tiling")
        yield ""
        yield from Table(heads=heads, cells=[_cells(o) for o in rows], align="rrrrllll").lines(indent=2)


def _moved(operator: OperatorTiling) -> int:
    return operator.mode.cost.moved_bytes if operator.mode else operator.floor.nbytes


def _cells(operator: OperatorTiling) -> tuple[str, ...]:
    mode, least = operator.mode, operator.smallest
    name = (f"#{operator.step}", label(operator.op_type, 16), label(operator.name, _NAME_WIDTH))
    floor = format_size(operator.floor.nbytes)
    if mode is None:
        words = f"does not fit: {_loops(operator.nest, least.tiling)} needs {least.cost.footprint_bytes:,} B"
        return "-", floor, "-", *name, "-", words
    ratio = "-" if operator.ratio is None else f"{operator.ratio:.2f}"
    moved = format_size(mode.cost.moved_bytes)
    return moved, floor, ratio, *name, _passes(operator.nest, mode), _tiling_words(operator.nest, mode.tiling)


def _passes(nest: LoopNest, mode: Mode) -> str:
    """Operands that move more than once, those that move most often first."""
    often = [
        (times, label(operand.name, 16))
        for operand, times in zip(nest.operands, mode.cost.passes, strict=True)
        if times > 1
    ]
    return ", ".join(f"{name} {times:,}x" for times, name in sorted(often, key=lambda o: -o[0])) or "once each"


def _tiling_words(nest: LoopNest, tiling: Tiling) -> str:
    """Loops over tiles, what stays on-chip over the innermost one, and line buffers."""
    if not tiling.order:
        return "whole"
    stays = [label(o.name, 16) for o in nest.operands if tiling.order[-1] not in o.axes]
    lines = [label(nest.operands[i].name, 16) for i in sorted(tiling.line_buffered)]
    words = [_loops(nest, tiling)]
    words += [f"{', '.join(stays)} {'stays' if len(stays) == 1 else 'stay'}"] if stays else []
    words += [f"{', '.join(lines)} in line buffers"] if lines else []
    return "; ".join(words)


def _loops(nest: LoopNest, tiling: Tiling) -> str:
    """``m 4096 by 216, n 4096 by 293``: sizes and tiles of the loops, outermost first."""
    if not tiling.order:
        return "whole"
    return ", ".join(
        f"{label(nest.axes[a].name, 24)} {nest.axes[a].size:,} by {tiling.tile[a]:,}" for a in tiling.order
    )
