"""Addresses for very many blocks: eject and spill until all are placed, then bring gaps back while that saves bytes.

Blocks are placed longest first, each where it touches most. One that finds no hole ejects what is in its way, the
smallest and shortest first and least of all what has itself found no hole before (as in guided ejection search: Nagata
and Bräysy, Operations Research Letters 37, 2009). After some attempts the cheapest gap is spent off-chip, of the block
itself or of those that lie in one place and are idle all the while; or the block is moved inside the memory from hole
to hole, if that is cheaper.

Then each gap that is off-chip is brought back in turn, and what is in the way ejected and spilled in the same manner;
if that costs less, it stays, else all is undone. Moves that are needed no more are undone too.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from spillprof.ir.program import PHASES_PER_STEP, Program
from spillprof.planning.blocks import BlockBuilder
from spillprof.planning.budget import Budget
from spillprof.planning.ejection.neighbours import Neighbours
from spillprof.planning.ejection.state import ChainMove, PackingState
from spillprof.planning.gaps import GapKey, GapOption
from spillprof.planning.options import PlanningOptions
from spillprof.planning.packing import Packing
from spillprof.planning.placements import Owner

_ATTEMPTS = 100  # of a block to be placed before something is spilled for it
_ATTEMPTS_AGAIN = 5  # while gaps are brought back
_MOST_TURNS = 200  # of an exchange
_WORK_A_TURN = 15  # units, and three quarters of one for each block beside
_TURNS = (2_000, 20)  # in all, to place all blocks: so many, and for each block
_IMPOSSIBLE = 1 << 44  # bytes
_HOMELESS = 2  # times as dear as a move alone: what moves out of the way has to find another place yet


@dataclass(frozen=True, slots=True, kw_only=True)
class EjectionEffort:
    """When exchanges end: after ``sweeps`` over all gaps, or with the budget."""

    sweeps: int
    budget: Budget = field(default_factory=Budget)


class EjectionPacker:
    """The blocks of a program with some gaps off-chip, all placed; what that needed is spilled too."""

    def __init__(
        self,
        program: Program,
        builder: BlockBuilder,
        options: PlanningOptions,
        off: Mapping[GapKey, int],
        move_cost: float = float("inf"),
    ):
        self._program, self._given = program, off
        self._floor = PackingState(program, builder, options, off, move_cost)
        self._attempts: dict[int, int] = {}
        self._patience = _ATTEMPTS
        self._tabu: GapKey | None = None
        self._given_bytes = self._floor.spill_bytes
        self._work = 0  # since it was last taken off the budget
        self.complete = self._place_all(_TURNS[0] + _TURNS[1] * len(self._floor))

    @property
    def spill_bytes(self) -> int:
        """Of the gaps that are off-chip now."""
        return self._floor.spill_bytes

    def improve(self, effort: EjectionEffort) -> bool:
        """Bring gaps back, in order of time, and undo moves, sweep by sweep, until nothing helps.

        False if the budget ended it.
        """
        self._patience = _ATTEMPTS_AGAIN
        for _ in range(effort.sweeps if self.complete else 0):
            before = self._floor.cost
            for gap in sorted(self._floor.off, key=lambda gap: (gap[1], gap[0])):
                effort.budget.spend(self._work)
                self._work = 0
                if effort.budget.is_spent:
                    return False
                if gap in self._floor.off and gap in self._floor.gaps:
                    self._bring_back(gap)
            for move in self._floor.moves:
                if self._floor.has(move):
                    self._join(move)
            if self._floor.cost == before:
                break
        return True

    def packing(self) -> Packing:
        """Addresses and gaps as they are now."""
        floor = self._floor
        addresses: dict[Owner, list[int]] = {}
        moves: dict[int, dict[int, int]] = {}
        for k, address in floor.addresses().items():
            block = floor.blocks[k]
            for b, tick in block.owners:
                if block.is_moved and isinstance(b, int):
                    moves.setdefault(tick // PHASES_PER_STEP, {})[b] = address
                else:
                    addresses.setdefault((b, tick), []).append(address)
        in_use = self._in_use_by_step()
        off = {
            gap: self._given[gap] if gap in self._given else _fullest(self._floor.gaps[gap], in_use)
            for gap in sorted(floor.off)
        }
        extra_bytes = floor.spill_bytes - self._given_bytes
        return Packing(addresses=addresses, moves=moves, off=off, complete=self.complete, extra_bytes=extra_bytes)

    def _in_use_by_step(self) -> list[int]:
        change = [0] * (PHASES_PER_STEP * len(self._program.steps) + 1)
        for k in self._floor.addresses():
            block = self._floor.blocks[k]
            for start, end in block.ticks:
                change[start] += block.size_bytes
                change[end] -= block.size_bytes
        in_use = np.cumsum(change)[:-1].reshape(-1, PHASES_PER_STEP).max(axis=1)
        found: list[int] = in_use.tolist()
        return found

    def _bring_back(self, gap: GapKey) -> None:
        floor = self._floor
        floor.begin()
        self._attempts.clear()
        self._tabu, most = gap, floor.cost
        floor.take_back(self._floor.gaps[gap])
        if self._place_all(_MOST_TURNS, most) and floor.cost <= most:
            floor.keep()
        else:
            floor.undo()
        self._tabu = None

    def _join(self, move: ChainMove) -> None:
        floor = self._floor
        floor.begin()
        floor.join(move)
        k = floor.next_waiting()
        place = None if k is None else floor.beside(k).hole(floor.blocks[k])
        if k is None or place is None:
            floor.undo()
        else:
            floor.place(k, place)
            floor.keep()

    def _place_all(self, most_turns: int, most_cost: float = float("inf")) -> bool:
        """Whether all that waited is placed, in so many turns and for no more bytes."""
        for _ in range(most_turns):
            k = self._floor.next_waiting()
            if k is None:
                return True
            if self._floor.cost > most_cost:
                return False
            self._turn(k)
        return self._floor.next_waiting() is None

    def _turn(self, k: int) -> None:
        floor = self._floor
        beside = floor.beside(k)
        self._work += _WORK_A_TURN + len(beside.ids) * 3 // 4
        place = beside.hole(floor.blocks[k])
        if place is not None:
            floor.place(k, place)
            return
        if self._relieve(k):
            return
        attempts = self._attempts[k] = self._attempts.get(k, 0) + 1
        if attempts > self._patience:
            self._attempts[k] = 0
            if self._spill(k, beside):
                return
        floor.eject(k, beside)

    def _relieve(self, k: int) -> bool:
        """Where the memory cannot hold all, wherever it lies: spend the cheapest gap that mends it, if there is one."""
        floor = self._floor
        lacking, tick = floor.lacking(k)
        if lacking <= 0:
            return False
        options = [gap for gap in floor.idle_at(tick) if (gap.buffer, gap.last_use) != self._tabu]
        if not options:
            return False
        gap = min(options, key=lambda g: (g.size_bytes < lacking, floor.price(g), -g.size_bytes * g.length, g.buffer))
        floor.take_off(gap)
        if floor.is_there(k):
            floor.wait(k)
        return True

    def _spill(self, k: int, beside: Neighbours) -> bool:
        """Make room for block ``k`` by what seems cheapest, gaps or moves, its own or others'; False if none can."""
        floor = self._floor
        block = floor.blocks[k]
        options = [gap for gap in floor.cuts(k) if (gap.buffer, gap.last_use) != self._tabu]
        own = min(options, key=lambda gap: (floor.price(gap), -gap.length, gap.buffer, gap.last_use), default=None)
        leaving: dict[int, GapOption | ChainMove] = {}
        prices = np.full(len(beside.ids), _IMPOSSIBLE, dtype=np.int64)
        for position, other in enumerate(beside.ids.tolist()):
            gap, move = floor.cut_beside(k, other, self._tabu), floor.move_beside(k, other)
            if gap is not None:
                leaving[other], prices[position] = gap, floor.price(gap)
            if move is not None:
                moving = math.ceil(_HOMELESS * floor.move_cost * floor.move_bytes(other))
                if moving < prices[position]:
                    leaving[other], prices[position] = move, moving
        place, price = beside.cheapest(block.size_bytes, prices)
        own_price = _IMPOSSIBLE if own is None else floor.price(own)
        a_move, others = floor.move_cost * floor.move_bytes(k), min(price, own_price)
        places = floor.pieces(k, beside) if a_move < others else []
        if places and a_move * (len(places) - 1) < others:
            floor.place_pieces(k, places)
        elif price < _IMPOSSIBLE and price <= own_price:
            for other in beside.inside(place, block.size_bytes):
                if isinstance(leaves := leaving[other], GapOption):
                    floor.take_off(leaves)
                else:
                    floor.move_away(leaves)
            floor.place(k, place)
        elif own is not None:
            floor.take_off(own)
        else:
            return False
        return True


def _fullest(gap: GapOption, in_use: list[int]) -> int:
    """The step of the gap in which most bytes are in use."""
    return max((i for start, end in gap.ranges for i in range(start, end)), key=in_use.__getitem__)
