"""The best tiling of each operator alone in a memory, beside the floor that no execution of it passes."""

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from spillprof.ir.graph import Graph
from spillprof.ir.loop_nest import LoopNest, Tiling
from spillprof.ir.target import Target
from spillprof.lowering.lower import make_draft
from spillprof.lowering.nests import task_nests
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.tiling.cost import TileBuffers
from spillprof.planning.tiling.floors import IoFloor, io_floor
from spillprof.planning.tiling.modes import Mode, modes, smallest_mode


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTiling:
    """A step alone in the memory: its operands start in DRAM, its outputs end there."""

    step: int
    name: str
    op_type: str
    nest: LoopNest
    mode: Mode | None  # moves the fewest bytes of the tilings that were searched; None: no tile fits
    smallest: Mode  # of the smallest footprint
    floor: IoFloor

    @property
    def ratio(self) -> float | None:
        """Bytes moved by the floor; None if no tile fits, or nothing has to move."""
        return self.mode.cost.moved_bytes / self.floor.nbytes if self.mode and self.floor.nbytes else None

    def to_json(self) -> dict[str, Any]:
        """As JSON values, a row of ``inspect --tilings --json``."""
        cost = self.mode.cost if self.mode else None
        return {
            "step": self.step,
            "name": self.name,
            "op_type": self.op_type,
            "floor_bytes": self.floor.nbytes,
            "floor_from": self.floor.theorem,
            "once_bytes": self.floor.once_bytes,
            "moved_bytes": cost and cost.moved_bytes,
            "footprint_bytes": cost and cost.footprint_bytes,
            "tiles": cost and cost.tiles,
            "min_sram_bytes": self.smallest.cost.footprint_bytes,
            "loops": self.mode and _loops(self.nest, self.mode.tiling),
            "operands": cost and [
                {
                    "name": operand.name,
                    "bytes": operand.nbytes,
                    "passes": cost.passes[i],
                    "read_bytes": cost.read_bytes[i],
                    "written_bytes": cost.written_bytes[i],
                    "is_output": operand.is_output,
                    "is_line_buffered": self.mode is not None and i in self.mode.tiling.line_buffered,
                }
                for i, operand in enumerate(self.nest.operands)
            ],
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Tilings:
    """All steps, each alone in ``sram_bytes``. ``unknown`` counts steps of no known loops, by type."""

    sram_bytes: int
    operators: tuple[OperatorTiling, ...]
    unknown: tuple[tuple[str, int], ...]

    def to_json(self) -> dict[str, Any]:
        """As JSON values, ``tiling`` of ``inspect --tilings --json``."""
        return {
            "sram_bytes": self.sram_bytes,
            "operators": [operator.to_json() for operator in self.operators],
            "without_loops": [{"op_type": op_type, "count": count} for op_type, count in self.unknown],
        }


def tile_operators(graph: Graph, target: Target, options: LoweringOptions) -> Tilings:
    """Tiles each step of the graph as lowered, alone in the target's whole SRAM.

    Raises ``ModelError`` and ``UsageError`` as ``lower`` does.
    """
    draft = make_draft(graph, target, options)
    operators, unknown = [], Counter[str]()
    for step, (task, found) in enumerate(zip(draft.tasks, task_nests(draft), strict=True)):
        if found is None:
            unknown[task.lead.op_type] += 1
            continue
        nest, buffers = found.nest, TileBuffers.of(target, found.nest)
        best = next(iter(modes(nest, target.sram_bytes, buffers)), None)
        floor = io_floor(
            nest, target.sram_bytes, accumulator_bits=buffers.accumulator_bits, storages=found.storages
        )  # of any execution, in two passes or not
        if best is None and found.in_two_passes is not None:
            nest = found.in_two_passes.nest
            best = next(iter(modes(nest, target.sram_bytes, buffers)), None)
        operators.append(
            OperatorTiling(
                step=step,
                name=task.lead.name,
                op_type=task.lead.op_type,
                nest=nest,
                mode=best,
                smallest=_smallest(nest, buffers),
                floor=floor,
            )
        )
    return Tilings(sram_bytes=target.sram_bytes, operators=tuple(operators), unknown=tuple(unknown.most_common()))


@lru_cache(maxsize=1024)
def _smallest(nest: LoopNest, buffers: TileBuffers) -> Mode:
    return smallest_mode(nest, buffers)


def _loops(nest: LoopNest, tiling: Tiling) -> list[dict[str, Any]]:
    """The loops over tiles, outermost first."""
    trips = tiling.trips(nest)
    return [
        {"axis": nest.axes[a].name, "size": nest.axes[a].size, "tile": tiling.tile[a], "trips": trips[a]}
        for a in tiling.order
    ]
