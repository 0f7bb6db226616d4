"""What can be measured: copies of a given size between a large memory and the memory beside the compute units."""

from enum import StrEnum
from typing import Protocol


class Direction(StrEnum):
    """Which way the bytes go."""

    READ = "read"  # from the large memory, as a reload
    WRITE = "write"  # into it, as a write-back
    BOTH = "both"  # as many bytes each way, at once


class Copier(Protocol):
    """A machine that copies and tells how long it took."""

    @property
    def device(self) -> str:
        """What was measured, in words."""

    @property
    def method(self) -> tuple[str, ...]:
        """How: one remark each."""

    def seconds(self, direction: Direction, size_bytes: int) -> float:
        """Seconds of one copy of so many bytes (for ``BOTH``: so many each way)."""

    def close(self) -> None:
        """Give the buffers back."""
