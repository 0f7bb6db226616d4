"""Modes in plan files: loops over tiles by the names of their axes, outermost first, and what they move.

A plan of somebody else's may leave out all figures: they are counted from the loops.
"""

from collections.abc import Callable, Sequence
from typing import Any

from spillprof.ir.errors import PlanError
from spillprof.ir.loop_nest import Tiling
from spillprof.ir.modes import OperandTraffic, StepMode, StepNest
from spillprof.ir.program import Program

_FIGURES = ("footprint_bytes", "tiles", "weight_passes", "weight_repeat_bytes")
_OF_TRAFFIC = ("read_bytes", "written_bytes", "passes", "transfers")
MODE_KEYS = ("step", "loops", "line_buffered", "in_two_passes", *_FIGURES, "traffic")
"""Keys of a mode; the first two and ``traffic`` are required."""


def mode_to_json(program: Program, mode: StepMode, names: Sequence[str]) -> dict[str, Any]:
    """The mode as JSON values, buffers by these names."""
    nest = _nest(program, mode.step, in_two_passes=mode.in_two_passes)
    axes = axis_names(nest)
    return {
        "step": mode.step,
        "loops": [{"axis": axes[axis], "tile": mode.tiling.tile[axis]} for axis in mode.tiling.order],
        "line_buffered": [nest.nest.operands[p].name for p in sorted(mode.tiling.line_buffered)],
        "in_two_passes": mode.in_two_passes,
        **{key: getattr(mode, key) for key in _FIGURES},
        "traffic": [
            {"buffer": names[each.buffer], **{key: getattr(each, key) for key in _OF_TRAFFIC}} for each in mode.traffic
        ],
    }


def axis_names(nest: StepNest) -> list[str]:
    """Names of the axes, with ``#index`` where several share one."""
    names = [axis.name for axis in nest.nest.axes]
    return [name if names.count(name) == 1 else f"{name}#{k}" for k, name in enumerate(names)]


def mode_from_json(
    program: Program,
    table: Any,
    where: str,
    buffer: Callable[[object, str], int],
    integer: Callable[[object, str], int],
) -> tuple[StepMode, bool]:
    """A mode, and whether it states all its figures. ``PlanError`` if it is malformed.

    ``buffer`` and ``integer`` read a value, or raise the error about it.
    """
    for key in ("step", "loops", "traffic"):
        if key not in table:
            raise PlanError(f"{where} lacks '{key}'", where=[where], hint="required: step, loops, traffic")
    for key in table:
        if key not in MODE_KEYS:
            raise PlanError(f"{where} has an unknown key '{key}'", where=[where], hint=f"known: {', '.join(MODE_KEYS)}")
    step = integer(table["step"], f"{where}.step")
    if step >= len(program.steps):
        raise PlanError(f"{where}.step is {step}, must be 0 to {len(program.steps) - 1}", where=[where])
    nest = _nest(program, step, in_two_passes=table.get("in_two_passes", False) is True)
    tile, order = _loops(nest, table["loops"], where, integer)
    entries = _listed(table["traffic"], f"{where}.traffic")
    traffic, is_counted = [], not all(key in table for key in _FIGURES)
    for k, entry in enumerate(entries):
        at = f"{where}.traffic[{k}]"
        if not isinstance(entry, dict) or "buffer" not in entry or not entry.keys() <= {"buffer", *_OF_TRAFFIC}:
            raise PlanError(f"{at} must be an object with a buffer and figures", where=[at])
        is_counted = is_counted or not all(key in entry for key in _OF_TRAFFIC)
        figures = {key: integer(entry.get(key, 1), f"{at}.{key}") for key in _OF_TRAFFIC}
        traffic.append(OperandTraffic(buffer=buffer(entry["buffer"], f"{at}.buffer"), **figures))
    operands = (*program.steps[step].reads, *program.steps[step].writes)
    streamed = {each.buffer for each in traffic}
    held = nest.operands_at([place for place, b in enumerate(operands) if b not in streamed])
    figures = {key: integer(table.get(key, 1), f"{where}.{key}") for key in _FIGURES}
    mode = StepMode(
        step=step,
        tiling=Tiling(tile=tile, order=order, held=held, line_buffered=_line_buffered(nest, table, where)),
        traffic=tuple(traffic),
        in_two_passes=table.get("in_two_passes", False) is True,
        **figures,
    )
    return mode, not is_counted


def _nest(program: Program, step: int, *, in_two_passes: bool) -> StepNest:
    nest = program.steps[step].nest
    found = nest.in_two_passes if nest is not None and in_two_passes else nest
    if found is None:
        name = program.steps[step].name
        raise PlanError(f"step {step} ({name}) cannot run in tiles: its loops are not known", hint="leave out its mode")
    return found


def _loops(
    nest: StepNest, raw: Any, where: str, integer: Callable[[object, str], int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    names = axis_names(nest)
    tile, order = [axis.size for axis in nest.nest.axes], []
    for k, loop in enumerate(_listed(raw, f"{where}.loops")):
        at = f"{where}.loops[{k}]"
        if not isinstance(loop, dict) or loop.keys() != {"axis", "tile"} or loop["axis"] not in names:
            raise PlanError(f"{at} must name an axis and a tile", where=[at], hint=f"axes: {', '.join(names)}")
        axis = names.index(loop["axis"])
        tile[axis] = integer(loop["tile"], f"{at}.tile")
        order.append(axis)
    return tuple(tile), tuple(order)


def _line_buffered(nest: StepNest, table: Any, where: str) -> frozenset[int]:
    roles = [operand.name for operand in nest.nest.operands]
    found = _listed(table.get("line_buffered", []), f"{where}.line_buffered")
    for name in found:
        if name not in roles:
            raise PlanError(f"{where}.line_buffered: no operand '{name}'", where=[where], hint=f"one of: {roles}")
    return frozenset(roles.index(name) for name in found)


def _listed(raw: Any, where: str) -> list[Any]:
    if not isinstance(raw, list):
        raise PlanError(f"{where} must be a list", where=[where])
    return raw
