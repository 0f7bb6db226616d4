"""Files beside the model, damaged and made to attack; results over inputs; baselines that git cannot read.

    python benchmarks/side_files.py [--cases 2500] [--seed 0] [-o benchmarks/results/side_files.csv]

Each case is one command. It must end with a right exit code, and one line ``error: ...`` if it is refused, within 10
CPU seconds and 1 GiB. Damaged files are read in processes of a few hundred cases, whose memory is measured; a pipe or
the like in place of a file is read in a process of its own. The exit code is 1 if a case is answered wrongly. ``-o``
takes one CSV row a kind of case; what is printed is the summary in docs/hostile-input.md.
"""

import argparse
import contextlib
import csv
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from pathlib import Path
from random import Random

from fuzz import Case, broken_rule, late
from fuzzing.files import Sound, sound_files
from fuzzing.refusals import baselines_of_git, results_over_inputs
from fuzzing.special_files import special_files
from fuzzing.texts import attacked
from hostile import MAX_MIB, MAX_SECONDS, MIB, measure

BATCH = 250
BATCH_PROCESS = "process of a batch"
_MOST_ADDRESS_BYTES = 6 << 30  # so that a case that goes wrong does not take the machine with it
_JUDGED = ("baseline", "config")  # kinds for which a gate that fails is an answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One case and how it went."""

    kind: str
    what: str
    problem: str | None
    cpu_s: float = 0.0
    peak_bytes: int = 0  # of the process, where it has one of its own


def damaged_cases(rng: Random, folder: Path) -> Iterator[tuple[str, Case]]:
    """(what was done, case): endless, every kind of file in turn."""
    for sound in cycle(list(sound_files(folder))):
        what, content, is_refused = attacked(rng, sound.content, sound.path.suffix)
        if not is_refused and sound.damage is not None and rng.random() < 0.3:
            what, content = "values", sound.damage(rng, sound.content)
        codes = {2} if is_refused else {0, 1, 2} if sound.kind in _JUDGED else {0, 2}
        yield (
            what,
            Case(kind=sound.kind, arguments=sound.arguments, content=content, path=sound.path, codes=frozenset(codes)),
        )
        sound.path.write_bytes(sound.content)  # others may read it


def batch(seed: int, count: int) -> Iterator[Tried]:
    """Damaged files, read in this process."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_ADDRESS_BYTES, _MOST_ADDRESS_BYTES))
    signal.signal(signal.SIGPROF, late)
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        for number, (what, case) in enumerate(islice(damaged_cases(Random(seed), Path(name)), count)):
            start = time.process_time()
            problem = broken_rule(case)
            if problem is not None:
                problem = f"seed {seed} case {number}: {' '.join(case.arguments)}: {problem}"
            yield Tried(kind=case.kind, what=what, problem=problem, cpu_s=time.process_time() - start)


def batches(seed: int, count: int) -> Iterator[Tried]:
    """The same in processes of a few hundred cases each; the memory of each is told of its last case."""
    for first in range(0, count, BATCH):
        command = [sys.executable, __file__, "--batch", str(seed * 1000 + first // BATCH), "--cases",
                   str(min(BATCH, count - first))]  # fmt: skip
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "NO_COLOR": "1"})
        assert child.stdout is not None
        found = [Tried(**json.loads(line)) for line in child.stdout]
        _, status, usage = os.wait4(child.pid, 0)
        peak_bytes = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        child.returncode = os.waitstatus_to_exitcode(status)
        yield from found
        problem = None if child.returncode == 0 else f"{' '.join(command)}: ended with {child.returncode}"
        if problem or peak_bytes > MAX_MIB * MIB:
            problem = problem or f"{' '.join(command)}: {peak_bytes / MIB:.0f} MiB"
        yield Tried(kind=BATCH_PROCESS, what="memory", problem=problem, peak_bytes=peak_bytes)


def special_cases() -> Iterator[Tried]:
    """A pipe, a device and the like in place of each file, in a process of its own."""
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        folder = Path(name)
        seen: set[str] = set()
        for sound in list(sound_files(folder)):
            if sound.kind not in seen:
                seen.add(sound.kind)
                for what, arguments, is_refused in special_files(sound, folder / "special"):
                    yield _special(sound, what, arguments, is_refused=is_refused, scratch=folder)


def _special(sound: Sound, what: str, arguments: Sequence[str], *, is_refused: bool, scratch: Path) -> Tried:
    command = ["timeout", "60", sys.executable, "-m", "spillprof", *arguments]
    code, wall_s, cpu_s, peak_bytes, said = measure(["/usr/bin/env", *command], scratch)
    problem = None
    if code not in ((2,) if is_refused else (0, 1, 2)) or (code == 2 and not said.startswith("error: ")):
        problem = f"exit code {code} after {wall_s:.0f} s: {said}"
    elif cpu_s > MAX_SECONDS or peak_bytes > MAX_MIB * MIB:
        problem = f"{cpu_s:.1f} s, {peak_bytes / MIB:.0f} MiB"
    if problem is not None:
        problem = f"{what} in place of {sound.kind}: {' '.join(command)}: {problem}"
    return Tried(kind=what, what=sound.kind, problem=problem, cpu_s=cpu_s, peak_bytes=peak_bytes)


def refusals() -> Iterator[Tried]:
    """Results over inputs, and baselines that git cannot read."""
    with tempfile.TemporaryDirectory() as name:
        for tries in (results_over_inputs(Path(name) / "results"), baselines_of_git(Path(name) / "git")):
            for number, (kind, is_right) in enumerate(tries):
                yield Tried(kind=kind, what="", problem=None if is_right() else f"{kind}, number {number}")


def write_rows(path: Path, groups: dict[str, Sequence[Tried]]) -> None:
    """Write one CSV row a kind of case: how many were tried, and how many answered rightly."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("group", "kind", "tried", "right"))
        for group, tried in groups.items():
            for kind in dict.fromkeys(t.kind for t in tried if t.kind != BATCH_PROCESS):
                own = [t for t in tried if t.kind == kind]
                writer.writerow((group, kind, len(own), sum(t.problem is None for t in own)))


def summary(groups: dict[str, Sequence[Tried]]) -> Iterator[str]:
    """A Markdown table: a row for each group of cases."""
    yield "| group | kinds | tried | answered wrongly | most CPU s | most peak MiB of a process |"
    yield "| --- | --: | --: | --: | --: | --: |"
    for group, tried in groups.items():
        own = [t for t in tried if t.kind != BATCH_PROCESS]
        counts = f"{len({t.kind for t in own})} | {len(own):,} | {sum(t.problem is not None for t in tried)}"
        peak_bytes = max(t.peak_bytes for t in tried)
        yield f"| {group} | {counts} | {max(t.cpu_s for t in own):.1f} | {peak_bytes / MIB:.0f} |"


def _told(tried: Iterable[Tried]) -> list[Tried]:
    found = []
    for each in tried:
        found.append(each)
        if each.problem is not None:
            print(each.problem, flush=True)
    return found


def main() -> int:
    """Run every case; 1 if one of them was answered wrongly."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=2500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--batch", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    os.environ["NO_COLOR"] = "1"
    if args.batch is not None:
        with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
            for tried in batch(args.batch, args.cases):
                print(json.dumps(asdict(tried)), file=out, flush=True)
        return 0
    refused, special = _told(refusals()), _told(special_cases())
    damaged = _told(batches(args.seed, args.cases))
    groups = {"damaged": damaged, "in place": special, "refused": refused}
    if args.output is not None:
        write_rows(args.output, groups)
    print(*summary(groups), sep="\n")
    wrong = [tried for tried in (*refused, *special, *damaged) if tried.problem is not None]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
