"""How low static placement gets: peaks of placement problems, and which of them fit their memory.

    python benchmarks/packing.py FOLDER [--sram 1MB] [--seconds N] [--only AB]

FOLDER holds problems as CSV (``id,lower,upper,size``), such as the eleven of google/minimalloc at a capacity of
1,048,576. Seconds are CPU seconds of one process, so that they mean the same on a busy machine. The table is in
docs/packing.md.
"""

import argparse
import time
from pathlib import Path

from spillprof.frontends.minimalloc import read_minimalloc
from spillprof.ir.units import parse_size
from spillprof.planning.budget import Budget
from spillprof.planning.layout.search import LAYOUT_WORK, LayoutEffort, greedy_peaks, lay_out
from spillprof.verify.layout import layout_faults


def main() -> None:
    """Print a row a problem."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sram", default="1MB", type=parse_size)
    parser.add_argument("--seconds", type=float, help="in place of the counted work that is the default")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    paths = [p for p in sorted(args.folder.glob("*.csv")) if not args.only or p.stem in args.only]
    print("| problem | buffers | load | best greedy | colouring | found | fits | CPU s |")
    print("| --- | --: | --: | --: | --: | --: | --- | --: |")
    for path in paths:
        problem = read_minimalloc(path)
        greedy = greedy_peaks(problem)
        start = time.process_time()
        layout = lay_out(problem, args.sram, LayoutEffort(budget=Budget(LAYOUT_WORK, seconds=args.seconds)))
        seconds = time.process_time() - start
        assert layout_faults(problem, layout.offsets) == ()
        shares = [
            nbytes / args.sram
            for nbytes in (layout.lower_bound_bytes, min(greedy.values()), greedy["colouring"], layout.peak_bytes)
        ]
        fits = "yes" if layout.peak_bytes <= args.sram else "no"
        columns = " | ".join(f"{share:.3f}" for share in shares)
        print(f"| {path.stem} | {len(problem.buffers)} | {columns} | {fits} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
