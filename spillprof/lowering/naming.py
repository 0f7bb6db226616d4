"""What to say of a tensor that a user named and that is not there."""

from collections.abc import Iterable

from spillprof.ir.errors import UsageError
from spillprof.ir.nearest import nearest


def unknown_tensor(message: str, name: str, known: Iterable[str]) -> UsageError:
    """The error that says so, with the names that come near."""
    near = nearest(name, known, most=3)
    hint = f"did you mean {', '.join(near)}?" if near else "spillprof inspect lists the tensors"
    return UsageError(message, hint=hint)
