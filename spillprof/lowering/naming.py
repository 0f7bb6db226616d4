"""What to say of a tensor that a user named and that is not there."""

from collections.abc import Iterable
from difflib import get_close_matches

from spillprof.errors import UsageError

_LONGEST_NAME = 200  # a name that a user mistypes; also keeps the comparison fast
_MOST_COMPARED = 50_000


def unknown_tensor(message: str, name: str, known: Iterable[str]) -> UsageError:
    """The error that says so, with the names that come near."""
    short = [n for n in known if n and len(n) <= _LONGEST_NAME][:_MOST_COMPARED]
    near = get_close_matches(name[:_LONGEST_NAME], short, n=3)
    hint = f"did you mean {', '.join(near)}?" if near else "spillprof inspect lists the tensors"
    return UsageError(message, hint=hint)
