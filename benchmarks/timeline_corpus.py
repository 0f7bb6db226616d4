"""Timelines of real models at shares of their peak, checked against lower bounds of time and energy.

    python benchmarks/timeline_corpus.py FOLDER [--most-operators 7000] [--strategies lru,interval] [-o ROWS.csv]

FOLDER holds ``models.csv`` (columns ``file``, ``nodes`` and ``dims``) and the folder ``models``. Each model is planned
at 25, 50 and 75 % of the memory that its ideal run uses, though never below the smallest in which every operator
fits, and once below that. Every run must keep to this:

- ``prefetch`` is never slower than ``demand``, spill time is never negative;
- latency is at least the compute time, bytes read / read bandwidth, bytes written / write bandwidth, all bytes / bus
  bandwidth;
- the parts of the breakdown add up to the latency, those of the energy to the energy, to 1e-6.

``-o`` takes one CSV row a run; docs/performance.md has the printed table. The exit code is 1 if a run breaks a rule.
"""

import argparse
import csv
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path

from spillprof.analysis.results import breakdown
from spillprof.engine.engine import Engine
from spillprof.engine.run import Run
from spillprof.frontends import read_model
from spillprof.ir.errors import CapacityError
from spillprof.ir.result import Breakdown
from spillprof.ir.target import Target, load_target
from spillprof.planning.options import Dma
from spillprof.verify import recount

SHARES = (0.25, 0.5, 0.75)
BELOW = 0.75  # of the smallest memory in which every operator fits
TOLERANCE = 1e-6
FIGURES = ("sram_bytes", "strategy", "ideal_s", "demand_s", "prefetch_s", "bound_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One strategy on one model in one memory."""

    file: str
    memory: str  # which of the memories
    sram_bytes: int
    strategy: str
    ideal_s: float
    demand_s: float
    prefetch_s: float
    bound_s: float  # computing, reading, writing: the longest
    breakdown: Breakdown
    energy_j: float
    energy_parts_j: float

    @property
    def broken(self) -> list[str]:
        """The rules that it breaks."""
        found = []
        if self.prefetch_s > self.demand_s:
            found.append("prefetch is slower than demand")
        if self.prefetch_s < self.bound_s * (1 - 1e-9):
            found.append("faster than its bound")
        if self.prefetch_s < self.ideal_s * (1 - 1e-9):
            found.append("negative spill time")
        parts = astuple(self.breakdown)
        if min(parts) < 0 or abs(sum(parts) - self.prefetch_s) > TOLERANCE * self.prefetch_s:
            found.append("the breakdown does not add up")
        if abs(self.energy_parts_j - self.energy_j) > TOLERANCE * self.energy_j:
            found.append("the energy does not add up")
        return found


def runs(
    folder: Path, file: str, dims: dict[str, int], target: Target, strategies: Sequence[str]
) -> Iterator[Measured]:
    """Every memory and strategy of one model."""
    graph = read_model(folder / "models" / file, dims=dims)
    engine, run = Engine(), Run(graph=graph, target=target)
    smallest, most = engine.sram_limits(run)
    memories = {f"{share:.0%} of the peak": max(smallest, int(most * share)) for share in SHARES}
    memories["below the smallest"] = int(smallest * BELOW)
    for memory, nbytes in memories.items():
        unit = target.alignment_bytes
        sized = run.at(max(nbytes // unit, 1) * unit)
        try:
            ideal_s = engine.ideal_s(sized)
        except CapacityError:
            continue  # too small even with every operand streamed
        played = [_measured(file, memory, engine, sized, strategy) for strategy in strategies]
        ideal_s = min([ideal_s, *(each.prefetch_s for each in played)])
        yield from (replace(each, ideal_s=ideal_s) for each in played)


def _measured(file: str, memory: str, engine: Engine, run: Run, strategy: str) -> Measured:
    fitted, target = engine.fitted(run), run.target
    on_demand = engine.play(fitted, run.planned(dma=Dma.DEMAND), strategy).timeline
    played = engine.play(fitted, run, strategy)
    plan, timeline = played.plan, played.timeline
    traffic = recount(fitted, plan)
    read = traffic.compulsory_read_bytes + traffic.spill_read_bytes + traffic.streamed_read_bytes
    write = traffic.compulsory_write_bytes + traffic.spill_write_bytes + traffic.streamed_write_bytes
    return Measured(
        file=file,
        memory=memory,
        sram_bytes=target.sram_bytes,
        strategy=strategy,
        ideal_s=engine.ideal_s(run),
        demand_s=on_demand.makespan_s,
        prefetch_s=timeline.makespan_s,
        bound_s=max(
            timeline.compute_s / target.cores,
            read / target.dram_read_bytes_per_s,
            write / target.dram_write_bytes_per_s,
            (read + write) / (target.dram_bus_bytes_per_s or float("inf")),
        ),
        breakdown=breakdown(fitted, plan, timeline),
        energy_j=timeline.energy_j,
        energy_parts_j=sum(astuple(timeline.energy)),
    )


def table(found: Sequence[Measured]) -> str:
    """A Markdown table: one row for each memory and strategy, medians and extremes over the models."""
    rows = [
        "| memory | strategy | runs | over the ideal | over the bound | prefetch saves of demand | most |",
        "| --- | --- | --: | --: | --: | --: | --: |",
    ]
    for key in dict.fromkeys((run.memory, run.strategy) for run in found):
        own = [run for run in found if (run.memory, run.strategy) == key]
        saved = sorted(1 - run.prefetch_s / run.demand_s if run.demand_s else 0.0 for run in own)
        cells = (
            *key, str(len(own)),
            f"{_median([run.prefetch_s / run.ideal_s - 1 for run in own if run.ideal_s]):.1%}",
            f"{_median([run.prefetch_s / run.bound_s - 1 for run in own if run.bound_s]):.1%}",
            f"{_median(saved):.1%}", f"{saved[-1]:.1%}",
        )  # fmt: skip
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _short(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value


def main() -> int:
    """Print each model as it is done, then the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="generic-npu")
    parser.add_argument("--strategies", default="lru,interval")
    parser.add_argument("--most-operators", type=int, default=7000)
    parser.add_argument("-o", dest="output", type=Path, help="CSV, a row a run")
    args = parser.parse_args()
    rows = list(csv.DictReader((args.folder / "models.csv").read_text("utf-8").splitlines()))
    found: list[Measured] = []
    broken = 0
    for row in sorted(rows, key=lambda row: int(row["nodes"])):
        if int(row["nodes"]) > args.most_operators:
            continue
        named = {re.sub(r"^\?(.*)\.(\d+)$", r"\1[\2]", k): n for k, n in json.loads(row["dims"] or "{}").items()}
        start = time.process_time()
        own = list(runs(args.folder, row["file"], named, load_target(args.target), args.strategies.split(",")))
        found += own
        print(f"{row['file']}: {len(own)} runs, {time.process_time() - start:.1f} CPU s", flush=True)
        for run in own:
            for what in run.broken:
                broken += 1
                print(f"  BROKEN {run.memory} ({run.sram_bytes:,} B), {run.strategy}: {what}", flush=True)
    text = table(found)
    print(f"{len({run.file for run in found})} models, {len(found)} runs, {broken} broken\n\n{text}")
    if args.output is not None:
        with args.output.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("model", "memory", *FIGURES))
            writer.writerows((run.file, run.memory, *(_short(getattr(run, name)) for name in FIGURES)) for run in found)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
