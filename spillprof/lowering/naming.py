"""The error about a tensor that the user names and the model lacks."""

from collections.abc import Iterable

from spillprof.ir.errors import UsageError
from spillprof.ir.nearest import nearest


def unknown_tensor(message: str, name: str, known: Iterable[str]) -> UsageError:
    """The error with close names as its hint."""
    near = nearest(name, known, most=3)
    hint = f"did you mean {', '.join(near)}?" if near else "spillprof inspect lists the tensors"
    return UsageError(message, hint=hint)
