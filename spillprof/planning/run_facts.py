"""What a simulation starts from: its inputs, what each step allocates, and the constant facts of each buffer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spillprof.ir.memo import once_per_steps
from spillprof.ir.program import IN_DRAM_AT_START, BufferKind, Phase, Program, Reservation, Step
from spillprof.planning.gaps import GapKey
from spillprof.planning.liveness import lifetimes, release_steps, resident_inputs
from spillprof.planning.options import Inputs, PlanningOptions, Release, Start
from spillprof.planning.strategies import EvictionRule
from spillprof.planning.traffic import TransferCosts


@dataclass(frozen=True, slots=True)
class OffChip:
    """Why a gap is spent off-chip."""

    forced_by: int  # step
    fragmentation: bool  # only because no hole was large enough: the free bytes would have sufficed


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationSpec:
    """What a simulation is given: everything but the weights that are resident at its start."""

    program: Program
    strategy: str  # name that the plan will carry
    rule: EvictionRule
    costs: TransferCosts
    options: PlanningOptions
    off_chip: Mapping[GapKey, OffChip]
    moves: Mapping[int, Mapping[int, int]] = field(default_factory=dict)  # step before which -> buffer -> next address


_READ, _COMPUTE, _WRITE = Phase  # names of a module are looked up faster than members of an enum


class Need(NamedTuple):
    """Space that a step allocates."""

    buffer: int | None  # None: scratch
    purpose: str
    size_bytes: int
    first: Phase
    freed_after: Phase | None  # the phase after which it is freed; None if it stays allocated

    @property
    def last(self) -> Phase:
        """The last phase of this step in which it is allocated."""
        return Phase.WRITE if self.freed_after is None else self.freed_after


class StepFacts(NamedTuple):
    """One step. ``needs`` list all operands: those on-chip when it starts are skipped."""

    reads: tuple[int, ...]
    loads: tuple[int, ...]  # those of ``reads`` that must be on-chip
    writes: tuple[int, ...]
    needs: tuple[Need, ...]  # by first phase
    ends: tuple[tuple[int, Phase], ...]  # operands whose space is freed, and after which phase


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """All steps, and columns over the buffers, by index."""

    n_steps: int
    steps: tuple[StepFacts, ...]
    size_bytes: tuple[int, ...]
    sizes: npt.NDArray[np.float64]  # size_bytes, not to be changed
    uses: tuple[tuple[int | None, ...], ...]  # steps that read it, then the first read of the next inference, or None
    last_step: tuple[int, ...]  # that touches it; -1 if none does
    is_weight: tuple[bool, ...]
    is_output: tuple[bool, ...]  # must be in DRAM at the end
    is_fixed: tuple[bool, ...]  # can never be evicted
    in_dram_at_start: tuple[bool, ...]
    released_at: tuple[int, ...]  # step at whose end its space is freed
    released_late: Mapping[int, tuple[int, ...]]  # by step: buffers freed at its end, later than their last use
    slot: Mapping[int, int]  # addresses of dedicated buffers
    resident: frozenset[int]  # on-chip from start to end
    steady: bool  # steady state: cached weights stay for the next inference
    streams_in: frozenset[tuple[int, int]]  # (buffer, step)
    streams_out: frozenset[tuple[int, int]]


def run_facts(program: Program, options: PlanningOptions) -> RunFacts:
    """The facts of a program under these options; computed once for each program."""
    switches = options.inputs, options.release, options.start
    return _run_facts(program, *switches, program.weights_persist, program.reservations)


@once_per_steps
def _run_facts(
    program: Program,
    inputs: Inputs,
    release: Release,
    start: Start,
    weights_persist: bool,
    reservations: Sequence[Reservation],
) -> RunFacts:
    buffers, n = program.buffers, len(program.steps)
    lives = lifetimes(program)
    slot = _slot_addresses(reservations)
    resident = resident_inputs(program, PlanningOptions(inputs=inputs))
    steady = weights_persist and start is Start.STEADY
    kinds = [b.kind for b in buffers]
    is_weight = tuple([kind is BufferKind.WEIGHT for kind in kinds])
    is_output = tuple([kind is BufferKind.OUTPUT for kind in kinds])
    last_step = tuple([life.last_step for life in lives])
    released_at = tuple(
        [
            n if b in resident or (is_weight[b] and weights_persist) else step
            for b, step in enumerate(release_steps(program, last_step, release))
        ]
    )
    late: dict[int, list[int]] = {}
    for b, (last, released) in enumerate(zip(last_step, released_at, strict=True)):
        if last < released < n:
            late.setdefault(released, []).append(b)
    size_bytes = tuple([b.size_bytes for b in buffers])
    needs = _NeedsOfSteps(size_bytes=size_bytes, slot=slot, released_at=released_at, is_output=is_output)
    return RunFacts(
        n_steps=n,
        steps=tuple(map(needs.of, range(n), program.steps)),
        size_bytes=size_bytes,
        sizes=np.array(size_bytes, dtype=np.float64),
        uses=tuple(
            [
                (*life.read_steps, life.read_steps[0] + n if steady and weight and life.read_steps else None)
                for life, weight in zip(lives, is_weight, strict=True)
            ]
        ),
        last_step=last_step,
        is_weight=is_weight,
        is_output=is_output,
        is_fixed=tuple([b in slot or b in resident for b in range(len(buffers))]),
        in_dram_at_start=tuple([kind in IN_DRAM_AT_START for kind in kinds]),
        released_at=released_at,
        released_late={step: tuple(freed) for step, freed in late.items()},
        slot=slot,
        resident=resident,
        steady=steady,
        streams_in=frozenset((b, i) for i, step in enumerate(program.steps) for b in step.streamed_reads),
        streams_out=frozenset((b, i) for i, step in enumerate(program.steps) for b in step.streamed_writes),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _NeedsOfSteps:
    """Works out what steps allocate, from these columns over the buffers."""

    size_bytes: tuple[int, ...]
    slot: Mapping[int, int]
    released_at: tuple[int, ...]
    is_output: tuple[bool, ...]

    def of(self, i: int, step: Step) -> StepFacts:
        """The facts of step ``i``. Its needs are operands to load, staging, workspaces and results."""
        size, slot, released_at = self.size_bytes, self.slot, self.released_at
        heirs = {update.old: update.new for update in step.updates}
        loads = step.reads
        if step.streamed_reads:
            streamed = frozenset(step.streamed_reads)
            loads = tuple([b for b in step.reads if b not in streamed])
        ends = {}
        for b in step.reads:
            if (released_at[b] <= i or b in heirs) and (phase := self._freed_after(b, i, heirs)) is not None:
                ends[b] = phase
        needs = [Need(b, "", size[b], _READ, ends.get(b)) for b in loads if b not in slot]
        if step.stream_staging_bytes:
            needs.append(Need(None, "stream staging", step.stream_staging_bytes, _READ, _WRITE))
        if step.workspaces:
            needs += [Need(None, w.purpose, w.size_bytes, w.first, w.last) for w in step.workspaces]
        elsewhere = {*step.streamed_writes, *heirs.values()}
        for b in step.writes:
            if b not in slot and b not in elsewhere:
                needs.append(Need(b, "", size[b], _COMPUTE, None if released_at[b] > i else _WRITE))
        if step.workspaces:
            needs.sort(key=lambda need: need.first)
        return StepFacts(
            step.reads, loads, step.writes, tuple(needs), tuple([end for end in ends.items() if end[0] not in slot])
        )

    def _freed_after(self, b: int, i: int, heirs: Mapping[int, int]) -> Phase | None:
        """The phase after which the space of an operand that is read is freed; None if it stays allocated.

        ``heirs``: the result that takes over an operand's space, by operand.
        """
        if b in heirs:
            return None if self.released_at[heirs[b]] > i else _WRITE
        if self.released_at[b] > i:
            return None
        return _WRITE if self.is_output[b] else _COMPUTE  # an output is drained after the step


def _slot_addresses(reservations: Sequence[Reservation]) -> dict[int, int]:
    slots: dict[int, int] = {}
    address = 0
    for reservation in reservations:
        if reservation.buffer is not None:
            slots[reservation.buffer] = address
        address += reservation.size_bytes
    return slots
