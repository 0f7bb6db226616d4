"""Recompute and spill chosen together: an integer program over gaps, solved by HiGHS.

Each gap is spent on-chip, off-chip (one reload, and the one write-back that all gaps of a buffer share), or without
the buffer, which is computed again at its end. What that reads must be on-chip then:

- an operand of the step that follows is;
- one in the middle of a gap is if it spends the gap on-chip; else it is reloaded once more;
- one that is dead by then lives on: every stretch up to the next copy that reads it is spent on-chip or off-chip too.

At every step what stays fits the pool, and so it does while a copy runs. Copies of copies are not among the choices,
nor is computing at the first use only, which is another order. Costs are seconds that things take alone. What may be
computed again follows Checkmate (Jain et al. 2020) and POET (Patil et al. 2022), but a gap has a variable, not each
step and buffer.
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
"""Programs with more are not solved."""

_MOST_ENTRIES = 400_000  # of the matrix


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """The best choice found."""

    proposals: tuple[Proposal, ...]  # the most time saved first
    alone_s: float | None  # spill transfers and second runs, one after another; addresses, and what streams, left out
    search: str  # "complete", or what cut it short: then nothing better may have been found


def joint_choice(program: Program, options: PlanningOptions, costs: Costs) -> Joint | None:
    """What to compute again in a fitted program; None if nothing has to leave it."""
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
    """Steps that a buffer may spend on-chip."""

    buffer: int
    ranges: tuple[tuple[int, int], ...]
    size_bytes: int
    lives: int | None  # column: whether it lives there at all; None: it does
    gone: tuple[int, ...]  # columns, at most one of them 1: it is not on-chip
    opens_with_copy: bool = False  # it begins after the copy before its first step, not before that copy


@dataclass(frozen=True, slots=True, kw_only=True)
class _Again:
    """A gap whose buffer may be computed again."""

    buffer: int
    use_step: int
    made_by: int
    column: int


class _Builder:
    def __init__(self, program: Program, options: PlanningOptions, costs: Costs, gaps: Sequence[GapOption]) -> None:
        self.problem = BinaryProgram()
        self.choices: dict[int, _Again] = {}  # by column
        self._program, self._options, self._costs = program, options, costs
        self._gaps = gaps
        self._lives = lifetimes(program)
        self._fixed = resident_inputs(program, options)
        self._pool = (program.capacity_bytes or 0) - program.reserved_bytes
        self._leaving: dict[int, list[tuple[int, int]]] = defaultdict(list)  # buffer -> (step after which, column)
        self._first_written: dict[int, int] = {}  # buffer -> column: what the operator itself made is written back
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
        """A choice that was made, with the transfers that it saves where all others were made too."""
        again = self.choices[column]
        size = self._program.buffers[again.buffer].moved_bytes
        first = self._first_written.get(again.buffer)
        unwritten = first is not None and not values[first]
        move_s = self._costs.read_s(size) + (self._costs.write_s(size) if unwritten else 0.0)
        weight_bytes = self._program.steps[again.made_by].weight_stream_bytes
        return Proposal(
            choice=Recompute(buffer=again.buffer, use_step=again.use_step),
            verdict=GapVerdict.RECOMPUTE,
            saves_s=move_s - self._again_s(again.made_by),
            saves_bytes=size * (2 if unwritten else 1) - weight_bytes,
        )

    def _again_s(self, step: int) -> float:
        return self._costs.step_s[step] + self._costs.read_s(self._program.steps[step].weight_stream_bytes)

    def _off_chip(self, buffer: int, after_step: int, *, reload_s: float) -> int:
        """A column: the buffer leaves after a step, and comes back."""
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
                self.choices[column] = _Again(buffer=b, use_step=use, made_by=made_by[b], column=column)
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
        """What a copy reads is on-chip when it runs."""
        stays_of: dict[int, list[_Stay]] = defaultdict(list)
        for stay in self._stays:
            stays_of[stay.buffer].append(stay)
        living_on: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for again in self.choices.values():
            use = again.use_step
            for r in self._program.steps[again.made_by].reads:
                buffer = self._program.buffers[r]
                if r in self._program.steps[use].reads or buffer.dedicated or r in self._fixed or not buffer.size_bytes:
                    continue
                around = [s for s in stays_of[r] if any(start <= use < end for start, end in s.ranges)]
                if not around and self._lives[r].last_step < use:
                    living_on[r][use].append(again.column)
                    continue
                # Without a gap around it, a streamed use opens or closes one: it is off-chip in any case.
                gone = dict.fromkeys(around[0].gone, 1) if around else {}
                once_more = self._reloaded_once_more(r, use)
                self.problem.at_most({again.column: 1, **gone, once_more: -1}, 1 if around else 0)
        for r, columns in living_on.items():
            self._live_on(r, columns)

    def _reloaded_once_more(self, buffer: int, step: int) -> int:
        if (buffer, step) not in self._once_more:
            reload_s = self._costs.read_s(self._program.buffers[buffer].moved_bytes)
            self._once_more[buffer, step] = self._off_chip(buffer, step - 1, reload_s=reload_s)
        return self._once_more[buffer, step]

    def _live_on(self, buffer: int, columns: dict[int, list[int]]) -> None:
        """Stretches after the last use, each up to the next step before which a copy may read the buffer."""
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
        """What leaves was written back: once what the operator made, and once each copy of it."""
        agains: dict[int, list[_Again]] = defaultdict(list)
        for again in self.choices.values():
            agains[again.buffer].append(again)
        for b, leaving in self._leaving.items():
            buffer = self._program.buffers[b]
            write_s = self._costs.write_s(buffer.moved_bytes)
            clean = buffer.kind is not BufferKind.ACTIVATION  # DRAM has it, or gets it anyway
            each = self._options.writeback is WriteBack.ALWAYS
            made: list[tuple[_Again, int]] = []  # copies, and whether each is written
            for again in sorted(agains[b], key=lambda again: again.use_step):
                made.append((again, self.problem.column(0.0 if each else write_s)))
            if not clean:
                self._first_written[b] = self.problem.column(0.0 if each else write_s)
            if each and buffer.kind is BufferKind.OUTPUT:  # one of its writes is made in any case
                due = self.problem.column(-write_s)
                self.problem.at_most({due: 1, **{column: -1 for _, column in leaving}}, 0)
            for after_step, column in leaving:
                if each and not buffer.in_dram_at_start:
                    self.problem.add_cost(column, write_s)
                before = [(again.column, written) for again, written in made if again.use_step <= after_step]
                if not clean:
                    self.problem.at_most({column: 1, self._first_written[b]: -1, **{c: -1 for c, _ in before}}, 0)
                for k, (copied, written) in enumerate(before):
                    later = {c: -1 for c, _ in before[k + 1 :]}
                    self.problem.at_most({column: 1, copied: 1, written: -1, **later}, 1)

    def _add_steps(self) -> None:
        """What stays fits beside what each step needs; among steps with the same, the fullest is enough."""
        there: list[list[_Stay]] = [[] for _ in self._program.steps]
        for stay in self._stays:
            for start, end in stay.ranges:
                for i in range(start, end):
                    there[i].append(stay)
        rows: dict[tuple[tuple[int, int], ...], tuple[dict[int, int], int]] = {}
        for i, locked in enumerate(locked_bytes(self._program, self._options)):
            coefficients, always = _occupancy(there[i])
            for column, size in self._not_written_over.get(i, ()):
                coefficients[column] = coefficients.get(column, 0) + size
            room, key = self._pool - locked - always, tuple(coefficients.items())
            rows[key] = (coefficients, min(room, rows[key][1]) if key in rows else room)
        for coefficients, room in rows.values():
            self.problem.at_most(coefficients, room)

    def _add_copies(self) -> None:
        """What stays fits beside each copy, which runs right before its use, after those of earlier operators."""
        at: dict[int, list[_Again]] = defaultdict(list)
        for again in self.choices.values():
            at[again.use_step].append(again)
        across: dict[int, list[_Stay]] = {use: [] for use in at}
        for stay in self._stays:
            for start, end in stay.ranges:
                for use in range(start + (1 if stay.opens_with_copy else 0), end + 1):
                    if use in across:
                        across[use].append(stay)
        for use, agains in at.items():
            for again in agains:
                self._add_copy(again, agains, across[use])

    def _add_copy(self, again: _Again, at_once: Sequence[_Again], across: Sequence[_Stay]) -> None:
        producer, buffers = self._program.steps[again.made_by], self._program.buffers
        own = {*producer.reads, again.buffer}
        coefficients, always = _occupancy([stay for stay in across if stay.buffer not in own])
        for other in at_once:
            if other.made_by < again.made_by and other.buffer not in own:  # its copy is there already
                coefficients[other.column] = coefficients.get(other.column, 0) + buffers[other.buffer].size_bytes
        before = self._program.steps[again.use_step - 1]
        waiting = {*before.reads, *before.writes} & {*self._program.steps[again.use_step].reads}
        waiting = {b for b in waiting | self._fixed if b not in own and not buffers[b].dedicated}
        always += sum(buffers[b].size_bytes for b in waiting)
        room = self._pool - _copy_bytes(self._program, producer) - always
        most = sum(c for c in coefficients.values() if c > 0)
        if most > room:
            # Where there is no copy, the row always holds.
            coefficients[again.column] = coefficients.get(again.column, 0) + most - room
            self.problem.at_most(coefficients, most)


def _occupancy(stays: Sequence[_Stay]) -> tuple[dict[int, int], int]:
    """Bytes that are on-chip: coefficients of columns, and a constant."""
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
    """Pool bytes that a copy needs at most: nothing is written over, everything is there at once."""
    operands = sum(
        program.buffers[b].size_bytes for b in {*step.reads, *step.writes} if not program.buffers[b].dedicated
    )
    return operands + sum(w.size_bytes for w in step.workspaces)
