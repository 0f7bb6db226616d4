"""The best of all choices of modes and gaps of a tiny program, by trying every one. Shares no code with planners."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np

from spillprof.ir.loop_nest import Tiling
from spillprof.ir.modes import OperandTraffic, StepMode
from spillprof.ir.program import BufferKind, Program

Uses = set[tuple[int, int]]
"""(buffer, step)."""

Choice = Mapping[int, StepMode | None]
"""The mode of each step; None: it holds all of its operands."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Steps between two uses of a buffer; of a weight that stays, also from the last use to the next first one."""

    buffer: int
    before: int
    after: int
    idle: tuple[int, ...]  # steps between


class AllChoices:
    """What choices of modes and gaps move in a program that is fitted to a memory; weights persist in steady state."""

    def __init__(self, program: Program) -> None:
        assert not any(step.holds for step in program.steps)
        assert all(w.purpose == "accumulator" for step in program.steps for w in step.workspaces)
        assert not any(buffer.dedicated for buffer in program.buffers)
        self._program = program
        self._pool = (program.capacity_bytes or 0) - program.reserved_bytes
        self._uses = [[i for i, s in enumerate(program.steps) if b in (*s.reads, *s.writes)] for b in self._all_buffers]
        self._once = {
            i: self._streamed_once(i) for i, s in enumerate(program.steps) if s.streamed_reads + s.streamed_writes
        }
        self.gaps = [gap for b in self._all_buffers for gap in self._gaps_of(b)]

    @property
    def _all_buffers(self) -> range:
        return range(len(self._program.buffers))

    def _streamed_once(self, i: int) -> StepMode:
        """What fitting made of a step without known loops, as if it were a mode."""
        step, buffers = self._program.steps[i], self._program.buffers
        reads = [(b, buffers[b].moved_bytes, 0) for b in step.streamed_reads]
        writes = [(b, 0, buffers[b].moved_bytes) for b in step.streamed_writes]
        return StepMode(
            step=i,
            tiling=Tiling(tile=(), order=()),
            footprint_bytes=step.stream_staging_bytes,
            tiles=1,
            traffic=tuple(
                OperandTraffic(buffer=b, read_bytes=read, written_bytes=written, passes=1, transfers=1)
                for b, read, written in (*reads, *writes)
            ),
        )

    def _streamed(self, choice: Choice) -> Uses:
        return {(each.buffer, mode.step) for mode in choice.values() if mode for each in mode.traffic}

    def _gaps_of(self, b: int) -> Iterator[Gap]:
        uses, n = self._uses[b], len(self._program.steps)
        for before, after in pairwise(uses):
            yield Gap(b, before, after, tuple(range(before + 1, after)))
        if uses and self._program.weights_persist and self._program.buffers[b].kind is BufferKind.WEIGHT:
            yield Gap(b, uses[-1], uses[0], (*range(uses[-1] + 1, n), *range(uses[0])))

    def over_full(self) -> list[int]:
        """Steps that do not fit if all operands are held and no gap is spent that may be kept."""
        needed = [self.demand(i, self._once.get(i)) for i in range(len(self._program.steps))]
        streamed = self._streamed(self._once)
        for gap in self.gaps:
            for i in gap.idle if not _touches(gap, streamed) else ():
                needed[i] += self._program.buffers[gap.buffer].size_bytes
        return [i for i, nbytes in enumerate(needed) if nbytes > self._pool]

    def least_pool(self, choice: Choice) -> int:
        """Pool bytes that a choice of modes needs if every gap is spent."""
        return max(self.demand(i, {**choice, **self._once}.get(i)) for i in range(len(self._program.steps)))

    def best(self, ways: Mapping[int, Sequence[StepMode | None]]) -> int | None:
        """The fewest bytes beyond the compulsory over all choices of these ways; None if none fits."""
        least: int | None = None
        for chosen in product(*ways.values()):
            least = self.better(dict(zip(ways, chosen, strict=True)), least)
        return least

    def better(self, choice: Choice, least: int | None = None) -> int | None:
        """The fewest bytes beyond the compulsory with these modes over all sets of gaps; ``least`` if that is less."""
        choice = {**choice, **self._once}
        streamed = self._streamed(choice)
        spent = [_touches(gap, streamed) for gap in self.gaps]
        if least is not None and self._moved(choice, streamed, np.array([spent]))[0] >= least:
            return least  # more gaps only add to it
        free = [k for k, gap in enumerate(self.gaps) if gap.idle and not spent[k]]
        some = np.array([*product((False, True), repeat=len(free))], dtype=bool).reshape(2 ** len(free), len(free))
        sets = np.tile(np.array(spent, dtype=bool), (len(some), 1))
        sets[:, free] = some
        fits = (self._needed(choice, sets) <= self._pool).all(axis=1)
        if not fits.any():
            return least
        found = int(self._moved(choice, streamed, sets[fits]).min())
        return found if least is None else min(found, least)

    def demand(self, i: int, mode: StepMode | None) -> int:
        """Pool bytes of a step in this mode, without idle buffers."""
        step, size = self._program.steps[i], [buffer.size_bytes for buffer in self._program.buffers]
        streamed = {each.buffer for each in mode.traffic} if mode else set()
        reads, writes = [b for b in step.reads if b not in streamed], [b for b in step.writes if b not in streamed]
        over: set[int] = set()
        pairs = {update.new: update.old for update in step.updates}
        for new in writes:
            if new in pairs and pairs[new] in reads:
                over.add(pairs[new])
            elif new in pairs:  # its operand passes in tiles: another one that dies and is as large
                over |= set(
                    [b for b in step.may_overwrite if self._can_take(b, new, i, {*reads} - {*pairs.values()})][:1]
                )
        results = sum(size[b] for b in writes)
        staying = sum(size[b] for b in reads if b not in over)
        if writes or not mode:  # accumulators of results that pass in tiles are part of the tiles
            results += sum(w.size_bytes for w in step.workspaces)
        return max(sum(size[b] for b in reads), staying + results) + (mode.footprint_bytes if mode else 0)

    def _can_take(self, old: int, new: int, i: int, held: set[int]) -> bool:
        same = self._program.buffers[old].size_bytes == self._program.buffers[new].size_bytes
        return old in held and same and self._uses[old][-1] == i

    def _needed(self, choice: Choice, sets: np.ndarray) -> np.ndarray:
        """Pool bytes by set of gaps and step."""
        idle = np.zeros((len(self.gaps), len(self._program.steps)), dtype=np.int64)
        for k, gap in enumerate(self.gaps):
            idle[k, list(gap.idle)] = self._program.buffers[gap.buffer].size_bytes
        own = [self.demand(i, choice.get(i)) for i in range(len(self._program.steps))]
        return np.array(own, dtype=np.int64) + (~sets).astype(np.int64) @ idle

    def _moved(self, choice: Choice, streamed: Uses, sets: np.ndarray) -> np.ndarray:
        """Bytes beyond the compulsory, by set of gaps."""
        buffers = self._program.buffers
        fixed = sum(mode.weight_repeat_bytes for mode in choice.values() if mode)
        for mode in choice.values():
            for each in mode.traffic if mode else ():
                buffer, is_first = buffers[each.buffer], self._uses[each.buffer][0] == mode.step if mode else False
                due = 0
                if is_first and buffer.kind is BufferKind.INPUT:
                    due = min(each.read_bytes, buffer.moved_bytes)
                elif is_first and buffer.kind is BufferKind.OUTPUT:
                    due = buffer.moved_bytes
                fixed += each.read_bytes + each.written_bytes - due
        reload = [0 if (g.buffer, g.after) in streamed else buffers[g.buffer].moved_bytes for g in self.gaps]
        total = fixed + sets.astype(np.int64) @ np.array(reload, dtype=np.int64)
        for buffer in buffers:
            own = [k for k, gap in enumerate(self.gaps) if gap.buffer == buffer.index]
            is_written = own and (buffer.index, self._uses[buffer.index][0]) in streamed
            if own and buffer.kind is BufferKind.ACTIVATION and not is_written:
                total = total + buffer.moved_bytes * sets[:, own].any(axis=1)
        return total


def _touches(gap: Gap, streamed: Uses) -> bool:
    """Whether a step that streams the buffer ends or begins the gap: it is off-chip then."""
    return bool({(gap.buffer, gap.before), (gap.buffer, gap.after)} & streamed)
