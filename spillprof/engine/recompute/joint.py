"""Joint choice of recomputing and spilling: an integer program over gaps, solved by HiGHS.

In each gap a buffer stays on-chip, is spilled (one reload, and one write-back shared by all gaps of the buffer), or is
dropped: a copy of its operator recomputes it at the end of the gap. Operands of a copy must be on-chip when it runs:

- an operand of the step that follows the copy is on-chip;
- an operand in the middle of a gap is on-chip if it stays there for the gap; otherwise it is reloaded once more;
- a dead operand has its live range extended up to the last copy that reads it, and may be spilled between copies.

Resident buffers must fit the pool at every step and while each copy runs. Copies of copies are not modelled, nor is
computing a buffer only at its first use, which is a reordering. Costs are seconds without contention. The choices
follow Checkmate (Jain et al. 2020) and POET (Patil et al. 2022), with one variable per gap instead of one per step and
buffer.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from spillprof.engine.recompute.binary_program import BinaryProgram
from spillprof.engine.recompute.choices import Costs, GapVerdict, Proposal
from spillprof.ir.program import BufferKind, Program, Step
from spillprof.lowering.transforms import Recompute, producers
from spillprof.planning.budget import OPTION, search_budget
from spillprof.planning.gaps import GapOption, gap_options, locked_bytes
from spillprof.planning.liveness import lifetimes, resident_inputs
from spillprof.planning.options import PlanningOptions, WriteBack

MOST_GAPS = 2_000
"""Programs with more gaps are not solved."""

_MOST_ENTRIES = 400_000  # of the matrix


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """The best choice found."""

    proposals: tuple[Proposal, ...]  # the most time saved first
    alone_s: float | None  # serial time of spill transfers and copies, without streamed operands; addresses are ignored
    search: str  # "complete", or what cut the search short


def joint_choice(program: Program, options: PlanningOptions, costs: Costs) -> Joint | None:
    """The joint choice for a fitted program; None if nothing has to be spilled."""
    gaps = gap_options(program, options)
    if program.capacity_bytes is None or not gaps:
        return None
    too_large = Joint(proposals=(), alone_s=None, search=f"too large for an integer program: {len(gaps):,} gaps")
    if len(gaps) > MOST_GAPS:
        return too_large
    builder = _Builder(program, options, costs, gaps)
    builder.build()
    if builder.problem.entries > _MOST_ENTRIES:
        return too_large
    budget = search_budget(options)
    solution = builder.problem.solve(budget)
    cut_off = f"the integer program: {budget.end(OPTION)}"
    if solution is None:
        return Joint(proposals=(), alone_s=None, search=cut_off)
    taken = [builder.proposal(column, solution.values) for column in builder.choices if solution.values[column]]
    return Joint(
        proposals=tuple(sorted(taken, key=lambda p: (-p.saves_s, p.choice))),
        alone_s=solution.cost,
        search={"": "complete", "budget": cut_off}.get(solution.stopped, "the integer program has too many nodes"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stay:
    """Steps during which a buffer may stay on-chip."""

    buffer: int
    ranges: tuple[tuple[int, int], ...]
    size_bytes: int
    lives: int | None  # column: whether it is live there; None: always
    gone: tuple[int, ...]  # columns, at most one of them 1: it is not on-chip
    opens_with_copy: bool = False  # it starts after the copy that precedes its first step


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copy:
    """A gap whose buffer may be recomputed by a copy of its operator."""

    buffer: int
    use_step: int
    made_by: int
    column: int


class _Builder:
    def __init__(self, program: Program, options: PlanningOptions, costs: Costs, gaps: Sequence[GapOption]) -> None:
        self.problem = BinaryProgram()
        self.choices: dict[int, _Copy] = {}  # by column
        self._program, self._options, self._costs = program, options, costs
        self._gaps = gaps
        self._lives = lifetimes(program)
        self._fixed = resident_inputs(program, options)
        self._pool = (program.capacity_bytes or 0) - program.reserved_bytes
        self._leaving: dict[int, list[tuple[int, int]]] = defaultdict(list)  # buffer -> (step after which, column)
        self._first_written: dict[
            int, int
        ] = {}  # buffer -> column: the result of the original operator is written back
        self._once_more: dict[tuple[int, int], int] = {}  # (buffer, step) -> column: reloaded for a copy
        self._stays: list[_Stay] = []
        self._not_written_over: dict[int, list[tuple[int, int]]] = defaultdict(list)  # step -> (column, bytes)

    def build(self) -> None:
        self._add_gaps()
        self._add_operands()
        self._add_writes()
        self._add_steps()
        self._add_copies()

    def proposal(self, column: int, values: Sequence[bool]) -> Proposal:
        """The proposal of a chosen column, with the transfers that it saves given all other choices."""
        copy = self.choices[column]
        size = self._program.buffers[copy.buffer].moved_bytes
        first = self._first_written.get(copy.buffer)
        unwritten = first is not None and not values[first]
        move_s = self._costs.read_s(size) + (self._costs.write_s(size) if unwritten else 0.0)
        weight_bytes = self._program.steps[copy.made_by].weight_stream_bytes
        return Proposal(
            choice=Recompute(buffer=copy.buffer, use_step=copy.use_step),
            verdict=GapVerdict.RECOMPUTE,
            saves_s=move_s - self._again_s(copy.made_by),
            saves_bytes=size * (2 if unwritten else 1) - weight_bytes,
        )

    def _again_s(self, step: int) -> float:
        return self._costs.step_s[step] + self._costs.read_s(self._program.steps[step].weight_stream_bytes)

    def _off_chip(self, buffer: int, after_step: int, *, reload_s: float) -> int:
        """Add a column: the buffer is evicted after a step and reloaded."""
        column = self.problem.column(reload_s)
        self._leaving[buffer].append((after_step, column))
        return column

    def _add_gaps(self) -> None:
        made_by, n = producers(self._program), len(self._program.steps)
        for gap in self._gaps:
            b, use = gap.buffer, gap.next_use
            reload_s = 0.0 if use is None else self._costs.read_s(gap.moved_bytes)
            gone = [self._off_chip(b, gap.last_use, reload_s=reload_s)]
            if b in made_by and use is not None and use < n and self._may_be_made_again(gap, made_by[b]):
                column = self.problem.column(self._again_s(made_by[b]))
                gone.append(column)
                self.problem.at_most(dict.fromkeys(gone, 1), 1)
                self.choices[column] = _Copy(buffer=b, use_step=use, made_by=made_by[b], column=column)
            self._stays.append(
                _Stay(buffer=b, ranges=gap.ranges, size_bytes=gap.size_bytes, lives=None, gone=tuple(gone))
            )

    def _may_be_made_again(self, gap: GapOption, made_by: int) -> bool:
        step = self._program.steps[made_by]
        if step.streamed_reads or step.streamed_writes:
            return False
        is_output = self._program.buffers[gap.buffer].kind is BufferKind.OUTPUT
        return is_output or self._lives[gap.buffer].read_steps[0] != gap.next_use

    def _add_operands(self) -> None:
        """Constrain the operands of each copy to be on-chip when it runs."""
        stays_of: dict[int, list[_Stay]] = defaultdict(list)
        for stay in self._stays:
            stays_of[stay.buffer].append(stay)
        extended: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for copy in self.choices.values():
            use = copy.use_step
            for r in self._program.steps[copy.made_by].reads:
                buffer = self._program.buffers[r]
                if r in self._program.steps[use].reads or buffer.dedicated or r in self._fixed or not buffer.size_bytes:
                    continue
                around = [s for s in stays_of[r] if any(start <= use < end for start, end in s.ranges)]
                if not around and self._lives[r].last_step < use:
                    extended[r][use].append(copy.column)
                    continue
                # Without an enclosing gap, a streamed use opens or closes one: the operand is off-chip in any case.
                gone = dict.fromkeys(around[0].gone, 1) if around else {}
                once_more = self._reloaded_once_more(r, use)
                self.problem.at_most({copy.column: 1, **gone, once_more: -1}, 1 if around else 0)
        for r, columns in extended.items():
            self._extend_live_range(r, columns)

    def _reloaded_once_more(self, buffer: int, step: int) -> int:
        if (buffer, step) not in self._once_more:
            reload_s = self._costs.read_s(self._program.buffers[buffer].moved_bytes)
            self._once_more[buffer, step] = self._off_chip(buffer, step - 1, reload_s=reload_s)
        return self._once_more[buffer, step]

    def _extend_live_range(self, buffer: int, columns: dict[int, list[int]]) -> None:
        """Extend a live range past the last use, by one interval up to each step before which a copy may read it."""
        moved_bytes, size = self._program.buffers[buffer].moved_bytes, self._program.buffers[buffer].size_bytes
        last = self._lives[buffer].last_step
        start, before = last + 1, None
        for use in sorted(columns):
            lives = self.problem.column()
            for column in columns[use]:
                self.problem.at_most({column: 1, lives: -1}, 0)
            if before is not None:
                self.problem.at_most({lives: 1, before: -1}, 0)
            elif last >= 0 and any(update.old == buffer for update in self._program.steps[last].updates):
                self._not_written_over[last].append((lives, size))
            gone = self._off_chip(buffer, start - 1, reload_s=self._costs.read_s(moved_bytes))
            self.problem.at_most({gone: 1, lives: -1}, 0)
            self._stays.append(
                _Stay(
                    buffer=buffer,
                    ranges=((start, use),),
                    size_bytes=size,
                    lives=lives,
                    gone=(gone,),
                    opens_with_copy=before is not None,
                )
            )
            start, before = use, lives

    def _add_writes(self) -> None:
        """Charge write-backs: one for the operator's result, and one for each copy that is evicted."""
        copies: dict[int, list[_Copy]] = defaultdict(list)
        for copy in self.choices.values():
            copies[copy.buffer].append(copy)
        for b, leaving in self._leaving.items():
            buffer = self._program.buffers[b]
            write_s = self._costs.write_s(buffer.moved_bytes)
            clean = buffer.kind is not BufferKind.ACTIVATION  # DRAM has a copy, or gets one anyway
            each = self._options.writeback is WriteBack.ALWAYS
            made: list[tuple[_Copy, int]] = []  # copies, and whether each is written
            for copy in sorted(copies[b], key=lambda copy: copy.use_step):
                made.append((copy, self.problem.column(0.0 if each else write_s)))
            if not clean:
                self._first_written[b] = self.problem.column(0.0 if each else write_s)
            if each and buffer.kind is BufferKind.OUTPUT:  # one of its writes is compulsory
                due = self.problem.column(-write_s)
                self.problem.at_most({due: 1, **{column: -1 for _, column in leaving}}, 0)
            for after_step, column in leaving:
                if each and not buffer.in_dram_at_start:
                    self.problem.add_cost(column, write_s)
                before = [(copy.column, written) for copy, written in made if copy.use_step <= after_step]
                if not clean:
                    self.problem.at_most({column: 1, self._first_written[b]: -1, **{c: -1 for c, _ in before}}, 0)
                for k, (copied, written) in enumerate(before):
                    later = {c: -1 for c, _ in before[k + 1 :]}
                    self.problem.at_most({column: 1, copied: 1, written: -1, **later}, 1)

    def _add_steps(self) -> None:
        """Constrain resident buffers to fit beside each step; equal coefficients share the tightest row."""
        resident: list[list[_Stay]] = [[] for _ in self._program.steps]
        for stay in self._stays:
            for start, end in stay.ranges:
                for i in range(start, end):
                    resident[i].append(stay)
        rows: dict[tuple[tuple[int, int], ...], tuple[dict[int, int], int]] = {}
        for i, locked in enumerate(locked_bytes(self._program, self._options)):
            coefficients, always = _occupancy(resident[i])
            for column, size in self._not_written_over.get(i, ()):
                coefficients[column] = coefficients.get(column, 0) + size
            room, key = self._pool - locked - always, tuple(coefficients.items())
            rows[key] = (coefficients, min(room, rows[key][1]) if key in rows else room)
        for coefficients, room in rows.values():
            self.problem.at_most(coefficients, room)

    def _add_copies(self) -> None:
        """Constrain resident buffers to fit beside each copy; copies of one step run in operator order."""
        at: dict[int, list[_Copy]] = defaultdict(list)
        for copy in self.choices.values():
            at[copy.use_step].append(copy)
        across: dict[int, list[_Stay]] = {use: [] for use in at}
        for stay in self._stays:
            for start, end in stay.ranges:
                for use in range(start + (1 if stay.opens_with_copy else 0), end + 1):
                    if use in across:
                        across[use].append(stay)
        for use, copies in at.items():
            for copy in copies:
                self._add_copy(copy, copies, across[use])

    def _add_copy(self, copy: _Copy, at_once: Sequence[_Copy], across: Sequence[_Stay]) -> None:
        producer, buffers = self._program.steps[copy.made_by], self._program.buffers
        own = {*producer.reads, copy.buffer}
        coefficients, always = _occupancy([stay for stay in across if stay.buffer not in own])
        for other in at_once:
            if other.made_by < copy.made_by and other.buffer not in own:  # its copy is resident already
                coefficients[other.column] = coefficients.get(other.column, 0) + buffers[other.buffer].size_bytes
        before = self._program.steps[copy.use_step - 1]
        waiting = {*before.reads, *before.writes} & {*self._program.steps[copy.use_step].reads}
        waiting = {b for b in waiting | self._fixed if b not in own and not buffers[b].dedicated}
        always += sum(buffers[b].size_bytes for b in waiting)
        room = self._pool - _copy_bytes(self._program, producer) - always
        most = sum(c for c in coefficients.values() if c > 0)
        if most > room:
            # Without the copy, the row always holds.
            coefficients[copy.column] = coefficients.get(copy.column, 0) + most - room
            self.problem.at_most(coefficients, most)


def _occupancy(stays: Sequence[_Stay]) -> tuple[dict[int, int], int]:
    """Bytes on-chip: coefficients of columns, and a constant."""
    coefficients: dict[int, int] = {}
    always = 0
    for stay in stays:
        if stay.lives is None:
            always += stay.size_bytes
        else:
            coefficients[stay.lives] = stay.size_bytes
        coefficients |= dict.fromkeys(stay.gone, -stay.size_bytes)
    return coefficients, always


def _copy_bytes(program: Program, step: Step) -> int:
    """Upper bound on the pool bytes of a copy: all of its operands at once, none in place."""
    operands = sum(
        program.buffers[b].size_bytes for b in {*step.reads, *step.writes} if not program.buffers[b].dedicated
    )
    return operands + sum(w.size_bytes for w in step.workspaces)
