"""Verifier: is a plan legal for a program? It shares nothing with the planners but the data types.

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

from spillprof.ir.plan import Plan
from spillprof.ir.program import PHASES_PER_STEP, Program
from spillprof.verify.contents import holds, inputs, operands, outputs, segments, streams, updates, weights_steady
from spillprof.verify.facts import gather
from spillprof.verify.memory import blocks_in_use, overlaps, places, scratch
from spillprof.verify.recount import recount
from spillprof.verify.rules import Rule, Violation
from spillprof.verify.spills import spills
from spillprof.verify.terms import Terms
from spillprof.verify.transfers import moves, reads, writes

__all__ = ["Rule", "Terms", "Violation", "recount", "verify"]

DEFAULT_TERMS = Terms()


def verify(program: Program, plan: Plan, terms: Terms = DEFAULT_TERMS) -> tuple[Violation, ...]:
    """Everything that is wrong with the plan; empty if it is legal. Never raises, whatever the plan says."""
    malformed = tuple(_malformed(program, plan))
    if malformed:  # the other rules would have to guess what was meant
        return malformed
    facts, blocks = gather(program, plan, terms), blocks_in_use(program, plan)
    return tuple(
        chain(
            places(blocks),
            overlaps(blocks),
            scratch(program, plan),
            inputs(facts),
            operands(facts),
            updates(facts),
            segments(facts),
            streams(facts),
            holds(facts),
            outputs(facts),
            weights_steady(facts),
            reads(facts),
            writes(facts),
            moves(facts),
            spills(facts),
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
        "streamed operand": plan.streamed, "move": plan.moves, "scratch": plan.scratch,
    }  # fmt: skip
    for what, entries in records.items():
        present = [field for field in limits if entries and hasattr(entries[0], field)]
        columns = {field: list(map(attrgetter(field), entries)) for field in present}
        if all(min(columns[field]) >= 0 and max(columns[field]) < limits[field] for field in present) and (
            "start" not in present or all(map(lt, columns["start"], columns["end"]))
        ):
            continue  # all is well: no need to look for who is to blame
        for k, entry in enumerate(entries):
            for field in present:
                if not 0 <= getattr(entry, field) < limits[field]:
                    message = f"{what} {k}: {field} {getattr(entry, field)} is not in 0..{limits[field] - 1}"
                    yield Violation(rule=Rule.MALFORMED, message=message)
            if "start" in present and entry.start >= entry.end:
                message = f"{what} {k}: ticks {entry.start} to {entry.end} are no stretch of time"
                yield Violation(rule=Rule.MALFORMED, message=message)
