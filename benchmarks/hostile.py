"""What `spillprof analyze` does with each file of a folder of hostile models: exit code, time and memory.

    python benchmarks/hostile.py FOLDER [-o docs/hostile-input.md] [--only TEXT]

FOLDER holds the files and INDEX.csv with the columns ``file``, ``what`` and ``exit_code`` (what is right: 0, 2 or
``any`` of the two). Each file is analysed in a process of its own, as a user would: 8 MiB of SRAM, all else left at
its default, the report written. The exit code is 1 if a file is answered wrongly or passes a limit.
"""

import argparse
import csv
import os
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MAX_SECONDS = 10
MAX_MIB = 1024
MIB = 1 << 20
SIDE_FILES = "## Side files"
"""Head of the section that side_files.py writes behind the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One file and how it went."""

    file: str
    what: str
    wanted: str
    exit_code: int
    wall_s: float
    cpu_s: float
    peak_bytes: int
    said: str  # the first line of stderr

    @property
    def is_right(self) -> bool:
        """Whether it was answered as it should be, and a refusal begins with ``error:``."""
        fits = self.exit_code in (0, 2) if self.wanted == "any" else str(self.exit_code) == self.wanted
        return fits and (self.exit_code == 0 or self.said.startswith("error: "))

    @property
    def is_within_limits(self) -> bool:
        """Whether time (of the processor: the machine may be busy) and memory stayed within the limits."""
        return self.cpu_s <= MAX_SECONDS and self.peak_bytes <= MAX_MIB * MIB


def measure(command: Sequence[str], folder: Path) -> tuple[int, float, float, int, str]:
    """(exit code, wall seconds, CPU seconds, peak resident bytes, first line of stderr) of a child process."""
    errors = folder / "stderr.txt"
    start = time.perf_counter()
    child = os.posix_spawn(
        command[0],
        command,
        {**os.environ, "NO_COLOR": "1"},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, str(errors), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        ],
    )
    _, status, usage = os.wait4(child, 0)
    wall_s = time.perf_counter() - start
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    lines = errors.read_text("utf-8", "replace").splitlines()
    code = os.waitstatus_to_exitcode(status)
    return code, wall_s, usage.ru_utime + usage.ru_stime, peak, lines[0] if lines else ""


def analysed(folder: Path, row: dict[str, str], scratch: Path) -> Outcome:
    """The outcome of one file."""
    command = [sys.executable, "-m", "spillprof", "analyze", str(folder / row["file"]), "--sram", "8MiB"]
    code, wall_s, cpu_s, peak, said = measure([*command, "-o", str(scratch / "report.html")], scratch)
    return Outcome(
        file=row["file"], what=row["what"], wanted=row["exit_code"], exit_code=code, wall_s=wall_s, cpu_s=cpu_s,
        peak_bytes=peak, said=said,
    )  # fmt: skip


def page(outcomes: Sequence[Outcome]) -> str:
    """The table as Markdown, with what it says in a sentence."""
    refused = [o for o in outcomes if o.exit_code == 2]
    slow = [o for o in outcomes if not o.is_within_limits]
    lines = [
        "# Hostile input",
        "",
        "What `spillprof analyze FILE --sram 8MiB` does with files that are damaged, contradictory, oversized or made",
        "to attack: exit code 0 (analysed) or 2 (refused with one `error:` line), never a traceback. Written by",
        "`python benchmarks/hostile.py FOLDER -o docs/hostile-input.md`. Each file has a process of its own; start of",
        "the interpreter and the HTML report are included; memory is the peak that was resident. Measured on",
        f"{os.cpu_count()} {platform.machine()} cores, CPython {platform.python_version()}.",
        "",
        f"{len(outcomes)} files: {sum(o.exit_code == 0 for o in outcomes)} analysed, {len(refused)} refused, "
        f"{sum(not o.is_right for o in outcomes)} answered wrongly. A refusal takes at most "
        f"{max((o.cpu_s for o in refused), default=0):.1f} s and "
        f"{max((o.peak_bytes for o in refused), default=0) / MIB:.0f} MiB.",
        "",
        f"What is refused must be refused within {MAX_SECONDS} s of the processor and {MAX_MIB} MiB. Sound models are",
        "analysed however large they are; over these limits: "
        + (", ".join(f"{o.what} ({o.cpu_s:.0f} s)" for o in slow) if slow else "none")
        + ".",
        "",
        "Beside this list, `python benchmarks/fuzz.py` damages files of every kind that the tool reads, and",
        "`python benchmarks/fuzz_nodes.py` reads models of one random node each, of every operator, in processes that",
        "may die: onnx's inference is native code, and some nodes lead it outside of its memory, or into a loop that",
        "never ends. Those are refused before it is asked (`frontends/onnx/misread.py`, `sense.py`).",
        "",
        "External data is opened only where a size stays open without it, and then for small tensors alone",
        "(integers of up to 4,096 elements, anything else of up to 1 KiB): from a regular file in the model's",
        "folder or below it, by no absolute path, no `..` and no link that leads out of it, and only if offset and",
        "length fit the file. What could not be read is named with the size that stays open. A model on stdin has",
        "no folder. Weights are never opened. What was read is part of the fingerprint that sweeps, gates and",
        "comparisons know a model by.",
        "",
        "| file | what it is | exit code | CPU seconds | seconds | peak MiB |",
        "| --- | --- | --: | --: | --: | --: |",
    ]
    for o in outcomes:
        what = o.what.replace("|", "\\|").replace("<", "&lt;")
        lines.append(
            f"| {o.file} | {what} | {o.exit_code} | {o.cpu_s:.1f} | {o.wall_s:.1f} | {o.peak_bytes / MIB:.0f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    """Analyse every file; 1 if one of them is answered wrongly or passes a limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--only", default="", metavar="TEXT", help="only files whose name contains it")
    args = parser.parse_args()
    rows = [r for r in csv.DictReader((args.folder / "INDEX.csv").open(encoding="utf-8")) if args.only in r["file"]]
    outcomes = []
    with tempfile.TemporaryDirectory() as scratch:
        for row in rows:
            outcome = analysed(args.folder, row, Path(scratch))
            outcomes.append(outcome)
            if not (outcome.is_right and outcome.is_within_limits):
                print(
                    f"{outcome.file}: exit code {outcome.exit_code} (right: {outcome.wanted}), "
                    f"{outcome.cpu_s:.1f} s of the processor, {outcome.wall_s:.1f} s, "
                    f"{outcome.peak_bytes / MIB:.0f} MiB; {outcome.said}"
                )
    if args.output is not None:
        before = args.output.read_text("utf-8") if args.output.exists() else ""
        _, heading, below = before.partition("\n## ")  # sections below the table are not of this run
        args.output.write_text(page(outcomes) + heading + below, "utf-8")
    print(f"{len(outcomes)} files, {sum(not o.is_right for o in outcomes)} answered wrongly")
    return 0 if all(o.is_right and o.is_within_limits for o in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
