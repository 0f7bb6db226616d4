"""What is said of the algorithms that convolutions run with."""

from collections import Counter
from collections.abc import Sequence

from spillprof.ir.program import Convolution, Program
from spillprof.ir.units import format_size

_NAMED = 3  # operators that a note names

_Named = tuple[str, Convolution]


def convolution_notes(program: Program) -> tuple[str, ...]:
    """Which convolutions memory made slower than they could be, and which make their matrix in blocks."""
    found = [(step.name, step.convolution) for step in program.steps if step.convolution is not None]
    notes = [f"convolutions: {_algorithms(found)}"] if any(c.algorithm != "direct" for _, c in found) else []
    slower = [(name, c) for name, c in found if c.algorithm != c.fastest]
    if slower:
        pairs = Counter(f"{c.fastest} to {c.algorithm}" for _, c in slower)
        kinds = ", ".join(f"{count} from {pair}" for pair, count in pairs.items())
        notes.append(
            f"{_share(slower, found)} with a slower algorithm, as the workspace of the fastest passes half of the SRAM "
            f"or pushes out more than it wins: {kinds} ({_names(slower)})"
        )
    blocked = [(name, c) for name, c in found if c.blocks > 1]
    if blocked:
        blocks = sum(c.blocks for _, c in blocked)
        notes.append(
            f"{_share(blocked, found)} in blocks of the im2col matrix, {blocks:,} in all, one launch each "
            f"({_names(blocked)})"
        )
    return tuple(notes)


def _algorithms(found: Sequence[_Named]) -> str:
    parts = []
    for algorithm, count in sorted(Counter(c.algorithm for _, c in found).items()):
        largest = max(c.workspace_bytes for _, c in found if c.algorithm == algorithm)
        workspace = f" with up to {format_size(largest)} of workspace" if largest else ""
        parts.append(f"{count:,} {algorithm}{workspace}")
    return ", ".join(parts)


def _share(some: Sequence[_Named], found: Sequence[_Named]) -> str:
    return f"{len(some):,} of {len(found):,} convolutions run{'s' if len(some) == 1 else ''}"


def _names(found: Sequence[_Named]) -> str:
    return ", ".join(name for name, _ in found[:_NAMED]) + (", ..." if len(found) > _NAMED else "")
