"""Random nodes of each operator in onnxruntime and in the front end: outputs must have the same type and size.

    python benchmarks/runtime_shapes.py [--each 1000] [--only TEXT] [--seed 0] [--show 3]

Attributes, operator sets, broadcasting, axes and empty dimensions are drawn near what the operator takes; what
onnxruntime refuses or has no kernel for is counted and not compared. Every operator has a process of its own; crashes
are reported. The exit code is 1 if anything differs that docs/operators.md does not explain. POSIX only.
"""

import argparse
import os
import pickle
import resource
import sys
from collections import Counter
from collections.abc import Iterator

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported, as those processes are forked

import numpy as np
from random_nodes import RECIPES, Answer, Draw, Verdict, compare, session_options


def verdicts(op_type: str, first: int, last: int) -> Iterator[tuple[int, Verdict]]:
    """Of the nodes with these numbers. A number gives the same node everywhere."""
    import onnxruntime as ort  # in the child alone: what has threads must not be forked

    options = session_options(ort)
    for number in range(first, last):
        with np.errstate(all="ignore"):
            yield number, compare(RECIPES[op_type](Draw(f"{op_type} {number}")), ort, options)


def apart(op_type: str, first: int, last: int) -> tuple[list[tuple[int, Verdict]], int]:
    """The same in a process of its own, and its exit code: a signal's number below zero."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(readable)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with os.fdopen(writable, "wb") as stream:
            for entry in verdicts(op_type, first, last):
                pickle.dump(entry, stream)
                stream.flush()
        os._exit(0)
    os.close(writable)
    found: list[tuple[int, Verdict]] = []
    with os.fdopen(readable, "rb") as stream:
        try:
            while True:
                found.append(pickle.load(stream))
        except (EOFError, pickle.UnpicklingError):
            pass
    _, status = os.waitpid(child, 0)
    return found, os.waitstatus_to_exitcode(status)


def main() -> int:
    """Compare; 1 if something differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=1000)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=3)
    args = parser.parse_args()
    total: Counter[Answer] = Counter()
    is_broken = False
    first = args.seed * 1_000_000_000
    for op_type in [name for name in RECIPES if args.only in name]:
        counts: Counter[Answer] = Counter()
        details: list[str] = []
        refusals: Counter[str] = Counter()
        number, end = first, first + args.each
        while number < end:
            found, code = apart(op_type, number, end)
            number += len(found) + 1
            is_broken = is_broken or code > 0  # below: a signal, from native code
            if code:
                details.append(f"number {number - 1} ended the process: exit code {code}")
            for _, verdict in found:
                counts[verdict.answer] += 1
                if verdict.answer is Answer.NOT_RUN:
                    refusals[verdict.detail[:160]] += 1
            details += [f"number {n}: {v.detail}" for n, v in found if v.answer is Answer.DIFFERENT]
        total += counts
        ran = counts.total() - counts[Answer.NOT_RUN]
        told = ", ".join(f"{counts[a]} {a.value}" for a in Answer if counts[a] and a is not Answer.NOT_RUN)
        print(f"{op_type}: {ran} of {counts.total()} ran: {told or '-'}", flush=True)
        for line in details[: args.show]:
            print(f"    {line}", flush=True)
        if not ran:
            print(f"    not run: {refusals.most_common(1)}", flush=True)
    used = sum(resource.getrusage(who).ru_utime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(f"{len(RECIPES)} operators, {total.total():,} nodes, {used:.0f} CPU seconds")
    for answer in Answer:
        print(f"{total[answer]:,} {answer.value}")
    return 1 if total[Answer.DIFFERENT] or is_broken else 0


if __name__ == "__main__":
    sys.exit(main())
