"""Who is told how far some work is."""

from collections.abc import Callable

Stage = Callable[[int, int, str], None]
"""Told before each stage: how many are done, how many there are, and what comes now."""


def unheard(done: int, total: int, what: str) -> None:
    """Where nobody wants to know."""
