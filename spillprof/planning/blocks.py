"""Residency blocks: what offline placement gives one address each, once the gaps that are off-chip are chosen.

A block is a stretch of ticks that a buffer spends on-chip, continued by the buffers that take over its address in
place (its *chain*). It has one interval of ticks, or two where a cached weight stays for the next inference.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from spillprof.ir.program import PHASES_PER_STEP, BufferKind, Phase, Program
from spillprof.planning.gaps import GapKey, GapOption, gap_options
from spillprof.planning.liveness import lifetimes, release_steps, resident_inputs
from spillprof.planning.options import PlanningOptions, Start
from spillprof.planning.placements import Owner

Ticks = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class ResidencyBlock:
    """Space at one address over some ticks."""

    ticks: Ticks  # half-open intervals, ascending
    size_bytes: int
    owners: tuple[Owner, ...]  # the buffers or scratch at this address, and from which tick
    chain: int | None  # the first buffer of its chain of in-place updates; None: scratch of a step
    is_moved: bool = False  # begins with a move inside SRAM: ``owners`` then move

    @property
    def start(self) -> int:
        """First tick."""
        return self.ticks[0][0]

    @property
    def duration(self) -> int:
        """Ticks that it is on-chip."""
        return sum(end - start for start, end in self.ticks)


def covers(outer: Ticks, inner: Ticks) -> bool:
    """Whether each interval of ``inner`` lies within one of ``outer``."""
    return all(any(s <= start and end <= e for s, e in outer) for start, end in inner)


def overlap(a: Ticks, b: Ticks) -> Ticks:
    """The ticks in both, as intervals."""
    return tuple((max(s, t), min(e, f)) for s, e in a for t, f in b if max(s, t) < min(e, f))


class BlockBuilder:
    """Builds the blocks of a program, chain by chain, for any set of gaps that are off-chip."""

    def __init__(self, program: Program, options: PlanningOptions) -> None:
        self._program = program
        self.options = options
        self._n = len(program.steps)
        self._lives = lifetimes(program)
        self._resident = resident_inputs(program, options)
        self._release = release_steps(program, [life.last_step for life in self._lives], options.release)
        self._successor = {u.old: u.new for step in program.steps for u in step.updates}
        self._taken_over_at = {u.old: i for i, step in enumerate(program.steps) for u in step.updates}
        self._streamed = {(b, i) for i, s in enumerate(program.steps) for b in (*s.streamed_reads, *s.streamed_writes)}
        head = {b: b for b in range(len(program.buffers))}
        for step in program.steps:  # in schedule order, so that the head of old is known when new joins
            for update in step.updates:
                head[update.new] = head[update.old]
        self._head = head
        self._gaps: dict[int, list[tuple[GapOption, Ticks]]] = {}
        for gap in gap_options(program, options):
            self._gaps.setdefault(head[gap.buffer], []).append((gap, self._off_ticks(gap)))
        self._stretches = {chain: _by_start(gaps) for chain, gaps in self._gaps.items()}
        self._latest: tuple[frozenset[GapKey], tuple[ResidencyBlock, ...]] | None = None

    def all_blocks(self, off: set[GapKey]) -> list[ResidencyBlock]:
        """Blocks of every chain and of every step's scratch; remembered for the latest set of gaps."""
        if self._latest is None or self._latest[0] != off:
            self._latest = frozenset(off), tuple(self._all_blocks(off))
        return list(self._latest[1])

    def _all_blocks(self, off: set[GapKey]) -> list[ResidencyBlock]:
        blocks = [
            block
            for buffer in self._program.buffers
            if self._head[buffer.index] == buffer.index
            for block in self.chain_blocks(buffer.index, off)
        ]
        for i, step in enumerate(self._program.steps):
            tick = PHASES_PER_STEP * i
            scratch = [("stream staging", step.stream_staging_bytes, Phase.READ, Phase.WRITE)]
            scratch += [(w.purpose, w.size_bytes, w.first, w.last) for w in step.workspaces]
            blocks += [
                ResidencyBlock(((tick + first, tick + last + 1),), size, ((purpose, tick + first),), None)
                for purpose, size, first, last in scratch
                if size
            ]
        return blocks

    def chain_blocks(self, head: int, off: set[GapKey]) -> list[ResidencyBlock]:
        """Blocks of the chain that begins with buffer ``head``, in time order."""
        blocks: list[ResidencyBlock] = []
        b: int | None = head
        carried: tuple[int, Owner] | None = None  # start and owner of the block that an update continues
        while b is not None:
            segments, ends_in_update = self._segments(b, off, carried)
            carried = None
            if ends_in_update and segments:
                start, _, owner = segments.pop()
                carried = (start, owner)
            blocks += self._as_blocks(b, segments, off)
            b = self._successor.get(b)
        return blocks

    def pieces(self, block: ResidencyBlock, moves: Sequence[int]) -> list[ResidencyBlock]:
        """The block split by moves inside SRAM at ascending ticks, each the start of a step inside the block."""
        ends = [*moves, block.ticks[-1][1]]
        found = [replace(block, ticks=((block.start, ends[0]),))]
        for start, end in pairwise(ends):
            owner = (self._holder(block, start // PHASES_PER_STEP), start)
            found.append(replace(block, ticks=((start, end),), owners=(owner,), is_moved=True))
        return found

    def can_move(self, block: ResidencyBlock) -> bool:
        """Whether the block may move: scratch, and weights that the next inference finds in place, may not."""
        if block.chain is None or len(block.ticks) > 1:
            return False
        return not (self._program.weights_persist and self._program.buffers[block.chain].kind is BufferKind.WEIGHT)

    def _holder(self, block: ResidencyBlock, step: int) -> int:
        """The buffer of the block's chain that is on-chip when a step is about to start."""
        b = block.owners[0][0] if block.chain is None else block.chain
        if not isinstance(b, int):
            raise ValueError("scratch does not move")
        while self._taken_over_at.get(b, step) < step:
            b = self._successor[b]
        return b

    def chain_of(self, buffer: int) -> int:
        """The first buffer of a buffer's chain of in-place updates."""
        return self._head[buffer]

    def cuts(self, block: ResidencyBlock, off: set[GapKey]) -> Iterable[GapOption]:
        """Gaps of the block that are not off-chip yet: where it can be split."""
        if block.chain is None:
            return
        for gap, ticks in self._gaps.get(block.chain, ()):
            if (gap.buffer, gap.last_use) not in off and covers(block.ticks, ticks):
                yield gap

    def cut_over(self, block: ResidencyBlock, busy: Ticks, off: set[GapKey]) -> GapOption | None:
        """The gap among ``cuts`` that frees the block's space in all of ``busy``; None if there is none.

        Gaps of a chain share no tick, so only the one around the first tick can.
        """
        stretches = self._stretches.get(-1 if block.chain is None else block.chain, ())
        at = bisect_right(stretches, busy[0][0], key=lambda stretch: stretch[0]) - 1
        if at < 0:
            return None
        _, gap, ticks = stretches[at]
        fits = (gap.buffer, gap.last_use) not in off and covers(ticks, busy) and covers(block.ticks, ticks)
        return gap if fits else None

    def _off_ticks(self, gap: GapOption) -> Ticks:
        """Ticks in which the buffer needs no space if the gap is spent off-chip."""
        life = self._lives[gap.buffer]
        leaves = PHASES_PER_STEP * (gap.last_use + 1)
        n_ticks = PHASES_PER_STEP * self._n
        if gap.next_use is None:
            return ((leaves, PHASES_PER_STEP * (self._release[gap.buffer] + 1)),)
        if gap.next_use >= self._n:
            wrapped = ((0, PHASES_PER_STEP * life.read_steps[0]), (leaves, n_ticks))
            return tuple((start, end) for start, end in wrapped if start < end)
        return ((leaves, PHASES_PER_STEP * gap.next_use),)

    def _segments(
        self, b: int, off: set[GapKey], carried: tuple[int, Owner] | None
    ) -> tuple[list[tuple[int, int, Owner]], bool]:
        """``(start, end, owner)`` of each stretch on-chip, and whether an in-place update continues the last one."""
        buffer, life = self._program.buffers[b], self._lives[b]
        if buffer.dedicated or not buffer.size_bytes or life.last_step < 0:
            return [], False
        n_ticks = PHASES_PER_STEP * self._n
        if b in self._resident:
            overwritten = self._taken_over_at.get(b)
            end = n_ticks if overwritten is None else PHASES_PER_STEP * overwritten + Phase.COMPUTE
            return [(0, end, (b, 0))], overwritten is not None
        points = life.use_steps
        segments: list[tuple[int, int, Owner]] = []
        open_at = carried
        for position, point in enumerate(points):
            if (b, point) in self._streamed:
                open_at = None
                continue
            if open_at is None:
                start = PHASES_PER_STEP * point + (Phase.COMPUTE if life.write_step == point else Phase.READ)
                open_at = (start, (b, start))
            is_last = position == len(points) - 1
            if is_last and b in self._taken_over_at:
                return [*segments, (*open_at[:1], PHASES_PER_STEP * point + Phase.COMPUTE, open_at[1])], True
            leaves = (b, point) in off or (not is_last and (b, points[position + 1]) in self._streamed)
            if leaves or is_last:
                end = PHASES_PER_STEP * (point + 1) if leaves else self._end_of_life(b)
                segments.append((open_at[0], end, open_at[1]))
                open_at = None
        return segments, False

    def _end_of_life(self, b: int) -> int:
        life, output = self._lives[b], self._program.buffers[b].kind is BufferKind.OUTPUT
        if self._program.buffers[b].kind is BufferKind.WEIGHT and self._program.weights_persist:
            return PHASES_PER_STEP * self._n
        released = self._release[b]
        if released > life.last_step or life.write_step == life.last_step or output:
            return PHASES_PER_STEP * (released + 1)
        return PHASES_PER_STEP * life.last_step + Phase.COMPUTE + 1

    def _as_blocks(self, b: int, segments: list[tuple[int, int, Owner]], off: set[GapKey]) -> list[ResidencyBlock]:
        buffer = self._program.buffers[b]
        blocks = [ResidencyBlock(((s, e),), buffer.size_bytes, (owner,), self._head[b]) for s, e, owner in segments]
        steady = self._program.weights_persist and self.options.start is Start.STEADY
        last = self._lives[b].last_step
        if (
            not (blocks and steady and buffer.kind is BufferKind.WEIGHT)
            or (b, last) in off
            or (b, last) in self._streamed
        ):
            return blocks
        first_read = self._lives[b].read_steps[0]
        if (b, first_read) in self._streamed:
            return blocks
        # It stays for the next inference: the last stretch and the first are one.
        n_ticks, first, final = PHASES_PER_STEP * self._n, blocks[0], blocks[-1]
        if first is final:
            return [ResidencyBlock(((0, n_ticks),), buffer.size_bytes, ((b, 0),), self._head[b])]
        joined = ResidencyBlock(
            ((0, first.ticks[0][1]), (final.start, n_ticks)),
            buffer.size_bytes,
            ((b, 0), *final.owners),
            self._head[b],
        )
        return [joined, *blocks[1:-1]]


def _by_start(gaps: Iterable[tuple[GapOption, Ticks]]) -> list[tuple[int, GapOption, Ticks]]:
    stretches = ((start, gap, ticks) for gap, ticks in gaps for start, end in ticks if start < end)
    return sorted(stretches, key=lambda stretch: stretch[0])
