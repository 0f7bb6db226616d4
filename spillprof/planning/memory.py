"""What is on-chip in a run, at which addresses, and the holes between."""

from collections.abc import Mapping, Sequence

from spillprof.ir.errors import CapacityError
from spillprof.ir.program import Phase, Program
from spillprof.ir.units import format_size_exact
from spillprof.planning.compaction import Block, compact
from spillprof.planning.free_list import INFINITE_BYTES
from spillprof.planning.placement import make_space
from spillprof.planning.run_facts import Need, RunFacts, StepFacts


class Memory:
    """The pool of one run. ``address`` is that of every resident buffer, ``free`` the space that none of them takes.

    ``moved_from``: where what moves before the step at hand was, by buffer.
    """

    def __init__(self, program: Program, facts: RunFacts, placement: str) -> None:
        self._program, self._facts, self._placement = program, facts, placement
        capacity = INFINITE_BYTES if program.capacity_bytes is None else program.capacity_bytes
        end = capacity - capacity % program.alignment_bytes  # compaction lays operands at the end of the pool too
        self.pool = (program.reserved_bytes, max(program.reserved_bytes, end))
        self.address: dict[int, int] = {}
        self.moved_from: dict[int, int] = {}
        self.free = make_space(program, self.pool, placement)

    def find_holes(self) -> None:
        """The free space anew, from the addresses."""
        self.free = make_space(self._program, self.pool, self._placement)
        for b, address in self.address.items():
            if b not in self._facts.slot:
                self.free.take(address, self._facts.size_bytes[b])

    def move(self, moves: Mapping[int, int]) -> None:
        """Move buffers to other addresses, all at once; none of them if that is not possible any more."""
        sizes, old = self._facts.size_bytes, {b: self.address[b] for b in moves if b in self.address}
        for b, address in old.items():
            self.free.give(address, sizes[b])
        for b in old:
            if not self.free.is_free(moves[b], sizes[b]):
                self.find_holes()
                return
            self.free.take(moves[b], sizes[b])
        self.address.update((b, moves[b]) for b in old)
        self.moved_from.update(old)

    def compact(self, i: int, step: StepFacts, needs: Sequence[Need]) -> list[int]:
        """Addresses of the needs of step ``i``, where nothing can leave any more: what is resident moves for them.

        The free space is not up to date then. ``CapacityError`` if the step needs more than the pool.
        """
        facts, ends = self._facts, dict(step.ends)
        resident = [b for b in sorted(self.address) if b not in facts.slot and facts.size_bytes[b]]
        blocks = [
            Block(
                size_bytes=facts.size_bytes[b],
                first=Phase.READ,
                last=ends.get(b, Phase.WRITE),
                address=self.address[b],
            )
            for b in resident
        ] + [Block(size_bytes=need.size_bytes, first=need.first, last=need.last) for need in needs]
        demand = max(sum(b.size_bytes for b in blocks if b.first <= phase <= b.last) for phase in Phase)
        if demand > self.pool[1] - self.pool[0]:
            raise self.no_space(f"operator '{self._program.steps[i].name}'", demand)
        addresses = compact(blocks, self.pool)
        for b, address in zip(resident, addresses, strict=False):
            if address != self.address[b]:
                self.moved_from.setdefault(b, self.address[b])
                self.address[b] = address
        return addresses[len(resident) :]

    def no_space(self, what: str, nbytes: int) -> CapacityError:
        """The error for what needs more than there is."""
        reserved = self.pool[0]
        beside = f", beside {format_size_exact(reserved)} that are reserved" if reserved else ""
        left = format_size_exact(self.pool[1] - reserved)
        return CapacityError(
            f"{what} cannot fit even after spilling: {format_size_exact(nbytes)} are needed at once{beside}",
            where=[f"{left} are left after what is reserved, the rest is pinned or in use"],
            hint="pin less, keep inputs on demand (--inputs on-demand), or give more --sram",
        )
