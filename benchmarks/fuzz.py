"""Damaged files of every kind that the tool reads, through the command line's own entry point, in one process.

    python benchmarks/fuzz.py [--seconds 60] [--seed 0] [--models FOLDER] [--keep FOLDER]

A case is one command on one damaged file. It must end with exit code 0 or 2 (the gate: 1 too), in bounded memory and
CPU time; a failure is one line ``error: ...``; no terminal escape is printed. Cases that break
a rule are written to the folder of ``--keep``, and the exit code is 1.
"""

import argparse
import contextlib
import os
import resource
import signal
import sys
import tempfile
import time
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from fuzzing.files import sound_files
from fuzzing.models import damaged_model, models_in
from fuzzing.raw_bytes import damaged_bytes
from fuzzing.streams import Stream

from spillprof.cli import run

MAX_CPU_SECONDS = 10
MAX_GROWTH_BYTES = 1 << 30
MORE_OPTIONS = (
    ["--weights", "cached"], ["--weights", "resident"], ["--control-flow", "step"], ["--order", "memory"],
    ["--recompute", "rules"], ["--recompute", "joint"], ["--act-dtype", "int8", "--weight-dtype", "int4"],
    ["--target", "ethos-u65"], ["--placement", "best-fit"], ["--inputs", "resident"], ["--batch", "2"],
    ["--fuse", "none"], ["--conv", "im2col"], ["--oversized", "error"], ["--cold", "--weights", "cached"],
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A command, the damaged file that it reads, and what it may answer."""

    kind: str
    arguments: list[str]
    content: bytes
    path: Path
    codes: frozenset[int] = frozenset({0, 2})


def broken_rule(case: Case) -> str | None:
    """Runs a case; what it did wrong, if anything."""
    case.path.write_bytes(case.content)
    out, err = Stream(), Stream()
    before = _peak_bytes()
    start = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, 6 * MAX_CPU_SECONDS)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("error")
            code = run(case.arguments)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"raised {type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    seconds = time.process_time() - start
    shown, said = out.getvalue(), err.getvalue()
    if code not in case.codes:
        return f"exit code {code}: {said[-2000:]}"
    if code == 2 and not shown and sum(line.startswith("error: ") for line in said.splitlines()) != 1:
        return f"not one error line: {said[:500]!r}"
    if "Traceback" in said:
        return f"a traceback: {said[-2000:]}"
    steering = {c for c in shown + said if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    if steering:
        return f"raw {steering} in the output"
    if seconds > MAX_CPU_SECONDS:
        return f"took {seconds:.1f} s"
    if _peak_bytes() - before > MAX_GROWTH_BYTES:
        return f"took {(_peak_bytes() - before) >> 20} MiB"
    return None


def cases(rng: Random, folder: Path, models: list[bytes]) -> Iterator[Case]:
    """Endless damaged files."""
    others = list(sound_files(folder))
    while True:
        if rng.random() < 0.7:
            path = folder / "fuzzed.onnx"
            arguments = [*_command(rng, folder), str(path), "-q"]
            yield Case(kind="model", arguments=arguments, content=damaged_model(rng, models), path=path)
        else:
            sound = rng.choice(others)
            damage = sound.damage if sound.damage and rng.random() < 0.6 else damaged_bytes
            yield Case(
                kind=sound.kind,
                arguments=sound.arguments,
                content=damage(rng, sound.content),
                path=sound.path,
                codes=frozenset({0, 1, 2}) if sound.kind in ("baseline", "config") else frozenset({0, 2}),
            )
            sound.path.write_bytes(sound.content)  # others may read it


def _command(rng: Random, folder: Path) -> list[str]:
    """What reads a damaged model."""
    if rng.random() < 0.3:
        return ["inspect", *rng.choice(([], ["--json"]))]
    command = ["analyze", "--sram", rng.choice(["8MiB", "64KiB", "1KiB"]), "--optimize-seconds", "1"]
    if rng.random() < 0.5:
        command += ["--strategy", rng.choice(["lru", "interval", "belady,cost"])]
    if rng.random() < 0.4:
        command += rng.choice(MORE_OPTIONS)
    shown = [option for name in ("r.html", "r.md", "r.csv") for option in ("-o", str(folder / name))]
    return [*command, *rng.choice((["--json"], ["--no-report"], shown))]


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def late(*_: object) -> None:
    """Stops a case that does not end."""
    raise TimeoutError("the case does not end")


def main() -> int:
    """Run cases until the time is up; 1 if one of them broke a rule."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", type=Path, help="folder of .onnx files to damage")
    parser.add_argument("--keep", type=Path, help="folder for the cases that break a rule")
    args = parser.parse_args()
    os.environ["NO_COLOR"] = "1"
    signal.signal(signal.SIGPROF, late)
    done: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    end = time.monotonic() + args.seconds
    with tempfile.TemporaryDirectory() as name:
        for case in cases(Random(args.seed), Path(name), models_in(args.models)):
            problem = broken_rule(case)
            done[case.kind] += 1
            if problem is not None:
                failures[case.kind] += 1
                print(f"seed {args.seed} case {done.total()}: {' '.join(case.arguments)}: {problem}", flush=True)
                if args.keep is not None:
                    args.keep.mkdir(parents=True, exist_ok=True)
                    kept = args.keep / f"{args.seed}-{done.total()}{case.path.suffix}"
                    kept.write_bytes(case.content)
            if time.monotonic() > end:
                break
    print(f"seed {args.seed}: {done.total():,} cases, {failures.total()} failures; {dict(done)}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
