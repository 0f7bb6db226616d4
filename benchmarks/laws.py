"""Real models over the memory: what never gets worse with more of it, and how far the best plans are from the bounds.

    python benchmarks/laws.py CORPUS [-o benchmarks/results/laws.csv] [--models NAME,NAME]
    python benchmarks/laws.py --summary benchmarks/results/laws.csv

CORPUS is a folder with ``models.csv`` (columns ``file`` and ``dims``) and ``models/``. Each model is swept once, over
12 to 90 % of its peak of live bytes and six sizes from 64 KiB to 64 MiB. Every plan is verified. A row is one size of
one model: the ideal, the best latency and the fewest bytes of all strategies, and the bounds. Models that the file has
already are left out, so that a run can be continued. ``--summary`` lists what breaks a law and prints the tables.
"""

import argparse
import csv
import json
import re
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from pathlib import Path
from statistics import median, quantiles

from spillprof.engine.engine import PICOSECONDS_PER_S, picoseconds
from spillprof.engine.run import PlayedPlan, Run
from spillprof.frontends import read_model
from spillprof.ir.errors import SpillprofError
from spillprof.ir.modes import StepNest
from spillprof.ir.target import load_target
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.bounds.methods import lower_cost
from spillprof.planning.liveness import live_bytes_by_step
from spillprof.planning.options import PlanningOptions
from spillprof.planning.strategies import CHEAP_STRATEGIES, OPTIMAL
from spillprof.planning.tiling.floors import io_floor
from spillprof.planning.traffic import count_traffic
from spillprof.studies.sweep.cases import SweepModel, make_study
from spillprof.studies.sweep.grid import Grid
from spillprof.studies.sweep.local import InProcess
from spillprof.studies.sweep.work import Study

SHARES = (0.12, 0.25, 0.5, 0.75, 0.9)
SIZES = tuple(1 << exponent for exponent in (16, 18, 20, 22, 24, 26))
HEADS = (
    "model", "steps", "sram_bytes", "share_of_peak", "status", "ideal_s", "latency_s", "fastest", "spill_bytes",
    "leanest", "bound_bytes", "bound_s", "compulsory_bytes", "dram_bytes", "steps_below_floor", "tiled_steps", "cpu_s",
)  # fmt: skip
_SLACK = 1 + 1e-9
Row = dict[str, str]


def rows_of(model: str, study: Study, grid: Grid, shares: dict[int, float], pairs: Sequence[str]) -> Iterator[Row]:
    """One row a size, smallest first; later sizes know what the smaller ones found."""
    run, engine = study.runs[0], study.engine
    steps = len(engine.lowered(run).steps)
    for sram_bytes, share in sorted(shares.items()):
        start = time.process_time()
        grid.at([sram_bytes], InProcess(study), lambda done, total: None)
        cpu_s = time.process_time() - start
        found = [row for row in grid.rows() if row.sram_bytes == sram_bytes]
        good = [row for row in found if row.ok]
        shown: Row = {"model": model, "steps": str(steps), "sram_bytes": str(sram_bytes), "cpu_s": f"{cpu_s:.2f}"}
        shown["share_of_peak"] = f"{share:g}" if share else ""
        shown["status"] = next((row.status for row in found if not row.ok), "ok")
        if good:
            fastest = min(good, key=lambda row: row.latency_s or 0.0)
            leanest = min(good, key=lambda row: (row.spill_bytes or 0, row.latency_s or 0.0))
            here = run.at(sram_bytes)
            fitted = engine.fitted(here)
            bound = engine.bound(fitted, here, searched=OPTIMAL in pairs)
            played = engine.play(fitted, here, leanest.strategy)
            traffic = count_traffic(played.program, played.plan)
            compulsory = traffic.compulsory_read_bytes + traffic.compulsory_write_bytes
            seconds = lower_cost(fitted, here.planning, picoseconds(here.target), bound) / PICOSECONDS_PER_S
            shown |= {
                "ideal_s": repr(fastest.ideal_latency_s), "latency_s": repr(fastest.latency_s),
                "fastest": fastest.strategy, "spill_bytes": str(leanest.spill_bytes), "leanest": leanest.strategy,
                "bound_bytes": str(max(row.spill_bytes_lower or 0 for row in good)), "bound_s": repr(seconds),
                "compulsory_bytes": str(compulsory), "dram_bytes": str(compulsory + traffic.spill_bytes),
                "steps_below_floor": str(sum(steps_below_floor(played, sram_bytes))),
                "tiled_steps": str(len(played.plan.modes)),
            }  # fmt: skip
        yield {head: shown.get(head, "") for head in HEADS}


def steps_below_floor(played: PlayedPlan, sram_bytes: int) -> Iterator[bool]:
    """Of each step with known loops: whether it moves less than its floor, what it holds counted once."""
    buffers = played.program.buffers
    for step in played.program.steps:
        two = step.mode is not None and step.mode.in_two_passes
        own = step.nest.in_two_passes if two and step.nest else step.nest
        if own is None:
            continue
        operands = (*step.reads, *step.writes)
        streamed = {each.buffer for each in step.mode.traffic} if step.mode else set()
        held = {operands[at] for at in own.places if at is not None} - streamed
        weights = sum(o.nbytes for o, at in zip(own.nest.operands, own.places, strict=True) if at is None)
        names = tuple(f"own {p}" if at is None else f"{operands[at]}" for p, at in enumerate(own.places))
        moved = (step.mode.moved_bytes if step.mode else 0) + sum(buffers[b].moved_bytes for b in held) + weights
        yield moved < _floor(own, sram_bytes, names)


@lru_cache(maxsize=65536)
def _floor(own: StepNest, sram_bytes: int, names: tuple[str, ...]) -> int:
    return io_floor(own.nest, sram_bytes, accumulator_bits=own.accumulator_bits, storages=names).nbytes


def study_of(path: Path, dims: dict[str, int]) -> tuple[Study, Grid, dict[int, float]]:
    """The study of one model, its grid, and its sizes with the share of the peak that they are, or 0."""
    target, lowering, planning = load_target("generic-npu"), LoweringOptions(), PlanningOptions()
    graph = read_model(path, dims=dims)
    model = SweepModel(model=path.stem, graph=graph, dims={})
    study, cases = make_study([model], target, [{}], lowering, planning)
    program = study.engine.lowered(Run(graph=graph, target=target, lowering=lowering, planning=planning))
    peak = int(live_bytes_by_step(program, stored=True).max(initial=0))
    shares = dict.fromkeys(SIZES, 0.0) | {max(1, int(peak * share)): share for share in SHARES}
    return study, Grid(cases, [("best-fit", s) for s in (*CHEAP_STRATEGIES, OPTIMAL)], {}), shares


def bindings(dims: str) -> dict[str, int]:
    """Dimensions to bind. The index writes ``?NAME.AXIS`` for ``NAME[AXIS]``."""
    return {re.sub(r"^\?(.+)\.(\d+)$", r"\1[\2]", key): size for key, size in json.loads(dims or "{}").items()}


# --- the summary


def broken(rows: Sequence[Row]) -> Iterator[str]:
    """Laws that a model's rows break, in words."""
    name, good = rows[0]["model"], [row for row in rows if row["ideal_s"]]
    ideals = [float(row["ideal_s"]) for row in good]
    if ideals and max(ideals) > min(ideals) * _SLACK:
        yield f"{name}: the ideal is {min(ideals):.6g} to {max(ideals):.6g} s"
    for row in good:
        at = f"{name} at {int(row['sram_bytes']):,} B"
        if float(row["latency_s"]) * _SLACK < float(row["ideal_s"]):
            yield f"{at}: {row['fastest']} is faster than the ideal, {row['latency_s']} of {row['ideal_s']} s"
        if int(row["bound_bytes"]) > int(row["spill_bytes"]):
            yield f"{at}: the bound {row['bound_bytes']} is above {row['spill_bytes']}"
        if int(row["steps_below_floor"]):
            yield f"{at}: {row['steps_below_floor']} steps below their floors"
    for head in ("latency_s", "spill_bytes", "bound_bytes", "bound_s"):
        for less, more in pairwise(good):
            if float(more[head]) > float(less[head]) * _SLACK:
                yield (
                    f"{name}: {head} rises from {less[head]} to {more[head]} "
                    f"between {int(less['sram_bytes']):,} and {int(more['sram_bytes']):,} B"
                )


def summary(rows: Sequence[Row]) -> None:
    """Print what breaks a law, and the tables."""
    by_model = [list(own) for _, own in groupby(rows, key=lambda row: row["model"])]
    found = [line for own in by_model for line in broken(sorted(own, key=lambda row: int(row["sram_bytes"])))]
    good = [row for row in rows if row["ideal_s"]]
    print(f"{len(by_model)} models, {len(good)} of {len(rows)} points planned, {len(found)} times a law is broken")
    print("\n".join(found))
    gaps = [(int(row["spill_bytes"]) / int(row["bound_bytes"]), row) for row in good if int(row["bound_bytes"])]
    unbounded = [row for row in good if int(row["spill_bytes"]) and not int(row["bound_bytes"])]
    lates = [(float(row["latency_s"]) / float(row["ideal_s"]), row) for row in good if float(row["ideal_s"])]
    print(f"\n{'':44} {'points':>7} {'median':>7} {'p90':>7} {'max':>7}  at")
    for title, ratios in (("fewest bytes over their bound", gaps), ("best latency over the ideal", lates)):
        for where, own in _cells(ratios):
            values = [value for value, _ in own]
            worst, row = max(own, key=lambda each: each[0])
            p90 = quantiles(values, n=10, method="inclusive")[-1] if len(values) > 1 else values[0]
            place = f"{row['model']}, {int(row['sram_bytes']):,} B"
            print(f"{title + where:44} {len(own):7} {median(values):7.3f} {p90:7.3f} {worst:7.3f}  {place}")
    print(f"\nspilled beyond a bound of 0: {len(unbounded)} points")
    for row in sorted(good, key=lambda row: -float(row["cpu_s"]))[:8]:
        print(f"{row['cpu_s']:>8} CPU s  {row['model']} ({row['steps']} steps) at {int(row['sram_bytes']):,} B")


def _cells(ratios: list[tuple[float, Row]]) -> Iterator[tuple[str, list[tuple[float, Row]]]]:
    if ratios:
        yield "", ratios
    for share in SHARES:
        own = [each for each in ratios if each[1]["share_of_peak"] == f"{share:g}"]
        if own:
            yield f", {share:.0%} of peak", own


def main() -> None:
    """Write the rows, or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, nargs="?")
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/laws.csv"))
    parser.add_argument("--models", default="", help="parts of file names, by commas")
    parser.add_argument("--summary", type=Path)
    args = parser.parse_args()
    if args.summary:
        summary(list(csv.DictReader(args.summary.read_text(encoding="utf-8").splitlines())))
        return
    index = csv.DictReader((args.corpus / "models.csv").read_text(encoding="utf-8").splitlines())
    wanted = [part for part in args.models.split(",") if part] or [""]
    models = [row for row in index if any(part in row["file"] for part in wanted)]
    old = args.output.read_text(encoding="utf-8").splitlines() if args.output.is_file() else []
    known = {row["model"] for row in csv.DictReader(old)}
    with args.output.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, HEADS, lineterminator="\n")
        if not old:
            writer.writeheader()
        for row in models:
            name = Path(row["file"]).stem
            if name in known:
                continue
            start = time.process_time()
            try:
                study, grid, shares = study_of(args.corpus / "models" / row["file"], bindings(row["dims"]))
                found = list(rows_of(name, study, grid, shares, (*CHEAP_STRATEGIES, OPTIMAL)))
            except SpillprofError as error:
                print(f"{name}: {error.message}", flush=True)
                continue
            writer.writerows(found)
            file.flush()
            print(f"{name}: {time.process_time() - start:.1f} CPU s", flush=True)


if __name__ == "__main__":
    main()
