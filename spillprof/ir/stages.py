"""Progress callback."""

from collections.abc import Callable

Stage = Callable[[int, int, str], None]
"""Called before each stage with (done, total, label)."""


def unheard(done: int, total: int, what: str) -> None:
    """Ignores progress."""
