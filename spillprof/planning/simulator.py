"""Online simulator: walks the steps with a contiguous memory and picks victims when an allocation fails.

It also follows decisions made beforehand: ``off_chip`` names gaps in which a buffer leaves right after its use.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from spillprof.errors import CapacityError
from spillprof.model.plan import Plan, Scratch, Spill, TransferKind
from spillprof.model.program import PHASES_PER_STEP, Phase, Step
from spillprof.planning.buffer_state import BufferStates
from spillprof.planning.candidates import CandidateTable
from spillprof.planning.compaction import Block, compact
from spillprof.planning.free_list import INFINITE_BYTES
from spillprof.planning.options import Inputs
from spillprof.planning.placement import Placement, make_space
from spillprof.planning.recorder import PlanRecorder
from spillprof.planning.setting import Setting
from spillprof.units import format_size_exact


class Run:
    """One inference. ``plan()`` may be called once; ``kept_weights`` then tells what stays for the next one.

    ``at_start`` gives the address of each cached weight that is resident when the run starts. With ``keep`` only
    those of its weights may stay at the end.
    """

    def __init__(
        self,
        setting: Setting,
        placement: Placement,
        at_start: Mapping[int, int],
        keep: frozenset[int] | None = None,
    ) -> None:
        program = setting.program
        self._setting = setting
        self._program = program
        self._n = len(program.steps)
        self._placement = placement
        self._keep = keep
        self._state = BufferStates(program, setting.options)
        capacity = INFINITE_BYTES if program.capacity_bytes is None else program.capacity_bytes
        end = capacity - capacity % program.alignment_bytes  # compaction lays operands at the end of the pool too
        self._pool = (program.reserved_bytes, max(program.reserved_bytes, end))
        self._free = make_space(program, self._pool, setting.options.placement)
        self._address: dict[int, int] = {}  # of every resident buffer
        self._candidates = CandidateTable(program, setting.costs)
        self._recorder = PlanRecorder(program)
        self._gone_at_once: set[int] = set()  # residents that left their place before the first step
        self.kept_weights: dict[int, int] = {}
        self._enter_residents(at_start)

    def plan(self) -> Plan:
        """Run all steps. ``CapacityError`` if all that is resident is in use or cannot leave, and too much."""
        late: dict[int, list[int]] = {}
        for b, released in enumerate(self._state.released_at):
            if self._state.lives[b].last_step < released < self._n:
                late.setdefault(released, []).append(b)
        for i, step in enumerate(self._program.steps):
            self._run_step(i, step)
            for b in late.get(i, ()):
                if b in self._address:
                    self._free_buffer(b, PHASES_PER_STEP * (i + 1))
        self._finish()
        return self._recorder.plan(
            self._setting.strategy, inputs_resident=self._setting.options.inputs is Inputs.RESIDENT
        )

    # --- start and end of the run

    def _enter_residents(self, at_start: Mapping[int, int]) -> None:
        for buffer in self._program.buffers:
            b = buffer.index
            if self._state.is_weight(b) and self._state.steady:
                address = self._state.slot.get(b, at_start.get(b))
                if address is not None:
                    self._enter(b, address)
        for buffer in self._program.buffers:
            if buffer.index in self._state.resident:
                address = self._state.slot.get(buffer.index)
                if address is None:
                    address = self._placement.choose(self._free, buffer.size_bytes, (buffer.index, 0))
                if address is None:
                    raise self._no_space(f"graph input '{buffer.name}'", buffer.size_bytes)
                self._enter(buffer.index, address)

    def _enter(self, b: int, address: int) -> None:
        if b not in self._state.slot:
            self._free.take(address, self._program.buffers[b].size_bytes)
        self._address[b] = address
        self._recorder.open(b, 0, address)
        self._state.loaded[b] = True
        if not self._state.is_fixed(b):
            self._add_candidate(b, self._state.lives[b].last_step - self._n)

    def _finish(self) -> None:
        for b in sorted(self._address):
            if self._state.is_weight(b) and b not in self._state.slot:
                if b in self._gone_at_once:
                    pass  # left as soon as the run began: not worth keeping for the next one
                elif self._keep is None or b in self._keep:
                    self.kept_weights[b] = self._address[b]
                elif self._state.steady:
                    self._record_spill(b, self._n, self._state.lives[b].last_step, self._n - 1, written=False)
            self._recorder.close(b, PHASES_PER_STEP * self._n)

    # --- one step

    def _run_step(self, i: int, step: Step) -> None:
        for b in step.streamed_reads:
            if b in self._address:
                self._evict(b, i, forced_by=i)
        for b in step.reads:
            self._candidates.remove(b)
        needs = self._needs(i, step)
        addresses = self._place(i, step, needs)
        if addresses is None:
            self._compact(i, step, needs)
            return
        self._record_step(i, step, needs, addresses)

    def _needs(self, i: int, step: Step) -> list["_Need"]:
        """Space that the step asks for, by first phase: operands to load, staging, workspaces, results."""
        buffers = self._program.buffers
        needs = [
            _Need(b, "", buffers[b].size_bytes, Phase.READ, self._state.given_back(b, i, step))
            for b in step.reads
            if b not in self._address and b not in self._state.slot and (b, i) not in self._state.streams_in
        ]
        if step.stream_staging_bytes:
            needs.append(_Need(None, "stream staging", step.stream_staging_bytes, Phase.READ, Phase.WRITE))
        needs += [_Need(None, w.purpose, w.size_bytes, w.first, w.last) for w in step.workspaces]
        new = {u.new for u in step.updates}
        needs += [
            _Need(b, "", buffers[b].size_bytes, Phase.COMPUTE, None if self._state.survives(b, i) else Phase.WRITE)
            for b in step.writes
            if b not in self._state.slot and (b, i) not in self._state.streams_out and b not in new
        ]
        return sorted(needs, key=lambda need: need.first)

    def _place(self, i: int, step: Step, needs: list["_Need"]) -> list[int] | None:
        """Take an address for each need, evicting as the rule says. None, and nothing taken, if that fails."""
        leaving = [
            (self._state.given_back(b, i, step), self._address[b], self._program.buffers[b].size_bytes)
            for b in step.reads
            if b in self._address and b not in self._state.slot
        ]
        addresses: list[int] = []
        for phase in Phase:
            for need in needs:
                if need.first is phase:
                    address = self._allocate(i, need)
                    if address is None:
                        self._rebuild_free_list()
                        return None
                    addresses.append(address)
                    leaving.append((need.given_back, address, need.size_bytes))
            for given_back, address, size in leaving:
                if given_back is phase:
                    self._free.give(address, size)
        return addresses

    def _allocate(self, i: int, need: "_Need") -> int | None:
        size = need.size_bytes
        if not size:
            return self._pool[0]
        owner = (need.purpose if need.buffer is None else need.buffer, PHASES_PER_STEP * i + need.first)
        address = self._placement.choose(self._free, size, owner)
        while address is None:
            victim = self._candidates.choose(self._setting.rule, now=i, need_bytes=size)
            if victim is None:
                return None
            self._evict(victim, i, forced_by=i, fragmentation=self._free.free_bytes >= size)
            address = self._placement.choose(self._free, size, owner)
        self._free.take(address, size)
        return address

    def _rebuild_free_list(self) -> None:
        self._free = make_space(self._program, self._pool, self._setting.options.placement)
        for b, address in self._address.items():
            if b not in self._state.slot:
                self._free.take(address, self._program.buffers[b].size_bytes)

    def _compact(self, i: int, step: Step, needs: list["_Need"]) -> None:
        """Nothing can leave any more: move what is resident so that the step's needs find holes."""
        resident = [
            b for b in sorted(self._address) if b not in self._state.slot and self._program.buffers[b].size_bytes
        ]
        reads = frozenset(step.reads)
        blocks = [
            Block(
                size_bytes=self._program.buffers[b].size_bytes,
                first=Phase.READ,
                last=self._last_phase(b, i, step) if b in reads else Phase.WRITE,
                address=self._address[b],
            )
            for b in resident
        ] + [Block(size_bytes=need.size_bytes, first=need.first, last=need.last) for need in needs]
        self._check_demand(step, blocks)
        addresses = compact(blocks, self._pool)
        for b, address in zip(resident, addresses, strict=False):
            if address != self._address[b]:
                if i == 0:
                    self._gone_at_once.add(b)
                self._recorder.move(b, i, address)
                self._address[b] = address
        self._record_step(i, step, needs, addresses[len(resident) :])
        self._rebuild_free_list()

    def _last_phase(self, b: int, i: int, step: Step) -> Phase:
        given_back = self._state.given_back(b, i, step)
        return Phase.WRITE if given_back is None else given_back

    def _check_demand(self, step: Step, blocks: list[Block]) -> None:
        demand = max(sum(b.size_bytes for b in blocks if b.first <= phase <= b.last) for phase in Phase)
        if demand > self._pool[1] - self._pool[0]:
            raise self._no_space(f"operator '{step.name}'", demand)

    def _no_space(self, what: str, nbytes: int) -> CapacityError:
        pool = self._pool[1] - self._pool[0]
        return CapacityError(
            f"{what} cannot fit even after spilling: {format_size_exact(nbytes)} are needed at once",
            where=[f"{format_size_exact(pool)} are left after what is reserved, the rest is pinned or in use"],
            hint="pin less, keep inputs on demand (--inputs on-demand), or give more --sram",
        )

    # --- what a step changes

    def _record_step(self, i: int, step: Step, needs: list["_Need"], addresses: list[int]) -> None:
        tick, record = PHASES_PER_STEP * i, self._recorder
        placed = dict(self._state.slot)
        for need, address in zip(needs, addresses, strict=True):
            if need.buffer is not None:
                placed[need.buffer] = address
            else:
                start, end = tick + need.first, tick + need.last + 1
                record.scratch(
                    Scratch(
                        step=i, purpose=need.purpose, size_bytes=need.size_bytes, address=address, start=start, end=end
                    )
                )
        for b in step.reads:
            if b not in self._address and (b, i) not in self._state.streams_in:
                self._address[b] = placed[b]
                record.open(b, tick, placed[b])
                kind = TransferKind.RELOAD if self._state.loaded[b] else TransferKind.FETCH
                record.transfer(kind, b, issue_step=i, needed_step=i)
                self._state.loaded[b] = True
        for update in step.updates:
            placed[update.new] = self._address.pop(update.old)
            record.close(update.old, tick + Phase.COMPUTE)
        for b in step.writes:
            self._state.loaded[b] = True
            if (b, i) not in self._state.streams_out:
                self._address[b] = placed[b]
                record.open(b, tick + Phase.COMPUTE, placed[b])
        for b in step.reads:
            self._state.uses_done[b] += 1
            if b in self._address:
                self._after_use(b, i, tick + 1 + (Phase.WRITE if self._state.is_output(b) else Phase.COMPUTE))
            elif (b, i) in self._state.streams_in:
                self._after_stream(b, i)
        for b in step.writes:
            if (b, i) in self._state.streams_out:
                self._state.in_dram[b] = True
                self._after_stream(b, i)
            elif b in self._address:
                self._after_use(b, i, tick + Phase.WRITE + 1)

    def _after_use(self, b: int, i: int, tick: int) -> None:
        if self._state.is_output(b) and self._state.lives[b].last_step == i and not self._state.in_dram[b]:
            self._recorder.transfer(TransferKind.DRAIN, b, issue_step=i + 1, needed_step=i + 1)
            self._state.in_dram[b] = True
        if not self._state.survives(b, i):
            # Within _place() the pool space was given back already.
            self._recorder.close(b, tick)
            self._placement.freed(self._address.pop(b), self._program.buffers[b].size_bytes)
        elif not self._state.is_fixed(b):
            self._add_candidate(b, i)
            reason = self._setting.off_chip.get((b, i))
            if reason is not None:
                self._evict(b, i + 1, forced_by=reason.forced_by, fragmentation=reason.fragmentation)

    def _after_stream(self, b: int, i: int) -> None:
        self._state.loaded[b] = True
        if self._state.next_use(b) is not None:
            self._record_spill(b, i + 1, i, i, written=False)

    def _evict(self, b: int, i: int, *, forced_by: int, fragmentation: bool = False) -> None:
        """The buffer leaves when step ``i`` is about to start."""
        self._candidates.remove(b)
        if i == 0:
            self._gone_at_once.add(b)
        writes = self._state.is_dirty(b)
        last_use = int(self._candidates.last_use[b])
        if writes:
            self._recorder.transfer(TransferKind.WRITE_BACK, b, issue_step=i, needed_step=i)
            self._state.in_dram[b] = True
        if self._state.next_use(b) is not None or writes:
            self._record_spill(b, i, last_use, forced_by, written=writes, fragmentation=fragmentation)
        self._free_buffer(b, PHASES_PER_STEP * i)

    def _free_buffer(self, b: int, tick: int) -> None:
        self._candidates.remove(b)
        self._recorder.close(b, tick)
        address = self._address.pop(b)
        if b not in self._state.slot:
            self._free.give(address, self._program.buffers[b].size_bytes)
            self._placement.freed(address, self._program.buffers[b].size_bytes)

    def _record_spill(
        self, b: int, evict_step: int, last_use: int, forced_by: int, *, written: bool, fragmentation: bool = False
    ) -> None:
        needed = self._state.next_use(b)
        self._recorder.spill(
            Spill(
                buffer=b,
                last_use_step=last_use,
                evict_step=evict_step,
                needed_step=needed,
                forced_by_step=forced_by,
                written=written,
                reloaded=self._state.comes_back(needed, b),
                fragmentation=fragmentation,
            )
        )

    # --- facts about a buffer

    def _add_candidate(self, b: int, last_use: int) -> None:
        next_use = self._state.next_use(b)
        never = 2 * self._n + 1
        self._candidates.add(
            b, last_use=last_use, next_use=never if next_use is None else next_use, dirty=self._state.is_dirty(b)
        )


@dataclass(frozen=True, slots=True)
class _Need:
    """Space that a step asks for."""

    buffer: int | None  # None: scratch
    purpose: str
    size_bytes: int
    first: Phase
    given_back: Phase | None  # the phase after which it becomes free; None if it stays taken

    @property
    def last(self) -> Phase:
        """The last phase of this step in which it is held."""
        return Phase.WRITE if self.given_back is None else self.given_back
