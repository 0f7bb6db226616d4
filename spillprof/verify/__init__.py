"""Verifier of plans, layouts and certificates; it shares only data types with the planners.

Ticks are those of ``spillprof.ir.program``: step ``i`` owns ticks ``3i`` (READ), ``3i + 1`` (COMPUTE) and
``3i + 2`` (WRITE). A read issued at step ``e`` holds its space from tick ``3e`` on. A write issued at step ``e``
holds its source's space until tick ``3e``, also where the segment ends with the phase before; from then on the
timeline keeps the space until the bytes have left. Of the transfers issued at one step, the writes go first.
The moves of one step happen together, after its writes and before its reads: buffers may exchange their places.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from operator import attrgetter, lt
from typing import Any

from spillprof.ir.plan import Plan, Traffic, TransferKind
from spillprof.ir.program import PHASES_PER_STEP, BufferKind, Program
from spillprof.ir.tiled import with_modes
from spillprof.verify.contents import (
    check_holds,
    check_inputs,
    check_operands,
    check_outputs,
    check_segments,
    check_streams,
    check_updates,
    check_weights_steady,
)
from spillprof.verify.facts import plan_facts
from spillprof.verify.memory import blocks_in_use, check_overlaps, check_places, check_scratch
from spillprof.verify.modes import check_modes
from spillprof.verify.rules import PlanRule, Terms, Violation
from spillprof.verify.spills import check_spills
from spillprof.verify.transfers import check_moves, check_reads, check_writes

__all__ = ["PlanRule", "Terms", "Violation", "recount", "verify"]

DEFAULT_TERMS = Terms()
_STREAM_IN, _STREAM_OUT = "stream-in", "stream-out"


def verify(program: Program, plan: Plan, terms: Terms = DEFAULT_TERMS) -> tuple[Violation, ...]:
    """All violations of the plan; empty if it is legal. Never raises, whatever the plan contains."""
    malformed = tuple(_malformed(program, plan))
    if malformed:  # the other rules need valid indices
        return malformed
    wrong = tuple(check_modes(program, plan, terms))
    if wrong:  # the other rules need tiles that are of their steps
        return wrong
    program = with_modes(program, plan.modes)
    facts, blocks = plan_facts(program, plan, terms), blocks_in_use(program, plan)
    return tuple(
        chain(
            check_places(blocks),
            check_overlaps(blocks),
            check_scratch(program, plan),
            check_inputs(facts),
            check_operands(facts),
            check_updates(facts),
            check_segments(facts),
            check_streams(facts),
            check_holds(facts),
            check_outputs(facts),
            check_weights_steady(facts),
            check_reads(facts),
            check_writes(facts),
            check_moves(facts),
            check_spills(facts),
        )
    )


def _malformed(program: Program, plan: Plan) -> Iterator[Violation]:
    n_steps, n_ticks = len(program.steps), PHASES_PER_STEP * len(program.steps)
    limits = {
        "buffer": len(program.buffers), "segment": len(plan.segments), "start": n_ticks, "end": n_ticks + 1,
        "step": n_steps, "issue_step": n_steps + 1, "evict_step": n_steps + 1, "forced_by_step": n_steps,
    }  # fmt: skip
    records: dict[str, Sequence[Any]] = {
        "segment": plan.segments, "transfer": plan.transfers, "spill": plan.spills,
        "streamed operand": plan.streamed, "mode": plan.modes, "move": plan.moves, "scratch": plan.scratch,
    }  # fmt: skip
    for what, entries in records.items():
        present = [field for field in limits if entries and hasattr(entries[0], field)]
        columns = {field: list(map(attrgetter(field), entries)) for field in present}
        if all(min(columns[field]) >= 0 and max(columns[field]) < limits[field] for field in present) and (
            "start" not in present or all(map(lt, columns["start"], columns["end"]))
        ):
            continue  # no entry is malformed
        for k, entry in enumerate(entries):
            for field in present:
                if not 0 <= getattr(entry, field) < limits[field]:
                    message = f"{what} {k}: {field} {getattr(entry, field)} is not in 0..{limits[field] - 1}"
                    yield Violation(rule=PlanRule.MALFORMED, message=message)
            if "start" in present and entry.start >= entry.end:
                message = f"{what} {k}: ticks {entry.start} to {entry.end} are no stretch of time"
                yield Violation(rule=PlanRule.MALFORMED, message=message)


def recount(program: Program, plan: Plan) -> Traffic:
    """Traffic of the plan. Compulsory: each input's first load, each output's first write, streamed weights.

    The first write of an output is the compulsory one even where it is an early write-back. Inputs that are
    on-chip before the run starts are not loaded.
    """
    to_load = {b.index for b in program.buffers if b.kind is BufferKind.INPUT and not plan.inputs_resident}
    to_store = {b.index for b in program.buffers if b.kind is BufferKind.OUTPUT}
    compulsory_read = sum(step.weight_stream_bytes for step in program.steps)
    compulsory_write = 0
    rest = {TransferKind.RELOAD: 0, TransferKind.WRITE_BACK: 0, TransferKind.DRAIN: 0, _STREAM_IN: 0, _STREAM_OUT: 0}
    rest[_STREAM_IN] = sum(mode.weight_repeat_bytes for mode in plan.modes)
    for _, kind, buffer, size in sorted(
        [(t.issue_step, t.kind, t.buffer, t.size_bytes) for t in plan.transfers]
        + [(s.step, _STREAM_OUT if s.write else _STREAM_IN, s.buffer, s.size_bytes) for s in plan.streamed]
    ):
        once = min(size, program.buffers[buffer].moved_bytes)  # further passes of tiles are not compulsory
        if kind == TransferKind.FETCH or (kind == _STREAM_IN and buffer in to_load):
            compulsory_read += once
            to_load.discard(buffer)
        elif kind in (TransferKind.WRITE_BACK, TransferKind.DRAIN, _STREAM_OUT) and buffer in to_store:
            compulsory_write += once
            to_store.discard(buffer)
        else:
            once = 0
        if size > once:
            rest[kind] += size - once
    return Traffic(
        compulsory_read_bytes=compulsory_read,
        compulsory_write_bytes=compulsory_write,
        spill_write_bytes=rest[TransferKind.WRITE_BACK] + rest[TransferKind.DRAIN],
        spill_read_bytes=rest[TransferKind.RELOAD],
        streamed_read_bytes=rest[_STREAM_IN],
        streamed_write_bytes=rest[_STREAM_OUT],
        moved_bytes=sum(move.size_bytes for move in plan.moves),
    )
