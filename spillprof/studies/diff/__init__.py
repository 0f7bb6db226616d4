"""Diff: compares two profiles: which figures moved, at which operators and buffers, and why."""

from spillprof.studies.diff.compare import compare
from spillprof.studies.diff.values import (
    BufferChange,
    CauseChange,
    Difference,
    Fate,
    Matching,
    Named,
    OperatorChange,
    PressureSource,
    ProfileDiff,
    RunSummary,
    StrategyChange,
    StrategyOutcome,
    Why,
)

__all__ = [
    "BufferChange",
    "CauseChange",
    "Difference",
    "Fate",
    "Matching",
    "Named",
    "OperatorChange",
    "PressureSource",
    "ProfileDiff",
    "RunSummary",
    "StrategyChange",
    "StrategyOutcome",
    "Why",
    "compare",
]
