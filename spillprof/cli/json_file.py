"""A plan or certificate that somebody wrote, as JSON values."""

import json
from pathlib import Path
from typing import Any

from spillprof.errors import PlanError


def read_json(path: str) -> Any:
    """What the file says. ``PlanError`` if it is no JSON."""
    try:
        return json.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise PlanError("cannot read the file", where=(f"{path}: {error.strerror or error}",)) from None
    except (ValueError, RecursionError) as error:
        raise PlanError("the file is no JSON", where=(f"{path}: {error}",)) from None
