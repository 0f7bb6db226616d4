"""Static layout: buffers with live ranges and sizes, to be given offsets in one memory."""

from dataclasses import dataclass

from spillprof.ir.plan import COMPLETE


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutBuffer:
    """``size_bytes`` at one offset throughout ``[lower, upper)``, in any unit of time."""

    name: str
    lower: int
    upper: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutProblem:
    """Buffers to place at multiples of ``alignment_bytes``, from 0 up."""

    buffers: tuple[LayoutBuffer, ...]
    alignment_bytes: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Offsets of the buffers of a problem."""

    offsets: tuple[int, ...]  # bytes, in the problem's order
    peak_bytes: int  # the highest end of any buffer
    lower_bound_bytes: int  # no layout has a lower peak
    found_by: str  # the method whose layout this is
    search: str = COMPLETE  # or the limit that ended it: a longer search may find a lower peak
