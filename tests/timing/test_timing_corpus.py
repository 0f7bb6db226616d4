"""Real models at shares of their peak: timelines respect lower bounds of time."""

import os

import pytest
from corpus_models import MODELS, graph_of, needs_models
from programs import run_on

from spillprof.analysis.results import breakdown
from spillprof.engine.engine import Engine
from spillprof.engine.run import Run
from spillprof.ir.errors import CapacityError
from spillprof.ir.program import Program
from spillprof.ir.target import Target, load_target
from spillprof.lowering.fitting import fit
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.options import Dma
from spillprof.verify import recount

FEW_OPERATORS = int(os.environ.get("SPILLPROF_FEW_OPERATORS", "130"))
MACHINES = {
    "plain": {},
    "shared": {
        "dram_bus_bytes_per_s": 40e9, "background_bytes_per_s": 10e9, "dma_read_channels": 2, "cores": 2,
    },
}  # fmt: skip


SMALL_MODELS = [file for file, row in MODELS.items() if int(row["nodes"]) <= FEW_OPERATORS]


def check(program: Program, target: Target, strategy: str) -> None:
    on_demand = Engine().play(program, run_on(target, dma=Dma.DEMAND), strategy).timeline
    played = Engine().play(program, run_on(target), strategy)
    plan, t = played.plan, played.timeline
    assert t.makespan_s <= on_demand.makespan_s
    traffic = recount(program, plan)
    read = traffic.compulsory_read_bytes + traffic.spill_read_bytes + traffic.streamed_read_bytes
    write = traffic.compulsory_write_bytes + traffic.spill_write_bytes + traffic.streamed_write_bytes
    bus = target.dram_bus_bytes_per_s or float("inf")
    bounds = (
        t.compute_s / target.cores,
        read / target.dram_read_bytes_per_s,
        write / target.dram_write_bytes_per_s,
        (read + write) / bus,
    )
    assert t.makespan_s >= max(bounds) * (1 - 1e-9)
    b = breakdown(program, plan, t)
    parts = (b.compute_s, b.compulsory_s, b.spill_s, b.sync_s, b.contention_s, b.fragmentation_s, b.tail_s)
    assert min(parts) >= 0
    assert sum(parts) == pytest.approx(t.makespan_s, rel=1e-6)
    e = t.energy
    assert e.dram_read_j + e.dram_write_j + e.sram_j + e.mac_j == pytest.approx(t.energy_j, rel=1e-9)


@needs_models
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("file", SMALL_MODELS or ["absent"])
def test_timeline_bounds_at_shares_of_the_peak(file: str, machine: str) -> None:
    target = load_target("generic-npu").with_overrides(**MACHINES[machine])
    engine, run = Engine(), Run(graph=graph_of(file), target=target)
    smallest, most = engine.sram_limits(run)
    sizes = {max(smallest, int(most * share) // 64 * 64) for share in (0.25, 0.5, 0.75)} | {
        smallest * 3 // 4 // 64 * 64
    }
    for sram_bytes in sorted(sizes):
        sized = target.with_overrides(sram_bytes=sram_bytes)
        try:
            fitted = fit(engine.lowered(run), sized, LoweringOptions())
        except CapacityError:
            continue  # too small even with every operand streamed
        for strategy in ("belady", "interval"):
            check(fitted, sized, strategy)
