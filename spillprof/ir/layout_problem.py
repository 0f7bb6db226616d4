"""Static placement alone: buffers with lifetimes and sizes that want offsets in one memory."""

from dataclasses import dataclass

from spillprof.ir.plan import COMPLETE


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutBuffer:
    """``size_bytes`` of space at one offset through the time ``[lower, upper)``, in any unit of time."""

    name: str
    lower: int
    upper: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutProblem:
    """Buffers to be placed. Every offset is a multiple of ``alignment_bytes``, from 0 up."""

    buffers: tuple[LayoutBuffer, ...]
    alignment_bytes: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where the buffers of a problem lie."""

    offsets: tuple[int, ...]  # bytes, in the problem's order
    peak_bytes: int  # the highest end of any buffer
    lower_bound_bytes: int  # no layout has a lower peak
    found_by: str  # the method whose layout this is
    search: str = COMPLETE  # else what ended it: with more time the peak may be lower
