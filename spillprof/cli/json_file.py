"""A plan or certificate that somebody wrote, as JSON values."""

from typing import Any

from spillprof.ir.side_files.json_text import parse_json
from spillprof.ir.side_files.kinds import Kind
from spillprof.ir.side_files.opening import read_text


def read_json(path: str, kind: Kind) -> Any:
    """What the file says. ``PlanError`` if it is no JSON."""
    return parse_json(read_text(path, kind), kind, path)
