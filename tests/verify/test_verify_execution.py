"""What the verifier accepts runs: plans are executed byte by byte, in an arena whose bytes know what they hold.

The executor knows nothing of the verifier's rules. Reads put their bytes down twice, when they are issued and when
they must have landed, so that whatever shares their space in between is destroyed.
"""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from legal_plans import INPLACE, INPLACE_PLAN, LEGAL, NUDGES, changed
from programs import plan, program

from spillprof.ir.plan import Plan
from spillprof.ir.program import Program
from spillprof.verify import verify


class Failed(Exception):
    """The run reads something other than what it should."""


class Arena:
    """SRAM and DRAM while a plan runs."""

    def __init__(self, p: Program, q: Plan) -> None:
        self.p, self.q = p, q
        self.cells: dict[int, object] = {}
        self.dram = {b.index for b in p.buffers if b.in_dram_at_start}
        for s in q.segments:
            given = p.weights_persist or (q.inputs_resident and p.buffers[s.buffer].kind == "input")
            if s.start == 0 and s.buffer in self.dram and given:
                self.put(s.address, p.buffers[s.buffer].size_bytes, s.buffer)

    def put(self, address: int, size: int, what: object) -> None:
        if address < 0 or (self.q.capacity_bytes is not None and address + size > self.q.capacity_bytes):
            raise Failed(f"{what} outside of SRAM")
        self.cells.update(dict.fromkeys(range(address, address + size), what))

    def check(self, address: int, size: int, what: object) -> None:
        if any(self.cells.get(at) != what for at in range(address, address + size)):
            raise Failed(f"{what} is not at {address}")

    def check_operand(self, b: int, tick: int) -> None:
        places = [s.address for s in self.q.segments if s.buffer == b and s.start <= tick < s.end]
        if not places:
            raise Failed(f"{b} is not on-chip at tick {tick}")
        self.check(places[0], self.p.buffers[b].moved_bytes, b)

    def transfers(self, step: int) -> None:
        for t in self.q.transfers:
            segment = self.q.segments[t.segment]
            if t.issue_step == step and not t.kind.is_read:
                self.check(segment.address, t.size_bytes, t.buffer)
                self.dram.add(t.buffer)
        moves = [move for move in self.q.moves if move.step == step]
        for move in moves:  # all at once: places may be exchanged
            self.check(move.from_address, move.size_bytes, move.buffer)
        for move in moves:
            self.put(move.to_address, move.size_bytes, move.buffer)
        for t in self.q.transfers:
            if t.kind.is_read and step in (t.issue_step, t.needed_step):
                if t.buffer not in self.dram:
                    raise Failed(f"{t.buffer} is not in DRAM")
                self.put(self.q.segments[t.segment].address, t.size_bytes, t.buffer)

    def phase(self, step: int, phase: int) -> None:
        """Scratch and results are written at the start of the phase, operands checked at its end."""
        tick, operation = 3 * step + phase, self.p.steps[step]
        streamed = {s.buffer for s in self.q.streamed if s.step == step}
        scratch = [x for x in self.q.scratch if x.start <= tick < x.end]
        for x in scratch:
            if x.start == tick:
                self.put(x.address, x.size_bytes, x)
        if phase == 1:
            for s in self.q.segments:
                if s.start == tick and s.buffer in operation.writes:
                    self.put(s.address, self.p.buffers[s.buffer].size_bytes, s.buffer)
        replaced = {u.old for u in operation.updates}
        held = {0: operation.reads, 1: (*operation.reads, *operation.writes), 2: operation.writes}[phase]
        for b in held:
            if b not in streamed and not (phase == 1 and b in replaced):
                self.check_operand(b, tick)
        for x in scratch:
            self.check(x.address, x.size_bytes, x)
        for b in operation.holds if phase < 2 else ():
            if b not in self.dram:
                self.check_operand(b, tick)


def execute(p: Program, q: Plan) -> None:
    """Run the plan; ``Failed`` if some step does not find what it needs, or an output is lost."""
    arena = Arena(p, q)
    for step, operation in enumerate(p.steps):
        arena.transfers(step)
        streamed = [s for s in q.streamed if s.step == step]
        if any(not s.write and s.buffer not in arena.dram for s in streamed):
            raise Failed("a streamed operand is not in DRAM")
        for phase in range(3):
            arena.phase(step, phase)
        arena.dram |= {s.buffer for s in streamed if s.write and s.buffer in operation.writes}
    arena.transfers(len(p.steps))
    lost = [b.name for b in p.buffers if b.kind == "output" and b.index not in arena.dram]
    if lost:
        raise Failed(f"{lost} never reach DRAM")
    for b in p.buffers if p.weights_persist else ():
        own = sorted((s for s in q.segments if s.buffer == b.index), key=lambda s: s.start)
        filled = {t.segment for t in q.transfers if t.kind.is_read}
        if b.kind == "weight" and own and own[0].start == 0 and q.segments.index(own[0]) not in filled:
            arena.check(own[0].address, b.moved_bytes, b.index)


def test_legal_plans_execute() -> None:
    for p, q in LEGAL.values():
        execute(p, q)


def test_the_executor_notices_an_overwritten_operand() -> None:
    q = changed(INPLACE_PLAN, "scratch", 0, address=128)
    try:
        execute(INPLACE, q)
    except Failed:
        return
    raise AssertionError("scratch over an operand went unnoticed")


@settings(max_examples=400, deadline=None)
@given(data=st.data(), name=st.sampled_from(sorted(LEGAL)), count=st.integers(1, 3))
def test_what_the_verifier_accepts_executes(data: st.DataObject, name: str, count: int) -> None:
    """Up to three numbers of a legal plan are changed, mostly by a little."""
    p, q = LEGAL[name]
    for _ in range(count):
        part = data.draw(st.sampled_from([part for part in NUDGES if getattr(q, part)]))
        index = data.draw(st.integers(0, len(getattr(q, part)) - 1))
        field = data.draw(st.sampled_from(NUDGES[part]))
        old = getattr(getattr(q, part)[index], field)
        step = data.draw(st.sampled_from([-64, -32, -16, -3, -2, -1, 1, 2, 3, 16, 32, 64]))
        q = changed(q, part, index, **{field: (old or 0) + step})
    if not verify(p, q):
        execute(p, q)


@st.composite
def random_segments(draw: st.DrawFn) -> tuple[Program, Plan]:
    """A small program with segments and transfers drawn at random near what is legal."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=3, max_size=3))
    p = program(
        {"x": ("input", sizes[0]), "a": sizes[1], "y": ("output", sizes[2])}, ["x -> a", "->", "x, a -> y"], capacity=12
    )
    address = st.integers(0, 9)
    segments: list[tuple[str, int, int, int]] = []
    transfers: list[tuple[Any, ...]] = [("fetch", "x", 0, 0, 0)]
    spills = []
    for k, (name, start) in enumerate([("x", 0), ("a", 1)]):
        if draw(st.booleans()):
            segments.append((name, start, 8, draw(address)))
            continue
        segments.append((name, start, draw(st.integers(2, 6)), draw(address)))
        issue = draw(st.integers(1, 2))
        segments.append((name, 3 * issue, 8, draw(address)))
        if name == "a":
            transfers.append(("write-back", "a", draw(st.integers(0, 2)), 2, 0))
        transfers.append(("reload", name, issue, 2, 1))
        evict = -(-segments[-2][2] // 3)
        spills.append({"buffer": name, "last_use_step": 0, "evict_step": evict, "needed_step": 2, "written": bool(k)})
    segments.append(("y", 7, draw(st.integers(8, 9)), draw(address)))
    transfers.append(("drain", "y", 3, 3, 0))
    transfers.sort(key=lambda t: t[2])
    return p, plan(p, capacity=12, segments=segments, transfers=transfers, spills=spills)


@settings(max_examples=300, deadline=None)
@given(random_segments())
def test_what_the_verifier_accepts_of_random_plans_executes(case: tuple[Program, Plan]) -> None:
    p, q = case
    if not verify(p, q):
        execute(p, q)
