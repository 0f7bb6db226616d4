"""What spills, in the graph: a side-car for netron, and a copy of the model with notes.

Netron finds operators and tensors by name; an operator without a name in the file cannot be found, nor one inside of a
function. The copy of the model has no such limit.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from spillprof.ir.errors import UsageError
from spillprof.ir.profile import Profile
from spillprof.ir.result import OperatorCost, Result
from spillprof.ir.units import format_size, format_size_exact, format_time
from spillprof.report.profile.verdict import lead_result, shown_cause, verdict
from spillprof.report.text import label, printable


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One line in a viewer: key and text."""

    key: str
    text: str


def render(profile: Profile) -> str:
    """The side-car as JSON text, one entry a line."""
    metrics = [
        *_entries("model", "", model_notes(profile)),
        *(e for name, notes in operator_notes(profile).items() for e in _entries("node", name, notes)),
        *(e for name, notes in tensor_notes(profile).items() for e in _entries("value", name, notes)),
    ]
    lines = ",\n".join(json.dumps(entry) for entry in metrics)
    return f'{{"signature": "netron:attachment", "metadata": [], "metrics": [\n{lines}\n]}}\n'


def _entries(kind: str, target: str, notes: tuple[Note, ...]) -> Iterator[dict[str, str]]:
    target = target.partition("\n")[0]  # netron knows a name by its first line
    for note in notes:
        yield {"kind": kind, "target": target, "name": f"spill: {note.key}", "value": printable(note.text)}


def annotated(profile: Profile, *, path: str) -> Iterable[bytes]:
    """The model with notes, in pieces, to be written to ``path``; its weights stay in the files where they are.

    ``UsageError`` if the model cannot be read again, or would not find its weights from there.
    """
    from spillprof.frontends.onnx.rewriting import annotate

    model = profile.model.path
    if model == "-":
        raise UsageError(f"'{path}' is a copy of the model, which came through a pipe", hint="give MODEL as a file")
    copy = annotate(
        model,
        sha256=profile.model.sha256,
        of_model=_as_pairs(model_notes(profile)),
        of_nodes={name: _as_pairs(notes) for name, notes in operator_notes(profile).items()},
    )
    if copy.has_external_weights and Path(path).resolve().parent != Path(model).resolve().parent:
        raise UsageError(
            f"'{path}' would not find its weights, which lie in files beside the model",
            where=(model,),
            hint="write it into the folder of the model",
        )
    return copy.contents()


def model_notes(profile: Profile) -> tuple[Note, ...]:
    """Returns the verdict, the target, and the totals of the leading strategy."""
    lead = lead_result(profile)
    notes = [
        Note(key="verdict", text=verdict(profile)),
        Note(key="target", text=f"{label(profile.target.name)}, {format_size(profile.target.sram_bytes)} of SRAM"),
    ]
    if lead is not None:
        notes += [
            Note(key="strategy", text=lead.strategy),
            Note(key="spill bytes", text=format_size_exact(lead.spill_bytes)),
            Note(key="spill time", text=format_time(lead.spill_time_s)),
            Note(key="latency", text=format_time(lead.latency_s)),
        ]
    return tuple(notes)


def operator_notes(profile: Profile) -> dict[str, tuple[Note, ...]]:
    """Returns notes of operators that spill or stall under the leading strategy; a repeated name adds lines."""
    lead = lead_result(profile)
    found: dict[str, tuple[Note, ...]] = {}
    for cost in lead.operators if lead is not None else ():
        found[cost.name] = (*found.get(cost.name, ()), *_of_operator(cost, repeated=cost.name in found))
    return found


def tensor_notes(profile: Profile) -> dict[str, tuple[Note, ...]]:
    """Returns notes of buffers that spill or are streamed under the leading strategy, by tensor name."""
    lead = lead_result(profile)
    return {} if lead is None else {name: tuple(notes) for name, notes in _of_buffers(lead)}


def _of_operator(cost: OperatorCost, *, repeated: bool) -> Iterator[Note]:
    suffix = f" at step {cost.step}" if repeated else ""
    yield Note(key=f"step{suffix}", text=str(cost.step))
    for what, nbytes in (
        ("written", cost.spill_write_bytes),
        ("reloaded", cost.spill_read_bytes),
        ("streamed", cost.streamed_bytes),
    ):
        if nbytes:
            yield Note(key=f"{what}{suffix}", text=format_size_exact(nbytes))
    if cost.stall_s > 0:
        waited_for = f" for {label(cost.stall_buffer)}" if cost.stall_buffer is not None else ""
        yield Note(key=f"stall{suffix}", text=f"{format_time(cost.stall_s)}{waited_for}")
    cause = shown_cause(cost)
    if cause is not None:
        yield Note(key=f"cause{suffix}", text=cause)
    if cost.victims:
        yield Note(key=f"victims{suffix}", text=", ".join(label(victim) for victim in cost.victims))


def _of_buffers(result: Result) -> Iterator[tuple[str, list[Note]]]:
    for buffer in result.buffers:
        notes = [Note(key="spill bytes", text=format_size_exact(buffer.spill_bytes))]
        if buffer.spill_count:
            notes.append(Note(key="spills", text=f"{buffer.spill_count:,}"))
        yield buffer.name, notes


def _as_pairs(notes: Sequence[Note]) -> tuple[tuple[str, str], ...]:
    """(key, text) as ONNX metadata has them: keys of one word."""
    return tuple((note.key.replace(" ", "_"), note.text) for note in notes)
