"""Static placement: peaks of placement problems, and which of them fit their memory.

    python benchmarks/packing.py FOLDER [--sram 1MiB] [--seconds N] [--only AB] [-o benchmarks/results/packing.csv]

FOLDER holds problems as CSV (``id,lower,upper,size``), such as the eleven of google/minimalloc at a capacity of
1,048,576. Seconds are CPU seconds of one process, which a busy machine does not change. The figures are in
docs/packing.md.
"""

import argparse
import csv
import sys
import time
from contextlib import nullcontext
from pathlib import Path

from spillprof.frontends.minimalloc import read_minimalloc
from spillprof.ir.units import parse_size
from spillprof.planning.budget import Budget
from spillprof.planning.layout.search import LAYOUT_WORK, LayoutEffort, greedy_peaks, lay_out
from spillprof.verify.layout import layout_faults

COLUMNS = ("problem", "buffers", "load", "best_greedy", "colouring", "found", "fits", "cpu_s")
"""``load`` (the lower bound) to ``found`` are peaks as shares of the memory."""


def row(path: Path, sram_bytes: int, seconds: float | None) -> tuple[object, ...]:
    """Lays one problem out, checks the layout, and returns the values of ``COLUMNS``."""
    problem = read_minimalloc(path)
    greedy = greedy_peaks(problem)
    start = time.process_time()
    layout = lay_out(problem, sram_bytes, LayoutEffort(budget=Budget(LAYOUT_WORK, seconds=seconds)))
    cpu_s = time.process_time() - start
    assert layout_faults(problem, layout.offsets) == ()
    peaks = (layout.lower_bound_bytes, min(greedy.values()), greedy["colouring"], layout.peak_bytes)
    shares = [f"{peak_bytes / sram_bytes:.3f}" for peak_bytes in peaks]
    return path.stem, len(problem.buffers), *shares, int(layout.peak_bytes <= sram_bytes), f"{cpu_s:.1f}"


def main() -> None:
    """Write one CSV row a problem."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sram", default="1MB", type=parse_size)
    parser.add_argument("--seconds", type=float, help="in place of the counted work that is the default")
    parser.add_argument("--only", default="")
    parser.add_argument("-o", "--output", type=Path)
    args = parser.parse_args()
    paths = [p for p in sorted(args.folder.glob("*.csv")) if not args.only or p.stem in args.only]
    with args.output.open("w", encoding="utf-8", newline="") if args.output else nullcontext(sys.stdout) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for path in paths:
            writer.writerow(row(path, args.sram, args.seconds))
            file.flush()


if __name__ == "__main__":
    main()
