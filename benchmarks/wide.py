"""How analyze grows on models that are wide where others are long: CPU seconds by size, as ratios in one run.

    python benchmarks/wide.py [--kinds calls,concat,...] [--folder DIR]

calls: calls of one function; fan: functions that call others ten times;
concat: one operator that reads the results of all others; outputs: a graph
output each; long_lived: operators in a chain, each tenth result read at the end of the model. Each model is analysed
under ``lru`` in a process of its own; a kind that grows like n log n shows ratios a little above that of the sizes.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import onnx
from onnx import TensorProto, helper

SHAPE = [1, 64]
Parts = tuple[list[onnx.NodeProto], list[str]]  # nodes, and the outputs of the graph


def calls(n: int) -> Parts:
    """``n`` calls of a function of two operators, one after the other."""
    nodes = [helper.make_node("F", ["x" if i == 0 else f"t{i - 1}"], [f"t{i}"], domain="local") for i in range(n)]
    return nodes, [f"t{n - 1}"]


def fan(n: int) -> Parts:
    """``n`` operators in a function that calls another ten times, which calls another ten times, and so on."""
    return [helper.make_node(f"F{len(str(n)) - 2}", ["x"], ["y"], domain="local")], ["y"]


def concat(n: int) -> Parts:
    """``n`` results that one Concat reads."""
    names = [f"t{i}" for i in range(n)]
    nodes = [helper.make_node("Relu", ["x"], [name]) for name in names]
    return [*nodes, helper.make_node("Concat", names, ["y"], axis=0)], ["y"]


def outputs(n: int) -> Parts:
    """``n`` results, each an output."""
    names = [f"t{i}" for i in range(n)]
    return [helper.make_node("Relu", ["x"], [name]) for name in names], names


def long_lived(n: int) -> Parts:
    """A chain of ``n`` operators; every tenth result is read again at the end, the last one first."""
    nodes = [helper.make_node("Neg", ["x" if i == 0 else f"t{i - 1}"], [f"t{i}"]) for i in range(n)]
    last = f"t{n - 1}"
    for i in reversed(range(0, n, 10)):
        nodes.append(helper.make_node("Add", [last, f"t{i}"], [f"s{i}"]))
        last = f"s{i}"
    return nodes, [last]


KINDS: dict[str, tuple[Callable[[int], Parts], tuple[int, ...]]] = {
    "calls": (calls, (12_500, 25_000, 50_000, 100_000)),
    "fan": (fan, (1_000, 10_000, 100_000)),
    "concat": (concat, (2_500, 5_000, 10_000, 20_000)),
    "outputs": (outputs, (2_500, 5_000, 10_000, 20_000)),
    "long_lived": (long_lived, (12_500, 25_000, 50_000, 100_000)),
}


def save(kind: str, n: int, path: Path) -> None:
    """The model of a kind and size."""
    nodes, names = KINDS[kind][0](n)
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, kind, [value("x", TensorProto.FLOAT, SHAPE)], [value(name, TensorProto.FLOAT, None) for name in names]
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    inner = [helper.make_node("Relu", ["a"], ["b"]), helper.make_node("Neg", ["b"], ["c"])]
    functions = [helper.make_function("local", "F", ["a"], ["c"], inner, opsets)] if kind == "calls" else []
    for level in range(len(str(n)) - 1 if kind == "fan" else 0):
        called = ("Neg", "") if level == 0 else (f"F{level - 1}", "local")
        inner = [helper.make_node(called[0], [f"a{i}"], [f"a{i + 1}"], domain=called[1]) for i in range(10)]
        functions.append(helper.make_function("local", f"F{level}", ["a0"], ["a10"], inner, opsets))
    onnx.save(helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=10), path)


def cpu_seconds(path: Path) -> float:
    """Of one analysis, imports included."""
    code = (
        "import time; start = time.process_time()\n"
        "from spillprof.cli import run\n"
        f"code = run(['analyze', {str(path)!r}, '--sram', '64KiB', '--strategy', 'lru', '--json', '-q'])\n"
        "import sys; print(time.process_time() - start, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return float(done.stderr.split()[-1])


def rows(kinds: list[str], folder: Path) -> Iterator[tuple[str, int, float, float | None]]:
    """(kind, size, CPU seconds, ratio to the size before)."""
    for kind in kinds:
        before = None
        for n in KINDS[kind][1]:
            path = folder / f"{kind}-{n}.onnx"
            if not path.exists():
                save(kind, n, path)
            seconds = cpu_seconds(path)
            yield kind, n, seconds, before and seconds / before
            before = seconds


def main() -> None:
    """The table, row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--folder", type=Path, help="where models are kept for the next time")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, suppress(BrokenPipeError):
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        for kind, n, seconds, ratio in rows(arguments.kinds.split(","), folder):
            print(f"{kind:10} {n:>7,} {seconds:7.2f} s {'' if ratio is None else f'x {ratio:.2f}'}", flush=True)
        print(f"in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
