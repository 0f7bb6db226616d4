"""Modes and gaps chosen together, by an integer program for HiGHS.

For each step that is over capacity and whose loops are known, m_sk = 1 for the mode k that it takes. For each gap g of
a buffer, x_g = 1 if it is spent off-chip. A mode that streams a buffer in or out needs the gaps of that buffer before
and after its step spent. A spent gap is ended by a reload, unless the next use streams the buffer; one with a spent
gap is written once, unless its own step streams it out, or DRAM gets a copy anyway. At each step that is over capacity,
what the mode needs and the gaps that are kept on-chip fit the pool. The cost is bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, isfinite
from typing import NamedTuple

import numpy as np

from spillprof.ir.modes import StepMode
from spillprof.ir.program import BufferKind, Program
from spillprof.planning.budget import Budget
from spillprof.planning.gaps import GapKey, WriteBacks, gap_options, locked_bytes, streamed_uses, unspilled_bytes
from spillprof.planning.liveness import demand_by_step, lifetimes, resident_inputs
from spillprof.planning.optimal.row_model import RowModel, run_model
from spillprof.planning.options import Inputs, PlanningOptions, Release, Start, WriteBack
from spillprof.planning.tiling.menus import MOST_STREAMED, MenuItem, is_open, menu
from spillprof.planning.tiling.touched import reads_in_part_at

MOST_BINARIES = 4_000
"""Modes and gaps together up to which the integer program is tried."""

FEW_BINARIES = 300
"""Modes and gaps together up to which every lower bound asks the integer program."""

SOLVER = "MILP (HiGHS)"
_MOST_ENTRIES = 400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class JointChoice:
    """Modes by step, and the other gaps that are spent; ``is_optimal``: no others of the menus cost less."""

    modes: tuple[StepMode, ...]
    grown: tuple[StepMode, ...]  # the same operands streamed, with the fewest transfers that the room allows
    spent: frozenset[GapKey]
    cost: int  # spill bytes
    is_optimal: bool


@dataclass(slots=True, kw_only=True)
class _Gap:
    """A gap between two uses of a buffer, with or without steps between."""

    buffer: int
    before: int
    after: int | None  # None: it dies; + n_steps in the next inference
    idle: tuple[tuple[int, int], ...]
    size_bytes: int
    moved_bytes: int


class _Way(NamedTuple):
    """A way to run an open step."""

    streamed: frozenset[int]
    cost: float  # bytes beyond the compulsory
    demand_bytes: int


def choose_jointly(program: Program, options: PlanningOptions, budget: Budget) -> JointChoice | None:
    """The cheapest modes and gaps of a fitted program; None if it is too large or has no open step."""
    problem = _Problem(program, options)
    if not problem.is_open or problem.size > MOST_BINARIES or budget.is_spent:
        return None
    return problem.solve(budget)


def least_jointly(program: Program, options: PlanningOptions, budget: Budget, most: int = MOST_BINARIES) -> int | None:
    """Spill bytes that no choice of modes and gaps goes below; None if that is not known.

    Each set of operands that a step streams is given the smallest footprint and the fewest bytes
    of all its tilings, whether or not one has both: so the optimum is a lower bound, proven by the solver. Left out
    are problems of more than ``most`` modes and gaps, and what the model does not relax: workspaces and resident inputs
    at steps over capacity, writes at each eviction, open steps of which not all sets of operands are on the menu.
    """
    problem = _Problem(program, replace(options, release=Release.LAST_USE))
    if not problem.is_open or problem.size > most or budget.is_spent or not problem.is_relaxation:
        return None
    return problem.least(budget)


class _Problem:
    def __init__(self, program: Program, options: PlanningOptions) -> None:
        self._program, self._options = program, options
        self._copied = {b for b, _, _ in streamed_uses(program)}  # by steps of no known loops: written in any case
        self._pool = (program.capacity_bytes or 0) - program.reserved_bytes
        gaps = gap_options(program, options)
        unspilled = unspilled_bytes(program, options, gaps)
        self._full = [
            i
            for i, nbytes in enumerate(unspilled)
            if nbytes > self._pool or (is_open(program.steps[i]) and reads_in_part_at(program, i))
        ]
        self.menus = {i: menu(program, i, options.inputs) for i in self._full if is_open(program.steps[i])}
        self._gaps = list(self._all_gaps({(g.buffer, g.last_use): g.ranges for g in gaps}))
        self.size = sum(map(len, self.menus.values())) + len(self._gaps)

    def _all_gaps(self, idle: Mapping[GapKey, tuple[tuple[int, int], ...]]) -> Iterator[_Gap]:
        """Gaps that cover a full step, or that some item of a menu needs spent."""
        program, n = self._program, len(self._program.steps)
        touched = {(b, i) for i, items in self.menus.items() for item in items for b in item.streamed}
        full = np.zeros(n + 1, dtype=np.int64)
        full[1:][self._full] = 1
        before = np.cumsum(full)
        fixed = resident_inputs(program, PlanningOptions(inputs=self._options.inputs))
        goes_round = program.weights_persist and self._options.start is Start.STEADY
        for buffer, life in zip(program.buffers, lifetimes(program), strict=True):
            b, points = buffer.index, life.use_steps
            if b in fixed or buffer.dedicated or not buffer.size_bytes or not points:
                continue
            pairs: list[tuple[int, int | None]] = [(p, u) for p, u in pairwise(points)]
            if goes_round and buffer.kind is BufferKind.WEIGHT:
                pairs.append((points[-1], points[0] + n))
            elif (b, points[-1]) in idle:
                pairs.append((points[-1], None))
            for p, u in pairs:
                ranges = idle.get((b, p), ())
                covers = any(before[end] > before[start] for start, end in ranges)
                if covers or (b, p) in touched or (u is not None and (b, u % n) in touched):
                    yield _Gap(
                        buffer=b, before=p, after=u, idle=ranges, size_bytes=buffer.size_bytes,
                        moved_bytes=buffer.moved_bytes,
                    )  # fmt: skip

    @property
    def is_open(self) -> bool:
        """Whether some step's mode is to be chosen, and each such step has one."""
        return bool(self.menus) and all(self.menus.values())

    @property
    def is_relaxation(self) -> bool:
        """Whether ideal items make the optimum a bound on all plans."""
        steps, options = self._program.steps, self._options
        plain = options.writeback is WriteBack.ONCE and options.inputs is Inputs.ON_DEMAND
        if not plain or any(steps[i].workspaces or steps[i].holds for i in self._full):
            return False
        operands = ({b for item in items for b in item.streamed} for items in self.menus.values())
        return all(len(streamed) <= MOST_STREAMED for streamed in operands)

    def least(self, budget: Budget) -> int | None:
        """The bound of the integer program with ideal items; None if the solver has none."""
        ideal: dict[int, list[_Way]] = {}
        for i, items in self.menus.items():
            best: dict[frozenset[int], _Way] = {}
            for way in map(self._way, items):
                known = best.get(way.streamed, way)
                best[way.streamed] = _Way(
                    way.streamed, min(way.cost, known.cost), min(way.demand_bytes, known.demand_bytes)
                )
            ideal[i] = list(best.values())
        model = RowModel()
        self._fill(model, ideal)
        if len(model.indices) > _MOST_ENTRIES:
            return None
        solver, unit, _ = run_model(model, budget)
        bound = float(solver.getInfo().mip_dual_bound)
        return unit * max(0, ceil(bound - 0.01 - 1e-9 * abs(bound))) if isfinite(bound) else None

    def _way(self, item: MenuItem) -> _Way:
        return _Way(item.streamed, self._mode_cost(item), item.demand_bytes)

    def _fill(
        self, model: RowModel, ways: Mapping[int, Sequence[_Way]]
    ) -> tuple[dict[tuple[int, int], int], list[int]]:
        """The rows of the problem with these ways to run the open steps; columns by (step, way), and by gap."""
        mode_of = {(i, k): model.column(w.cost, integer=True) for i, own in ways.items() for k, w in enumerate(own)}
        gap_of = [model.column(0, integer=True) for _ in self._gaps]
        streams: dict[tuple[int, int], list[int]] = {}  # (buffer, step) -> columns of the ways that stream it
        for i, own in ways.items():
            for k, way in enumerate(own):
                for b in way.streamed:
                    streams.setdefault((b, i), []).append(mode_of[i, k])
            model.row({mode_of[i, k]: 1.0 for k in range(len(own))}, 1, 1)
        self._gap_rows(model, gap_of, streams)
        self._room_rows(model, ways, mode_of, gap_of)
        return mode_of, gap_of

    def solve(self, budget: Budget) -> JointChoice | None:
        import highspy

        model, program = RowModel(), self._program
        mode_of, gap_of = self._fill(model, {i: list(map(self._way, items)) for i, items in self.menus.items()})
        if len(model.indices) > _MOST_ENTRIES:
            return None
        solver, _, in_budget = run_model(model, budget)
        values = np.asarray(solver.getSolution().col_value)
        if len(values) != len(model.costs) or not np.isfinite(solver.getInfo().objective_function_value):
            return None
        taken = {i: item for i, k, item in self._items() if values[mode_of[i, k]] > 0.5}
        modes = [item.mode for item in taken.values() if item.mode is not None]
        free = self._free_bytes(taken, [values[x] > 0.5 for x in gap_of])
        grown = [self._grown(i, item, free[i]).mode for i, item in taken.items()]
        chosen = {(b, mode.step) for mode in modes for b in (each.buffer for each in mode.traffic)}
        n = len(program.steps)
        spent = {
            (gap.buffer, gap.before)
            for gap, column in zip(self._gaps, gap_of, strict=True)
            if values[column] > 0.5
            and gap.idle
            and (gap.buffer, gap.before) not in chosen
            and (gap.after is None or (gap.buffer, gap.after % n) not in chosen)
        }
        return JointChoice(
            modes=tuple(sorted(modes, key=lambda mode: mode.step)),
            grown=tuple(sorted((mode for mode in grown if mode is not None), key=lambda mode: mode.step)),
            spent=frozenset(spent),
            cost=round(float(np.dot(values, model.costs))),
            is_optimal=in_budget and solver.getModelStatus() == highspy.HighsModelStatus.kOptimal,
        )

    def _free_bytes(self, taken: Mapping[int, MenuItem], is_spent: Sequence[bool]) -> dict[int, int]:
        """Pool bytes that are left at each open step."""
        locked, demand = locked_bytes(self._program, self._options), demand_by_step(self._program)
        free = {i: self._pool - locked[i] + int(demand[i]) - item.demand_bytes for i, item in taken.items()}
        for gap, spent in zip(self._gaps, is_spent, strict=True):
            for start, end in () if spent else gap.idle:
                for i in self._full_between(start, end):
                    if i in free:
                        free[i] -= gap.size_bytes
        return free

    def _grown(self, i: int, item: MenuItem, free_bytes: int) -> MenuItem:
        """The item of the same operands that moves no more, in the fewest transfers that fit."""
        fitting = [
            other
            for other in self.menus[i]
            if other.streamed == item.streamed
            and other.demand_bytes <= item.demand_bytes + free_bytes
            and self._mode_cost(other) <= self._mode_cost(item)
        ]
        return min(fitting, key=transfers_of, default=item)

    def _items(self) -> Iterator[tuple[int, int, MenuItem]]:
        for i, items in self.menus.items():
            for k, item in enumerate(items):
                yield i, k, item

    def _mode_cost(self, item: MenuItem) -> float:
        """Bytes beyond the compulsory."""
        if item.mode is None:
            return 0.0
        lives, total = lifetimes(self._program), item.mode.weight_repeat_bytes
        for each in item.mode.traffic:
            buffer = self._program.buffers[each.buffer]
            total += each.read_bytes + each.written_bytes
            is_first = lives[each.buffer].use_steps[0] == item.mode.step
            if is_first and buffer.kind is BufferKind.INPUT and self._options.inputs is Inputs.ON_DEMAND:
                total -= min(each.read_bytes, buffer.moved_bytes)
            elif each.written_bytes and (buffer.kind is BufferKind.OUTPUT or each.buffer in self._copied):
                total -= min(each.written_bytes, buffer.moved_bytes)
        return float(total)

    def _gap_rows(self, model: RowModel, gap_of: Sequence[int], streams: Mapping[tuple[int, int], list[int]]) -> None:
        n, lives = len(self._program.steps), lifetimes(self._program)
        write_backs = WriteBacks(self._program, self._options.writeback)
        always = {(b, i) for b, i, _ in streamed_uses(self._program)}
        writes: dict[int, int] = {}
        for gap, x in zip(self._gaps, gap_of, strict=True):
            b = gap.buffer
            before = streams.get((b, gap.before), [])
            after = streams.get((b, gap.after % n), []) if gap.after is not None else []
            for columns in (before, after):
                if columns:
                    model.row({**dict.fromkeys(columns, 1.0), x: -1.0}, -np.inf, 0)
            ends_streamed = gap.after is not None and (b, gap.after % n) in always
            if ends_streamed or (b, gap.before) in always:
                model.row({x: 1.0}, 1, 1)
            if gap.after is not None and not ends_streamed:
                reload = model.column(gap.moved_bytes, integer=False)
                model.row({x: 1.0, reload: -1.0, **dict.fromkeys(after, -1.0)}, -np.inf, 0)
            if not write_backs.adds_write(b, evicted_before=False):
                continue
            again = write_backs.adds_write(b, evicted_before=True)
            if again or b not in writes:
                writes[b] = model.column(gap.moved_bytes, integer=False)
            out = before if again else streams.get((b, lives[b].use_steps[0]), [])
            model.row({x: 1.0, writes[b]: -1.0, **dict.fromkeys(out, -1.0)}, -np.inf, 0)

    def _room_rows(
        self,
        model: RowModel,
        ways: Mapping[int, Sequence[_Way]],
        mode_of: Mapping[tuple[int, int], int],
        gap_of: Sequence[int],
    ) -> None:
        locked = locked_bytes(self._program, self._options)
        demand = demand_by_step(self._program)
        over: dict[int, dict[int, int]] = {i: {} for i in self._full}
        for gap, x in zip(self._gaps, gap_of, strict=True):
            for start, end in gap.idle:
                for i in self._full_between(start, end):
                    over[i][x] = gap.size_bytes
        for i, gaps in over.items():
            room = self._pool - locked[i] - sum(gaps.values())
            entries: dict[int, float] = {x: -float(size) for x, size in gaps.items()}
            if i in ways:
                room += int(demand[i])
                entries |= {mode_of[i, k]: float(way.demand_bytes) for k, way in enumerate(ways[i])}
            model.row(entries, -np.inf, float(room))

    def _full_between(self, start: int, end: int) -> Sequence[int]:
        first, last = np.searchsorted(self._full, [start, end])
        return self._full[int(first) : int(last)]


def transfers_of(item: MenuItem) -> int:
    """Tiles that come and go."""
    return 0 if item.mode is None else sum(each.transfers for each in item.mode.traffic)
