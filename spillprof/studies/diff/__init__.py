"""Diff: two profiles side by side: what moved, where, and what it goes back to."""

from spillprof.studies.diff.compare import compare
from spillprof.studies.diff.values import (
    BufferChange,
    CauseChange,
    Comparison,
    Difference,
    Fate,
    Matching,
    Named,
    OperatorChange,
    Outcome,
    Run,
    Source,
    StrategyChange,
    Why,
)

__all__ = [
    "BufferChange",
    "CauseChange",
    "Comparison",
    "Difference",
    "Fate",
    "Matching",
    "Named",
    "OperatorChange",
    "Outcome",
    "Run",
    "Source",
    "StrategyChange",
    "Why",
    "compare",
]
