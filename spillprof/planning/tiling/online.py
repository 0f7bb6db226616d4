"""Modes chosen step by step, as an online strategy would: with what is on-chip when an operator does not fit.

The run is simulated in bytes, without addresses. A mode costs what its tiles move beyond the compulsory; the write-back
of an operand that it streams in and that DRAM has no copy of; the reload of an operand that it holds and that is
off-chip; the read, later, of an operand that it streams and that is still to be read; and what the evictions for its
room move, in the order in which the strategy's rule picks victims. The cheapest mode wins; on ties the one that holds
more.
"""

from collections.abc import Sequence

from spillprof.ir.modes import StepMode
from spillprof.ir.program import BufferKind, Program, Step, Update
from spillprof.ir.target import Target
from spillprof.ir.tiled import in_place
from spillprof.planning.candidates import CandidateQueue, CandidateTable, Evictable
from spillprof.planning.gaps import gap_options, unspilled_bytes
from spillprof.planning.liveness import demand_by_step
from spillprof.planning.options import PlanningOptions, WriteBack
from spillprof.planning.run_facts import RunFacts, run_facts
from spillprof.planning.strategies import STANDING_RULES, EvictionRule
from spillprof.planning.tiling.choice import UseCosts, menus_of, oversized_steps
from spillprof.planning.tiling.menus import MenuItem, is_open, menu
from spillprof.planning.tiling.touched import least_read_bytes
from spillprof.planning.traffic import transfer_costs


def modes_as_met(
    program: Program, target: Target, options: PlanningOptions, rule: EvictionRule
) -> tuple[StepMode, ...]:
    """The modes that steps take as the run reaches them, by step.

    Those of steps that do not fit, alone or beside what is on-chip, which then stays; and of steps that read what is
    off-chip, of which tiles may bring only the part that is touched.
    """
    if program.capacity_bytes is None:
        return ()
    unspilled = unspilled_bytes(program, options, gap_options(program, options))
    pool = program.capacity_bytes - program.reserved_bytes
    over_full = [i for i, nbytes in enumerate(unspilled) if nbytes > pool]
    if not any(program.steps[i].nest is not None for i in over_full):
        return ()
    oversized = frozenset(oversized_steps(program))
    menus = menus_of(program, sorted(oversized), options.inputs)
    run = _Run(program, target, options, rule)
    demand = demand_by_step(program).tolist()
    chosen: list[StepMode] = []
    for i, step in enumerate(program.steps):
        item = MenuItem(mode=None, demand_bytes=demand[i])
        if i in oversized or (is_open(step) and (run.reloads(i) or run.idle_bytes(i) + demand[i] > pool)):
            item = run.cheapest(i, menus[i] if i in menus else menu(program, i, options.inputs))
            if item.mode is not None:
                chosen.append(item.mode)
        run.step(i, item)
    return tuple(chosen)


class _Run:
    """What is on-chip, in bytes, and what DRAM holds."""

    def __init__(self, program: Program, target: Target, options: PlanningOptions, rule: EvictionRule) -> None:
        self._program, self._options = program, options
        self._pool = (program.capacity_bytes or 0) - program.reserved_bytes
        self._facts: RunFacts = run_facts(program, options)
        self._uses = UseCosts(program, options)
        facts = self._facts
        costs = transfer_costs(program, target)
        self._victims: Evictable = (
            CandidateQueue(rule, facts.sizes) if rule in STANDING_RULES else CandidateTable(rule, facts.sizes, costs)
        )
        self._in_dram = list(facts.in_dram_at_start)
        self._done = [0] * len(program.buffers)  # reads so far
        self._last: list[int] = [-1] * len(program.buffers)
        self._here = dict.fromkeys(facts.resident, 0)  # buffers in the pool
        self._used = sum(facts.size_bytes[b] for b in facts.resident if b not in facts.slot)

    def reloads(self, i: int) -> bool:
        """Whether step ``i`` reads what has left."""
        return any(b not in self._here and self._last[b] >= 0 for b in self._program.steps[i].reads)

    def idle_bytes(self, i: int) -> int:
        """Bytes in the pool that are no operands of step ``i``."""
        step, sizes = self._program.steps[i], self._facts.size_bytes
        return self._used - sum(sizes[b] for b in {*step.reads, *step.writes} if b in self._here)

    def cheapest(self, i: int, items: Sequence[MenuItem]) -> MenuItem:
        """The item of least marginal cost."""
        step, idle = self._program.steps[i], self.idle_bytes(i)
        freed = self._evictions(i, max(0, idle + max(item.demand_bytes for item in items) - self._pool))
        ranked = []
        for item in items:
            cost = 0 if item.mode is None else item.mode.weight_repeat_bytes
            for each in item.mode.traffic if item.mode is not None else ():
                b, moved = each.buffer, self._program.buffers[each.buffer].moved_bytes
                cost += self._uses.own(each, i)
                if b in step.reads and not self._in_dram[b]:
                    cost += moved
                cost += self._next_read_bytes(b, i)
            cost += sum(
                self._program.buffers[b].moved_bytes
                for b in step.reads
                if b not in item.streamed and b not in self._here and self._last[b] >= 0
            )
            missing = idle + item.demand_bytes - self._pool
            for nbytes, moved in freed:
                if missing <= 0:
                    break
                missing -= nbytes
                cost += moved
            transfers = 0 if item.mode is None else sum(each.transfers for each in item.mode.traffic)
            ranked.append((cost, len(item.streamed), transfers, item.demand_bytes))
        return items[min(range(len(items)), key=ranked.__getitem__)]

    def step(self, i: int, item: MenuItem) -> None:
        """Run a step: make room, load its operands, write its results, free what dies."""
        step, facts = self._program.steps[i], self._facts
        for b in step.reads:
            self._victims.remove(b)
            if b in item.streamed and b in self._here:
                self._leave(b)
        sizes, idle = facts.size_bytes, self.idle_bytes(i)
        while idle + item.demand_bytes > self._pool:
            victim = self._victims.choose(now=i, need_bytes=idle + item.demand_bytes - self._pool)
            if victim is None:
                break
            idle -= sizes[victim]
            self._leave(victim)
        for update in self._updates(i, step, item):
            if update.old in self._here:
                del self._here[update.old]
                self._used -= sizes[update.old]
        for b in (*step.reads, *step.writes):
            self._last[b] = i
            if b in step.reads:
                self._done[b] += 1
            stays = b not in item.streamed and not facts.released_at[b] <= i and b not in facts.slot
            if b in item.streamed:
                self._in_dram[b] = True
            if b in self._here and not stays:
                self._here.pop(b)
                self._used -= sizes[b]
            elif stays and b not in self._here and not any(u.old == b for u in step.updates):
                self._here[b] = i
                self._used += sizes[b]
            if b in self._here:
                self._offer(b, i)
        for b in facts.released_late.get(i, ()):
            if b in self._here:
                self._victims.remove(b)
                self._here.pop(b)
                self._used -= sizes[b]

    def _updates(self, i: int, step: Step, item: MenuItem) -> Sequence[Update]:
        return tuple(in_place(self._program, step, i, set(item.streamed))) if step.updates else ()

    def _evictions(self, i: int, need_bytes: int) -> list[tuple[int, int]]:
        """(bytes freed, bytes moved) of the victims that make so much room, in the order of the rule."""
        found: list[tuple[int, int]] = []
        taken: list[int] = []
        step = self._program.steps[i]
        mine = [b for b in step.reads if b in self._here]
        for b in mine:
            self._victims.remove(b)
        while need_bytes > 0:
            victim = self._victims.choose(now=i, need_bytes=need_bytes)
            if victim is None:
                break
            self._victims.remove(victim)
            taken.append(victim)
            buffer, size = self._program.buffers[victim], self._facts.size_bytes[victim]
            writes = 0 if self._in_dram[victim] or buffer.kind is BufferKind.OUTPUT else buffer.moved_bytes
            found.append((size, writes + (buffer.moved_bytes if self._is_read_after(victim, i) else 0)))
            need_bytes -= size
        for b in (*taken, *mine):
            self._offer(b, self._last[b])
        return found

    def _is_read_after(self, b: int, i: int) -> bool:
        """Whether a buffer is read after step ``i``, or by the next inference."""
        after = self._facts.uses[b][self._done[b] :]
        return any(u is not None and u != i for u in after[:2])

    def _next_read_bytes(self, b: int, i: int) -> int:
        """Bytes that the next read of a buffer brings after step ``i``, in this inference or the next; 0 without."""
        later = (u for u in self._facts.uses[b][self._done[b] :][:2] if u is not None and u != i)
        u = next(later, None)
        return 0 if u is None else least_read_bytes(self._program, u % len(self._program.steps), b)

    def _leave(self, b: int) -> None:
        self._victims.remove(b)
        del self._here[b]
        self._used -= self._facts.size_bytes[b]
        self._in_dram[b] = True

    def _offer(self, b: int, last_use: int) -> None:
        facts = self._facts
        if facts.size_bytes[b] and not facts.is_fixed[b]:
            next_use = facts.uses[b][self._done[b]]
            again = self._options.writeback is WriteBack.ALWAYS and not facts.in_dram_at_start[b]
            dirty = again or (not self._in_dram[b] and self._program.buffers[b].kind is not BufferKind.OUTPUT)
            never = 2 * facts.n_steps + 1
            self._victims.remove(b)
            self._victims.add(b, last_use=last_use, next_use=never if next_use is None else next_use, dirty=dirty)
