"""Ejection search for addresses of very many blocks: eject and spill until all are placed, then take gaps back.

Blocks are placed longest-lived first, each where it touches its neighbours most. One that finds no hole ejects the
blocks in its way, small and short-lived ones first, and last of all those that found no hole before (as in guided
ejection search: Nagata and Bräysy, Operations Research Letters 37, 2009). After some attempts the cheapest gap is spent
off-chip, the block's own or those of the blocks at one address that are idle meanwhile; or the block moves inside SRAM
from hole to hole, if that is cheaper.

Then each gap that is off-chip is taken back in turn, and what is in the way ejected and spilled in the same manner; if
that costs no more, it stays, else all is undone. Moves that are no longer needed are undone too.
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
_ATTEMPTS_AGAIN = 5  # while gaps are taken back
_MOST_TURNS = 200  # to place all blocks after one gap is taken back
_WORK_A_TURN = 15  # units, and three quarters of one for each neighbour
_TURNS = (2_000, 20)  # to place all blocks at first: so many, and so many for each block
_IMPOSSIBLE = 1 << 44  # bytes
_HOMELESS = 2  # times the cost of a move: a block that moves away has yet to find another address


@dataclass(frozen=True, slots=True, kw_only=True)
class EjectionEffort:
    """When ejection search ends: after ``sweeps`` over all gaps, or with the budget."""

    sweeps: int
    budget: Budget = field(default_factory=Budget)


class EjectionPacker:
    """Packs the blocks of a program with some gaps off-chip, and spills what that needs besides."""

    def __init__(
        self,
        program: Program,
        builder: BlockBuilder,
        options: PlanningOptions,
        off: Mapping[GapKey, int],
        move_cost: float = float("inf"),
    ):
        self._program, self._given = program, off
        self._state = PackingState(program, builder, options, off, move_cost)
        self._attempts: dict[int, int] = {}
        self._patience = _ATTEMPTS
        self._tabu: GapKey | None = None
        self._given_bytes = self._state.spill_bytes
        self._work = 0  # since it was last taken off the budget
        self.complete = self._place_all(_TURNS[0] + _TURNS[1] * len(self._state))

    @property
    def spill_bytes(self) -> int:
        """Bytes that the gaps now off-chip move."""
        return self._state.spill_bytes

    def improve(self, effort: EjectionEffort) -> bool:
        """Take gaps back, in order of time, and undo moves, sweep by sweep, until nothing helps.

        False if the budget ended it.
        """
        self._patience = _ATTEMPTS_AGAIN
        for _ in range(effort.sweeps if self.complete else 0):
            before = self._state.cost
            for gap in sorted(self._state.off, key=lambda gap: (gap[1], gap[0])):
                effort.budget.spend(self._work)
                self._work = 0
                if effort.budget.is_spent:
                    return False
                if gap in self._state.off and gap in self._state.gaps:
                    self._take_back(gap)
            for move in self._state.moves:
                if self._state.has(move):
                    self._join(move)
            if self._state.cost == before:
                break
        return True

    def packing(self) -> Packing:
        """Addresses and gaps as they are now."""
        state = self._state
        addresses: dict[Owner, list[int]] = {}
        moves: dict[int, dict[int, int]] = {}
        for k, address in state.addresses().items():
            block = state.blocks[k]
            for b, tick in block.owners:
                if block.is_moved and isinstance(b, int):
                    moves.setdefault(tick // PHASES_PER_STEP, {})[b] = address
                else:
                    addresses.setdefault((b, tick), []).append(address)
        in_use = self._in_use_by_step()
        off = {
            gap: self._given[gap] if gap in self._given else _fullest(self._state.gaps[gap], in_use)
            for gap in sorted(state.off)
        }
        extra_bytes = state.spill_bytes - self._given_bytes
        return Packing(addresses=addresses, moves=moves, off=off, complete=self.complete, extra_bytes=extra_bytes)

    def _in_use_by_step(self) -> list[int]:
        change = [0] * (PHASES_PER_STEP * len(self._program.steps) + 1)
        for k in self._state.addresses():
            block = self._state.blocks[k]
            for start, end in block.ticks:
                change[start] += block.size_bytes
                change[end] -= block.size_bytes
        in_use = np.cumsum(change)[:-1].reshape(-1, PHASES_PER_STEP).max(axis=1)
        found: list[int] = in_use.tolist()
        return found

    def _take_back(self, gap: GapKey) -> None:
        state = self._state
        state.begin()
        self._attempts.clear()
        self._tabu, most = gap, state.cost
        state.take_back(self._state.gaps[gap])
        if self._place_all(_MOST_TURNS, most) and state.cost <= most:
            state.keep()
        else:
            state.undo()
        self._tabu = None

    def _join(self, move: ChainMove) -> None:
        state = self._state
        state.begin()
        state.join(move)
        k = state.next_waiting()
        place = None if k is None else state.neighbours(k).hole(state.blocks[k])
        if k is None or place is None:
            state.undo()
        else:
            state.place(k, place)
            state.keep()

    def _place_all(self, most_turns: int, most_cost: float = float("inf")) -> bool:
        """Place all waiting blocks; False if that takes more turns or costs more."""
        for _ in range(most_turns):
            k = self._state.next_waiting()
            if k is None:
                return True
            if self._state.cost > most_cost:
                return False
            self._turn(k)
        return self._state.next_waiting() is None

    def _turn(self, k: int) -> None:
        state = self._state
        near = state.neighbours(k)
        self._work += _WORK_A_TURN + len(near.ids) * 3 // 4
        place = near.hole(state.blocks[k])
        if place is not None:
            state.place(k, place)
            return
        if self._relieve(k):
            return
        attempts = self._attempts[k] = self._attempts.get(k, 0) + 1
        if attempts > self._patience:
            self._attempts[k] = 0
            if self._spill(k, near):
                return
        state.eject(k, near)

    def _relieve(self, k: int) -> bool:
        """Where a tick of the block is over capacity, spend the cheapest gap that mends it; False if there is none."""
        state = self._state
        lacking, tick = state.lacking(k)
        if lacking <= 0:
            return False
        options = [gap for gap in state.idle_at(tick) if gap.key != self._tabu]
        if not options:
            return False
        gap = min(options, key=lambda g: (g.size_bytes < lacking, state.price(g), -g.size_bytes * g.length, g.buffer))
        state.take_off(gap)
        if state.is_there(k):
            state.wait(k)
        return True

    def _spill(self, k: int, near: Neighbours) -> bool:
        """Make room for block ``k`` by the cheapest gaps or moves, its own or its neighbours'; False if none can."""
        state = self._state
        block = state.blocks[k]
        options = [gap for gap in state.cuts(k) if gap.key != self._tabu]
        own = min(options, key=lambda gap: (state.price(gap), -gap.length, gap.buffer, gap.last_use), default=None)
        leaving: dict[int, GapOption | ChainMove] = {}
        prices = np.full(len(near.ids), _IMPOSSIBLE, dtype=np.int64)
        for position, other in enumerate(near.ids.tolist()):
            gap, move = state.cut_beside(k, other, self._tabu), state.move_beside(k, other)
            if gap is not None:
                leaving[other], prices[position] = gap, state.price(gap)
            if move is not None:
                moving = math.ceil(_HOMELESS * state.move_cost * state.move_bytes(other))
                if moving < prices[position]:
                    leaving[other], prices[position] = move, moving
        place, price = near.cheapest(block.size_bytes, prices)
        own_price = _IMPOSSIBLE if own is None else state.price(own)
        a_move, others = state.move_cost * state.move_bytes(k), min(price, own_price)
        places = state.pieces(k, near) if a_move < others else []
        if places and a_move * (len(places) - 1) < others:
            state.place_pieces(k, places)
        elif price < _IMPOSSIBLE and price <= own_price:
            for other in near.inside(place, block.size_bytes):
                if isinstance(leaves := leaving[other], GapOption):
                    state.take_off(leaves)
                else:
                    state.move_away(leaves)
            state.place(k, place)
        elif own is not None:
            state.take_off(own)
        else:
            return False
        return True


def _fullest(gap: GapOption, in_use: list[int]) -> int:
    """The step of the gap in which most bytes are in use."""
    return max((i for start, end in gap.ranges for i in range(start, end)), key=in_use.__getitem__)
