"""Grid of a sweep: rows of cases and sizes, reused if known, else simulated, in grid order."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from spillprof.analysis.size_grid import coarse_sizes, refining_sizes, sharpest_bends
from spillprof.studies.sweep.curves import METRICS, curves
from spillprof.studies.sweep.rows import FIGURES, Row, SweepCase, make_row
from spillprof.studies.sweep.work import BUG, LOST, OUT_OF_MEMORY, Runner, SweepTask

_Pairs = Sequence[tuple[str, str]]
"""(placement, strategy), in the order of the rows."""

_Progress = Callable[[int, int], None]
"""Called after each task with (points done, points in all)."""


class Grid:
    """Rows found so far, by key. ``rows`` is valid at any time, also after an interruption."""

    def __init__(self, cases: Sequence[SweepCase], pairs: _Pairs, known: Mapping[str, Row]) -> None:
        self._cases, self._pairs = tuple(cases), tuple(pairs)
        self._known = {key: row for key, row in known.items() if _is_settled(row)}
        self._found: dict[str, Row] = {}
        self._sizes: set[int] = set()
        self._tasks = 0
        self.reused = 0  # points taken from known rows

    def at(self, sizes: Iterable[int], runner: Runner, progress: _Progress) -> None:
        """Simulate every case at these SRAM sizes."""
        wanted: dict[int, tuple[SweepCase, SweepTask]] = {}
        for position, case in enumerate(self._cases):
            for sram_bytes in sorted(set(sizes) - self._sizes):
                task = self._task(position, case, sram_bytes)
                if task is not None:
                    wanted[task.number] = case, task
        self._sizes.update(sizes)
        done = len(self._found)
        total = done + sum(len(task.pairs) for _, task in wanted.values())
        for number, outcomes in runner.run([task for _, task in wanted.values()]):
            case, task = wanted[number]
            sram_bytes = task.sram_bytes
            for (placement, strategy), outcome in zip(task.pairs, outcomes, strict=True):
                figures = {name: getattr(outcome.totals, name) for name in FIGURES} if outcome.totals else {}
                self._add(
                    make_row(
                        case, sram_bytes, placement, strategy,
                        status=outcome.status, ideal_latency_s=outcome.ideal_s,
                        spill_bytes_lower=outcome.spill_bytes_lower, **figures,
                    )
                )  # fmt: skip
            progress(len(self._found), total)

    def around_the_bends(self, runner: Runner, progress: _Progress) -> None:
        """Choose the sizes: from the smallest without tiling to the ideal run's peak, densest at bends."""
        while sizes := next_sizes(self._cases, self.rows()):
            self.at(sizes, runner, progress)

    def rows(self) -> tuple[Row, ...]:
        """All rows found, by case, size, placement and strategy, with their spill time."""
        ordered = []
        for case in self._cases:
            for sram_bytes in sorted(self._sizes):
                ordered += _with_spill_time(
                    [
                        _as_of(case, sram_bytes, placement, strategy, self._found[key])
                        for placement, strategy in self._pairs
                        if (key := case.row_key(sram_bytes, placement, strategy)) in self._found
                    ]
                )
        return tuple(ordered)

    def _task(self, position: int, case: SweepCase, sram_bytes: int) -> SweepTask | None:
        """The task for the missing rows of a case at a size; None if there are none."""
        missing = []
        for placement, strategy in self._pairs:
            known = self._known.get(case.row_key(sram_bytes, placement, strategy))
            if case.run is None:
                self._add(make_row(case, sram_bytes, placement, strategy, status=case.error))
            elif known is not None:
                self._add(_as_of(case, sram_bytes, placement, strategy, known))
                self.reused += 1
            else:
                missing.append((placement, strategy))
        if case.run is None or not missing:
            return None
        self._tasks += 1
        return SweepTask(number=self._tasks, run=case.run, sram_bytes=sram_bytes, pairs=tuple(missing))

    def _add(self, row: Row) -> None:
        self._found[row.key] = row


def _with_spill_time(rows: Sequence[Row]) -> list[Row]:
    """The rows of one machine with their spill time, over the same ideal as ``analyze`` of these strategies."""
    fastest: dict[str, float] = {}
    for row in rows:
        if row.latency_s is not None and row.ideal_latency_s is not None:
            fastest[row.placement] = min(fastest.get(row.placement, row.ideal_latency_s), row.latency_s)
    return [
        replace(row, spill_time_s=row.latency_s - fastest[row.placement]) if row.latency_s is not None else row
        for row in rows
    ]


def _as_of(case: SweepCase, sram_bytes: int, placement: str, strategy: str, known: Row) -> Row:
    """A row under the names of a case: equal models share rows, and a file may have moved since an earlier run."""
    return replace(
        known, model=case.model, target=case.target.name, dims=case.dims, settings=case.settings,
        sram_bytes=sram_bytes, placement=placement, strategy=strategy,
    )  # fmt: skip


def _is_settled(row: Row) -> bool:
    """Whether a rerun would give the same row: not after a bug, a lost process or running out of memory."""
    return not row.status.startswith((BUG, LOST, OUT_OF_MEMORY))


_FIRST_SIZES = 9
_MOST_SIZES = 25
_A_ROUND = 4  # sizes added at once


def next_sizes(cases: Sequence[SweepCase], rows: Sequence[Row]) -> list[int]:
    """Sizes to simulate next for all cases, in bytes; empty once the curves are fine enough."""
    readable = [case for case in cases if case.run is not None]
    if not readable:
        return []
    unit = max(case.target.alignment_bytes for case in readable)

    def aligned(nbytes: float) -> int:
        return -(-round(nbytes) // unit) * unit

    known = sorted({row.sram_bytes for row in rows})
    if not known:
        low = min(case.min_sram_bytes for case in readable)
        return coarse_sizes(low, max(case.ideal_peak_bytes for case in readable), _FIRST_SIZES, aligned)
    bends = sharpest_bends((curve.sizes, curve.values(metric)) for curve in curves(rows) for metric in METRICS)
    return refining_sizes(known, bends, min(_A_ROUND, _MOST_SIZES - len(known)), aligned)
