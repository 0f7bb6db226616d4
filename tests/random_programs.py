"""Random Programs with every feature that planners must handle, machines that they barely fit, and planning options."""

from dataclasses import replace
from random import Random

from hypothesis import strategies as st
from programs import target

from spillprof.ir.errors import CapacityError
from spillprof.ir.program import Buffer, BufferKind, Phase, Program, Reservation, Step, Update, Workspace
from spillprof.ir.target import Target
from spillprof.lowering.fitting import fit
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.liveness import step_demand_bytes
from spillprof.planning.options import Inputs, PlanningOptions, Release, Start, WriteBack
from spillprof.planning.placements import PLACEMENTS

ALIGNMENT = 16


def random_program(
    seed: int,
    *,
    max_steps: int = 14,
    capacity_factor: float | None = None,
    weights_persist: bool | None = None,
    features: bool = True,
    holds: bool | None = None,
) -> Program:
    """A program that fits: its capacity is its largest step's demand times a factor (random from 1 to 2)."""
    rng = Random(seed)
    persist = (rng.random() < 0.3 and features) if weights_persist is None else weights_persist
    sizes: list[int] = []
    kinds: list[BufferKind] = []

    def add(kind: BufferKind, size: int | None = None) -> int:
        sizes.append(ALIGNMENT * rng.choice([1, 1, 2, 3, 5, 8, 13]) if size is None else size)
        kinds.append(kind)
        return len(sizes) - 1

    readable = [add(BufferKind.INPUT) for _ in range(rng.randint(1, 3))]
    weights = [add(BufferKind.WEIGHT) for _ in range(rng.randint(1, 4))] if persist else []
    n = rng.randint(1, max_steps)
    steps: list[Step] = []
    reads_of: dict[int, list[int]] = {}
    for i in range(n):
        window = readable[-6:] if rng.random() < 0.7 else readable
        reads = rng.sample(window, rng.randint(1, min(3, len(window))))
        if weights and rng.random() < 0.7:
            reads += rng.sample(weights, 1)
        writes = [add(BufferKind.ACTIVATION) for _ in range(rng.choice([1, 1, 1, 2]))]
        for b in reads:
            reads_of.setdefault(b, []).append(i)
        readable += writes
        workspaces = []
        if features and rng.random() < 0.3:
            first = rng.choice(list(Phase))
            last = rng.choice([p for p in Phase if p >= first])
            workspaces.append(
                Workspace(purpose="test", size_bytes=ALIGNMENT * rng.randint(1, 6), first=first, last=last)
            )
        name = f"scope{i // 4}/op{i}"
        steps.append(
            Step(
                name=name,
                op_type="Op",
                operators=(name,),
                reads=tuple(reads),
                writes=tuple(writes),
                workspaces=tuple(workspaces),
                weight_stream_bytes=0 if persist else rng.choice([0, 16, 64, 200]),
                macs=rng.randint(0, 10_000),
                touched_bytes=rng.randint(0, 10_000),
            )
        )
    for b, kind in enumerate(kinds):
        if kind is BufferKind.ACTIVATION and (b not in reads_of or rng.random() < 0.1):
            kinds[b] = BufferKind.OUTPUT
    if features:
        _add_updates(rng, steps, sizes, kinds, reads_of)
    if features if holds is None else holds:
        _add_holds(rng, steps, reads_of)
    dedicated = set()
    if features and rng.random() < 0.2:
        in_update = {b for s in steps for u in s.updates for b in (u.old, u.new)}
        free = [b for b in range(len(sizes)) if b not in in_update]
        dedicated = set(rng.sample(free, min(1, len(free))))
    moved = _moved(Random(f"{seed} moved"), steps, sizes)
    buffers = tuple(
        Buffer(
            index=b,
            name=f"b{b}",
            tensors=(f"b{b}",),
            kind=kinds[b],
            payload_bytes=moved[b],
            moved_bytes=moved[b],
            size_bytes=sizes[b],
            dedicated=b in dedicated,
        )
        for b in range(len(sizes))
    )
    reservations = tuple(
        [Reservation(what="weight staging", size_bytes=64)] * (not persist)
        + [Reservation(what="dedicated slot", size_bytes=sizes[b], buffer=b) for b in sorted(dedicated)]
    )
    program = Program(
        name=f"random {seed}",
        steps=tuple(steps),
        buffers=buffers,
        alignment_bytes=ALIGNMENT,
        reservations=reservations,
        weights_persist=persist,
    )
    demand = max(step_demand_bytes(program, step) for step in program.steps)
    factor = rng.choice([1.0, 1.0, 1.1, 1.3, 1.6, 2.0]) if capacity_factor is None else capacity_factor
    pool = int(demand * factor) // ALIGNMENT * ALIGNMENT
    return replace(program, capacity_bytes=program.reserved_bytes + max(pool, demand))


def _add_holds(rng: Random, steps: list[Step], reads_of: dict[int, list[int]]) -> None:
    """Let some steps hold what was read for the last time before them, and is not written over."""
    replaced = {u.old for step in steps for u in step.updates}
    for i, step in enumerate(steps):
        unread = [b for b, read in reads_of.items() if read[-1] < i and b not in replaced]
        if unread and rng.random() < 0.25:
            steps[i] = replace(step, holds=tuple(rng.sample(unread, rng.randint(1, min(2, len(unread))))))


def _moved(rng: Random, steps: list[Step], sizes: list[int]) -> list[int]:
    """Bytes that a transfer moves: what the alignment adds to them does not move. The same along in-place results."""
    moved = [size - rng.choice([0, 0, 1, 5, 15]) for size in sizes]
    for step in steps:
        for update in step.updates:
            moved[update.new] = moved[update.old]
    return moved


def _add_updates(
    rng: Random, steps: list[Step], sizes: list[int], kinds: list[BufferKind], reads_of: dict[int, list[int]]
) -> None:
    """Let some steps write over an operand that dies there; the result gets the operand's size."""
    updated: set[int] = set()
    for i, step in enumerate(steps):
        dying = [
            b
            for b in step.reads
            if reads_of[b][-1] == i and kinds[b] in (BufferKind.ACTIVATION, BufferKind.INPUT) and b not in updated
        ]
        if dying and rng.random() < 0.4:
            old, new = dying[0], step.writes[0]
            sizes[new] = sizes[old]
            updated.add(old)
            may_overwrite = (old,) if len(step.writes) == 1 else ()
            steps[i] = replace(step, updates=(Update(old=old, new=new),), may_overwrite=may_overwrite)


def streaming_machine(sram_bytes: int, staging_bytes: int) -> Target:
    """A machine whose set-up times make small buffers dear."""
    return target(
        sram_bytes=sram_bytes,
        alignment_bytes=ALIGNMENT,
        stream_staging_bytes=staging_bytes,
        shared_workspace=False,
        dram_read_setup_s=8.0,
        dram_write_setup_s=4.0,
        dram_read_j_per_byte=2.0,
        dram_write_j_per_byte=3.0,
        sram_j_per_byte=0.5,
        mac_j=1.0,
        macs_per_s={"default": 100.0},
    )


def streaming_case(seed: int) -> tuple[Program, Target] | None:
    """(fitted program, its machine), capacity a half to all of the largest step's demand; None if impossible."""
    rng = Random(seed)
    program = random_program(seed)
    demand = max(step_demand_bytes(program, step) for step in program.steps)
    share = rng.choice([0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    sram = program.reserved_bytes + int(demand * share) // ALIGNMENT * ALIGNMENT
    machine = streaming_machine(sram, ALIGNMENT * rng.choice([1, 1, 2]))
    try:
        return fit(program, machine, LoweringOptions()), machine
    except CapacityError:
        return None


_CHOICES = {"placement": PLACEMENTS, "inputs": Inputs, "writeback": WriteBack, "release": Release, "start": Start}


def planning_options(*fields: str) -> st.SearchStrategy[PlanningOptions]:
    """Planning options of which these fields vary (all of placement, inputs, writeback, release and start if none)."""
    return st.builds(PlanningOptions, **{f: st.sampled_from(_CHOICES[f]) for f in fields or _CHOICES})  # type: ignore[arg-type]
