"""A side-car for netron: open the model, then drop this file onto it, and its sidebar shows what spills.

Netron finds operators and tensors by name; an operator without a name in the file cannot be found, nor one inside of a
function. ``.spill.onnx`` has no such limit.
"""

import json
from collections.abc import Iterator

from spillprof.ir.profile import Profile
from spillprof.report.exports.node_notes import Note, model_notes, operator_notes, tensor_notes
from spillprof.report.text import printable


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
