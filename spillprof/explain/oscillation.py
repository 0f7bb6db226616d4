"""Buffers that go and come back again and again, and what a slot of their own would change."""

from collections.abc import Sequence

from spillprof.analysis.attribution import Charge
from spillprof.engine.engine import Engine
from spillprof.engine.run import Run
from spillprof.ir.errors import CapacityError
from spillprof.ir.result import Oscillation
from spillprof.ir.timeline import Timeline
from spillprof.lowering.transforms import with_slots
from spillprof.planning.strategies import OPTIMAL
from spillprof.planning.traffic import count_traffic

OSCILLATES_FROM = 3
"""A buffer that is spilled and reloaded so often oscillates."""

_SLOT_TRIALS = ((700, 3), (20_000, 1))
"""(most steps, oscillating buffers a strategy that are re-simulated with a dedicated slot): each is a whole run."""


def oscillations(engine: Engine, run: Run, strategy: str, charged: Sequence[Charge]) -> tuple[Oscillation, ...]:
    """Buffers that go and come back again and again, dearest first; the dearest are tried in a dedicated slot."""
    program = engine.program(run)
    count: dict[int, int] = {}
    moved: dict[int, int] = {}
    for c in charged:
        if c.evicted and c.spill.reloaded:
            count[c.spill.buffer] = count.get(c.spill.buffer, 0) + 1
            moved[c.spill.buffer] = moved.get(c.spill.buffer, 0) + c.total_bytes
    found = sorted((b for b, n in count.items() if n >= OSCILLATES_FROM), key=lambda b: (-moved[b], b))
    trials = next((n for most, n in _SLOT_TRIALS if len(program.steps) <= most), 0)
    if strategy == OPTIMAL:  # a search each
        trials = 0
    listed = []
    for rank, b in enumerate(found):
        pinned = _pinned(engine, run, strategy, b) if rank < trials else None
        listed.append(
            Oscillation(
                buffer=program.buffers[b].name,
                size_bytes=program.buffers[b].size_bytes,
                spill_count=count[b],
                spill_bytes=moved[b],
                pinned_spill_bytes=None if pinned is None else pinned[0],
                pinned_latency_s=None if pinned is None else pinned[1].makespan_s,
                pinned_energy_j=None if pinned is None else pinned[1].energy_j,
                tried=rank < trials,
            )
        )
    return tuple(listed)


def _pinned(engine: Engine, run: Run, strategy: str, buffer: int) -> tuple[int, Timeline] | None:
    """(spill bytes, timeline) of the whole run with the buffer in a dedicated slot; None if it cannot be done."""
    try:
        played = engine.play(engine.fit(with_slots(engine.program(run), [buffer]), run), run, strategy)
    except CapacityError:
        return None
    return count_traffic(played.program, played.plan).spill_bytes, played.timeline
