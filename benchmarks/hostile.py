"""What `spillprof analyze` does with each file of a folder of hostile models: exit code, time and memory.

    python benchmarks/hostile.py FOLDER [-o benchmarks/results/hostile.csv] [--only TEXT]

FOLDER holds the files and INDEX.csv with the columns ``file``, ``what`` and ``exit_code`` (what is right: 0, 2 or
``any`` of the two). Each file is analysed in a process of its own: 8 MiB of SRAM, other options at their defaults, the
report written. ``-o`` takes one CSV row a file; what is printed is the summary in
docs/hostile-input.md. The exit code is 1 if a file is answered wrongly or exceeds a limit.
"""

import argparse
import csv
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

MAX_SECONDS = 10
MAX_MIB = 1024
MIB = 1 << 20
COLUMNS = ("file", "what", "exit_code", "cpu_s", "wall_s", "peak_mib")


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


def write_rows(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Write one CSV row a file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for o in outcomes:
            figures = f"{o.cpu_s:.1f}", f"{o.wall_s:.1f}", f"{o.peak_bytes / MIB:.0f}"
            writer.writerow((o.file, o.what, o.exit_code, *figures))


def summary(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """A Markdown table: files, medians and extremes by exit code, and the files beyond a limit."""
    machine = f"{os.cpu_count()} {platform.machine()} cores, CPython {platform.python_version()}"
    yield f"{len(outcomes)} files, {sum(not o.is_right for o in outcomes)} answered wrongly; {machine}"
    yield ""
    yield "| outcome | files | median CPU s | most CPU s | median peak MiB | most peak MiB |"
    yield "| --- | --: | --: | --: | --: | --: |"
    for code in sorted({o.exit_code for o in outcomes}):
        cpu_s, mib = zip(*((o.cpu_s, o.peak_bytes / MIB) for o in outcomes if o.exit_code == code), strict=True)
        figures = f"{median(cpu_s):.1f} | {max(cpu_s):.1f} | {median(mib):.0f} | {max(mib):.0f}"
        yield f"| exit code {code} | {len(cpu_s)} | {figures} |"
    yield ""
    slow = [f"{o.what} ({o.cpu_s:.0f} s)" for o in outcomes if not o.is_within_limits]
    yield f"Over {MAX_SECONDS} CPU s or {MAX_MIB} MiB: {', '.join(slow) or 'none'}"


def main() -> int:
    """Analyse every file; 1 if one of them is answered wrongly or exceeds a limit."""
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
        write_rows(args.output, outcomes)
    print(*summary(outcomes), sep="\n")
    return 0 if all(o.is_right and o.is_within_limits for o in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
