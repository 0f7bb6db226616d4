"""Changes of the machine: more SRAM, bandwidth or channels, and separate workspaces."""

from collections.abc import Callable, Iterator
from typing import Any

from spillprof.explain.whatif.change import Change, Situation, rate_word
from spillprof.explain.whatif.trial import Trial
from spillprof.ir.target import Target
from spillprof.ir.units import LARGEST_SIZE, format_size, size_word
from spillprof.lowering.layout import align

_FINENESS = 32
"""Reciprocal of the grid of sizes, as a share of the present size."""
_LARGER = (1.0, 1.125, 1.25, 1.5)
"""Multiples of the ideal run's peak to try: fragmentation can take more than the peak."""
_KNEE_SHARES = (0.25, 0.5, 0.75)
"""Sizes to try for a knee, as shares of the way to the size at which nothing spills."""

PROBES = 12
"""Most plans made to find the sizes."""


def larger_sram(now: Situation) -> Iterator[Change]:
    """The smallest size found at which nothing spills, and a knee below it if each added byte saves more there.

    If nothing spills already: the smallest size at which nothing moves inside SRAM.
    """
    probe = _Probe(now.trial, moves=not now.spill_bytes)
    enough = smallest_sram(now.trial, probe.is_enough, lambda: probe.left > len(_KNEE_SHARES))
    if enough is None:
        yield from twice_the_sram(now)
        return
    yield with_sram(now.trial, enough)
    knee = _knee(now, enough, probe)
    if knee is not None:
        yield with_sram(now.trial, knee)


def twice_the_sram(now: Situation) -> Iterator[Change]:
    """Double the size: one run, for long programs."""
    yield with_sram(now.trial, min(2 * now.trial.run.target.sram_bytes, LARGEST_SIZE))


def _grid(target: Target) -> int:
    """Granularity of the sizes to try, in bytes: a power of two, aligned."""
    return align(1 << max(0, (target.sram_bytes // _FINENESS).bit_length() - 1), target.alignment_bytes)


class _Probe:
    """Lost bytes of a run by SRAM size, planning at most ``PROBES`` sizes once each.

    Lost are spill bytes and, with ``moves``, bytes moved inside SRAM.
    """

    def __init__(self, trial: Trial, *, moves: bool = False) -> None:
        self._trial, self._known, self._moves = trial, dict[int, int | None](), moves
        self.trials: dict[int, Trial] = {}  # by size

    @property
    def left(self) -> int:
        """How many more sizes may be planned."""
        return PROBES - len(self.trials)

    def is_affordable(self, sram_bytes: int) -> bool:
        """Whether the size was planned or may still be."""
        if sram_bytes not in self.trials and self.left:
            self.trials[sram_bytes] = self._trial.at(sram_bytes)
        return sram_bytes in self.trials

    def lost_bytes(self, sram_bytes: int) -> int | None:
        """Lost bytes at a size; None if no plan is possible there, or the size is not affordable."""
        if sram_bytes not in self._known and self.is_affordable(sram_bytes):
            found = self.trials[sram_bytes].traffic()
            moved = found.moved_bytes if found is not None and self._moves else 0
            self._known[sram_bytes] = None if found is None else found.spill_bytes + moved
        return self._known.get(sram_bytes)

    def is_enough(self, sram_bytes: int) -> bool:
        """Whether nothing is lost at a size. No plan is made if the lower bound is above zero."""
        if not self.is_affordable(sram_bytes) or self.trials[sram_bytes].has_to_spill():
            return False
        return self.lost_bytes(sram_bytes) == 0


def smallest_sram(trial: Trial, is_enough: Callable[[int], bool], may_go_on: Callable[[], bool]) -> int | None:
    """The smallest size found, by bisection, that is enough; None if none is found.

    Bisection assumes that a larger memory is enough too; otherwise the size found may not be the smallest.
    """
    _, ideal_bytes = trial.engine.sram_limits(trial.run)
    unit = _grid(trial.run.target)
    low = trial.run.target.sram_bytes // unit  # not enough
    sizes = (-(-int(ideal_bytes * larger) // unit) for larger in _LARGER)
    high = next((n for n in sizes if low < n <= LARGEST_SIZE // unit and is_enough(n * unit)), None)
    if high is None:
        return None
    while high - low > 1 and may_go_on():
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle * unit) else (middle, high)
    return high * unit


def _knee(now: Situation, enough: int, probe: _Probe) -> int | None:
    """The size below ``enough`` at which each added byte saves most, if more than at ``enough``."""
    present = now.trial.run.target.sram_bytes
    unit = _grid(now.trial.run.target)
    lost = now.spill_bytes or now.moved_bytes
    best, most = None, lost / (enough - present)
    for share in _KNEE_SHARES:
        size = int(present + share * (enough - present)) // unit * unit
        left = probe.lost_bytes(size) if present < size < enough else None
        if left is not None and (lost - left) / (size - present) > most:
            best, most = size, (lost - left) / (size - present)
    return best


def with_sram(trial: Trial, sram_bytes: int) -> Change:
    """The trial with a larger SRAM."""
    return Change(
        kind="sram",
        argument=f"--sram {size_word(sram_bytes)}",
        costs=f"hardware: {format_size(sram_bytes - trial.run.target.sram_bytes)} more SRAM",
        trial=trial.at(sram_bytes),
    )


def twice_the_bandwidth(now: Situation) -> Iterator[Change]:
    """Twice the bandwidth of both directions and the bus; none if transfer times are measured curves."""
    target = now.trial.run.target
    if target.dram_read_curve or target.dram_write_curve:
        return
    rates = {"dram_read": target.dram_read_bytes_per_s, "dram_write": target.dram_write_bytes_per_s}
    if target.dram_bus_bytes_per_s is not None:
        rates["dram_bus"] = target.dram_bus_bytes_per_s
    words = {name: rate_word(2 * rate) for name, rate in rates.items()}
    if all(words.values()):
        yield _on(
            now,
            "bandwidth",
            " ".join(f"--set {name.replace('_', '-')}={word}" for name, word in words.items()),
            "hardware: twice the DRAM bandwidth",
            **{f"{name}_bytes_per_s": 2 * rate for name, rate in rates.items()},
        )


def more_channels(now: Situation) -> Iterator[Change]:
    """One more DMA channel in each direction, or one more shared channel."""
    target = now.trial.run.target
    if target.dma_shared_channels:
        more = target.dma_shared_channels + 1
        argument = f"--set dma-shared-channels={more}"
        yield _on(now, "channels", argument, "hardware: one more DMA channel", dma_shared_channels=more)
        return
    read, write = target.dma_read_channels + 1, target.dma_write_channels + 1
    argument = f"--set dma-read-channels={read} --set dma-write-channels={write}"
    costs = "hardware: one more DMA channel in each direction"
    yield _on(now, "channels", argument, costs, dma_read_channels=read, dma_write_channels=write)


def own_workspaces(now: Situation) -> Iterator[Change]:
    """Workspaces allocated only while their operator runs, instead of one reserved block for the largest."""
    if now.trial.run.target.shared_workspace and any(step.workspaces for step in now.program.steps):
        argument = "--set shared-workspace=false"
        costs = "a runtime that allocates workspaces one by one"
        yield _on(now, "workspace", argument, costs, shared_workspace=False)


def _on(now: Situation, kind: str, argument: str, costs: str, **fields: Any) -> Change:
    return Change(kind=kind, argument=argument, costs=costs, trial=now.trial.on(**fields))
