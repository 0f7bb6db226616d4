"""Online simulator: walks the steps with a contiguous memory and evicts victims when an allocation fails.

It also carries out decisions made beforehand: ``off_chip`` names gaps in which a buffer leaves right after its use, and
``moves`` what moves inside SRAM before a step.
"""

from collections.abc import Mapping, Sequence

from spillprof.ir.plan import Plan, Scratch, Spill, TransferKind
from spillprof.ir.program import PHASES_PER_STEP, Phase
from spillprof.planning.candidates import CandidateQueue, CandidateTable, Evictable
from spillprof.planning.gaps import WriteBacks
from spillprof.planning.liveness import lifetimes
from spillprof.planning.memory import Memory
from spillprof.planning.options import Inputs, WriteBack
from spillprof.planning.placements import PlacementPolicy
from spillprof.planning.recorder import PlanRecorder
from spillprof.planning.run_facts import Need, SimulationSpec, StepFacts, run_facts
from spillprof.planning.strategies import STANDING_RULES

_PHASES = tuple(Phase)


class Simulation:
    """One simulated inference. ``play()`` may be called once.

    ``at_start``: the address of each cached weight that is resident at the start; ``keep``: which of these may stay at
    the end (None: all may). After ``play()``, ``kept_weights`` holds the weights that stay for the next inference, by
    address, and ``victims`` counts the evictions that the rule decided.
    """

    def __init__(
        self,
        spec: SimulationSpec,
        placement: PlacementPolicy,
        at_start: Mapping[int, int],
        keep: frozenset[int] | None = None,
    ) -> None:
        program = spec.program
        self._spec = spec
        self._program = program
        self._facts = run_facts(program, spec.options)
        self._placement = placement
        self._keep = keep
        self._lives = lifetimes(program)
        self._write_backs = WriteBacks(program, spec.options.writeback)
        facts = self._facts
        self._in_dram = list(facts.in_dram_at_start)  # whether DRAM has a valid copy, by buffer
        self._loaded = [facts.steady and weight for weight in facts.is_weight]  # whether a load is a reload, by buffer
        self._uses_done = [0] * len(program.buffers)
        self._memory = Memory(program, facts, spec.options.placement)
        self._address = self._memory.address
        self._candidates: Evictable | None = None  # built at the first eviction
        self._recorder = PlanRecorder(program)
        self._gone_at_once: set[int] = set()  # residents that left or moved before the first step
        self.kept_weights: dict[int, int] = {}
        self.victims = 0
        self._enter_residents(at_start)

    def play(self) -> None:
        """Run all steps. ``CapacityError`` if a step does not fit although everything that may leave has left."""
        late = self._facts.released_late
        for i, step in enumerate(self._facts.steps):
            self._run_step(i, step)
            if i in late:
                for b in late[i]:
                    if b in self._address:
                        self._free_buffer(b, PHASES_PER_STEP * (i + 1))
        self._finish()

    def plan(self) -> Plan:
        """The plan of the run, which must be over."""
        return self._recorder.plan(self._spec.strategy, inputs_resident=self._spec.options.inputs is Inputs.RESIDENT)

    # --- start and end of the run

    def _enter_residents(self, at_start: Mapping[int, int]) -> None:
        facts = self._facts
        if facts.steady:
            for b in sorted({*facts.slot, *at_start}):
                if facts.is_weight[b]:
                    self._enter(b, facts.slot[b] if b in facts.slot else at_start[b])
        for b in sorted(facts.resident):
            address = facts.slot.get(b)
            if address is None:
                address = self._placement.choose(self._memory.free, facts.size_bytes[b], (b, 0))
            if address is None:
                raise self._memory.no_space(f"graph input '{self._program.buffers[b].name}'", facts.size_bytes[b])
            self._enter(b, address)

    def _enter(self, b: int, address: int) -> None:
        if b not in self._facts.slot:
            self._memory.free.take(address, self._facts.size_bytes[b])
        self._address[b] = address
        self._recorder.open(b, 0, address)
        self._loaded[b] = True

    def _finish(self) -> None:
        facts = self._facts
        for b in sorted(self._address):
            if facts.is_weight[b] and b not in facts.slot:
                if b in self._gone_at_once:
                    pass  # moved as soon as the run began: not worth keeping for the next one
                elif self._keep is None or b in self._keep:
                    self.kept_weights[b] = self._address[b]
                elif facts.steady:
                    self._record_spill(b, facts.n_steps, facts.last_step[b], facts.n_steps - 1, written=False)
            self._recorder.close(b, PHASES_PER_STEP * facts.n_steps)

    # --- one step

    def _run_step(self, i: int, step: StepFacts) -> None:
        address = self._address
        if len(step.loads) < len(step.reads):
            for b in self._program.steps[i].streamed_reads:
                if b in address:
                    self._evict(b, i, forced_by=i)
        if self._candidates is not None:
            for b in step.reads:
                self._candidates.remove(b)
        if i in self._spec.moves:
            self._memory.move(self._spec.moves[i])
        needs = [need for need in step.needs if need.buffer not in address]
        addresses = self._place(i, step, needs)
        compacted = addresses is None
        if addresses is None:
            addresses = self._memory.compact(i, step, needs)
        if self._memory.moved_from:
            self._record_moves(i)
        self._record_step(i, step, needs, addresses)
        if compacted:
            self._memory.find_holes()

    def _place(self, i: int, step: StepFacts, needs: Sequence[Need]) -> list[int] | None:
        """Allocate each need, evicting as the rule says. None, and nothing allocated, if that fails."""
        resident, size_bytes = self._address, self._facts.size_bytes
        leaving = [(phase, resident[b], size_bytes[b]) for b, phase in step.ends if b in resident]
        addresses: list[int] = []
        for phase in _PHASES:
            for need in needs[len(addresses) :]:  # by first phase
                if need.first is not phase:
                    break
                address = self._allocate(i, need)
                if address is None:
                    self._memory.find_holes()
                    return None
                addresses.append(address)
                if need.freed_after is not None:
                    leaving.append((need.freed_after, address, need.size_bytes))
            for freed_after, address, size in leaving:
                if freed_after is phase:
                    self._memory.free.give(address, size)
        return addresses

    def _allocate(self, i: int, need: Need) -> int | None:
        size = need.size_bytes
        if not size:
            return self._memory.pool[0]
        owner = (need.purpose if need.buffer is None else need.buffer, PHASES_PER_STEP * i + need.first)
        address = self._placement.choose(self._memory.free, size, owner)
        while address is None:
            victim = self._candidates_at(i).choose(now=i, need_bytes=size)
            if victim is None:
                return None
            self.victims += 1
            self._evict(victim, i, forced_by=i, fragmentation=self._memory.free.free_bytes >= size)
            address = self._placement.choose(self._memory.free, size, owner)
        self._memory.free.take(address, size)
        return address

    def _candidates_at(self, i: int) -> Evictable:
        """The eviction candidates at step ``i``; built on first use from all resident buffers that it does not read."""
        if self._candidates is None:
            rule, sizes = self._spec.rule, self._facts.sizes
            standing = rule in STANDING_RULES
            self._candidates = (
                CandidateQueue(rule, sizes) if standing else CandidateTable(rule, sizes, self._spec.costs)
            )
            for b in set(self._address).difference(self._facts.steps[i].reads):
                self._offer(self._candidates, b, self._last_use(b))
        return self._candidates

    def _record_moves(self, i: int) -> None:
        for b, address in sorted(self._memory.moved_from.items()):
            if self._address[b] != address:
                self._recorder.move(b, i, self._address[b])
                if i == 0:
                    self._gone_at_once.add(b)
        self._memory.moved_from.clear()

    # --- what a step changes

    def _record_step(self, i: int, step: StepFacts, needs: Sequence[Need], addresses: Sequence[int]) -> None:
        facts, address, record = self._facts, self._address, self._recorder
        tick, streams_out = PHASES_PER_STEP * i, facts.streams_out
        placed: dict[int, int] = {}
        for need, at in zip(needs, addresses, strict=True):
            if need.buffer is not None:
                placed[need.buffer] = at
            else:
                start, end = tick + need.first, tick + need.last + 1
                record.scratch(
                    Scratch(step=i, purpose=need.purpose, size_bytes=need.size_bytes, address=at, start=start, end=end)
                )
        for b in step.loads:
            if b not in address:
                address[b] = at = placed[b] if b in placed else facts.slot[b]
                record.open(b, tick, at)
                kind = TransferKind.RELOAD if self._loaded[b] else TransferKind.FETCH
                record.transfer(kind, b, issue_step=i, needed_step=i)
                self._loaded[b] = True
        for update in self._program.steps[i].updates:
            placed[update.new] = address.pop(update.old)
            record.close(update.old, tick + Phase.COMPUTE)
        for b in step.writes:
            self._loaded[b] = True
            if not streams_out or (b, i) not in streams_out:
                address[b] = at = placed[b] if b in placed else facts.slot[b]
                record.open(b, tick + Phase.COMPUTE, at)
        for b in step.reads:
            self._uses_done[b] += 1
            if b in address:
                self._after_use(b, i, tick + 1 + (Phase.WRITE if facts.is_output[b] else Phase.COMPUTE))
            elif (b, i) in facts.streams_in:
                self._after_stream(b, i)
        for b in step.writes:
            if b in address:
                self._after_use(b, i, tick + Phase.WRITE + 1)
            elif streams_out and (b, i) in streams_out:
                self._in_dram[b] = True
                self._after_stream(b, i)

    def _after_use(self, b: int, i: int, tick: int) -> None:
        facts = self._facts
        if facts.is_output[b] and facts.last_step[b] == i and not self._in_dram[b]:
            self._recorder.transfer(TransferKind.DRAIN, b, issue_step=i + 1, needed_step=i + 1)
            self._in_dram[b] = True
        if facts.released_at[b] <= i:
            # _place() has already freed its space.
            self._recorder.close(b, tick)
            self._placement.freed(self._address.pop(b), facts.size_bytes[b])
            return
        if self._candidates is not None:
            self._offer(self._candidates, b, i)
        if self._spec.off_chip and not facts.is_fixed[b]:
            reason = self._spec.off_chip.get((b, i))
            if reason is not None:
                self._evict(b, i + 1, forced_by=reason.forced_by, fragmentation=reason.fragmentation)

    def _after_stream(self, b: int, i: int) -> None:
        self._loaded[b] = True
        if self._next_use(b) is not None:
            self._record_spill(b, i + 1, i, i, written=False)

    def _evict(self, b: int, i: int, *, forced_by: int, fragmentation: bool = False) -> None:
        """Evict a buffer right before step ``i`` starts; a move of it then is void."""
        self._memory.moved_from.pop(b, None)
        if i == 0:
            self._gone_at_once.add(b)
        writes = self._is_dirty(b)
        last_use = self._last_use(b)
        if writes:
            self._recorder.transfer(TransferKind.WRITE_BACK, b, issue_step=i, needed_step=i)
            self._in_dram[b] = True
        if writes or self._next_use(b) is not None:
            self._record_spill(b, i, last_use, forced_by, written=writes, fragmentation=fragmentation)
        self._free_buffer(b, PHASES_PER_STEP * i)

    def _free_buffer(self, b: int, tick: int) -> None:
        if self._candidates is not None:
            self._candidates.remove(b)
        self._recorder.close(b, tick)
        address = self._address.pop(b)
        if b not in self._facts.slot:
            self._memory.free.give(address, self._facts.size_bytes[b])
            self._placement.freed(address, self._facts.size_bytes[b])

    def _record_spill(
        self, b: int, evict_step: int, last_use: int, forced_by: int, *, written: bool, fragmentation: bool = False
    ) -> None:
        needed = self._next_use(b)
        streamed = needed is not None and (b, needed % max(self._facts.n_steps, 1)) in self._facts.streams_in
        self._recorder.spill(
            Spill(
                buffer=b,
                last_use_step=last_use,
                evict_step=evict_step,
                needed_step=needed,
                forced_by_step=forced_by,
                written=written,
                reloaded=needed is not None and not streamed,
                fragmentation=fragmentation,
            )
        )

    # --- facts about a buffer

    def _next_use(self, b: int) -> int | None:
        """Step of the next read, + n_steps if in the next inference; None if there is none."""
        return self._facts.uses[b][self._uses_done[b]]

    def _adds_write(self, b: int) -> bool:
        """Whether eviction costs an extra DRAM write."""
        return self._is_dirty(b) and self._write_backs.adds_write(b, evicted_before=self._in_dram[b])

    def _is_dirty(self, b: int) -> bool:
        """Whether eviction writes the buffer back."""
        if self._spec.options.writeback is WriteBack.ALWAYS:
            return not self._facts.in_dram_at_start[b]
        return not self._in_dram[b]

    def _last_use(self, b: int) -> int:
        """Step of the last read or write so far; below 0 if that was in the inference before."""
        life, done = self._lives[b], self._uses_done[b]
        if done:
            return life.read_steps[done - 1]
        return life.last_step - self._facts.n_steps if life.write_step is None else life.write_step

    def _offer(self, candidates: Evictable, b: int, last_use: int) -> None:
        """Make a buffer a candidate, unless it is fixed or empty."""
        facts = self._facts
        if facts.size_bytes[b] and not facts.is_fixed[b]:
            next_use = self._next_use(b)
            never = 2 * facts.n_steps + 1
            candidates.add(
                b, last_use=last_use, next_use=never if next_use is None else next_use, dirty=self._adds_write(b)
            )
