"""Growth of analysis time in models that are wide rather than deep: CPU seconds, and ratios in one run.

    python benchmarks/wide.py [--kinds calls,concat] [--share 0.1]

Each kind is built at a quarter of its size and at its size. Reading, `analyze`, the JSON, the HTML report
and the text are measured apart; what grows like n log n shows ratios a little above 4. A refusal is printed.
"""

import argparse
import gc
import hashlib
import itertools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import onnx
from onnx import TensorProto, helper

from spillprof.cli.analyze import FEW_STRATEGIES
from spillprof.explain.analyze import analyze
from spillprof.explain.options import AnalyzeOptions
from spillprof.frontends import read_model
from spillprof.ir.errors import SpillprofError
from spillprof.ir.target import load_target
from spillprof.report.json_text import profile_json
from spillprof.report.profile import html, terminal

OPSETS = (helper.make_opsetid("", 17), helper.make_opsetid("own", 1))


def value(name: str, *shape: int) -> onnx.ValueInfoProto:
    """A float32 tensor."""
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def bytes_of(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    functions: list[onnx.FunctionProto] | None = None,
) -> bytes:
    """A model file."""
    graph = helper.make_graph(nodes, "wide", inputs, outputs)
    return helper.make_model(graph, opset_imports=OPSETS, functions=functions or []).SerializeToString()


def block() -> onnx.FunctionProto:
    """A function of two operators."""
    nodes = [helper.make_node("Relu", ["a"], ["b"]), helper.make_node("Exp", ["b"], ["c"])]
    return helper.make_function("own", "Block", ["a"], ["c"], nodes, OPSETS[:1])


def calls(n: int) -> bytes:
    """A fan of calls of one function, whose results are concatenated."""
    nodes = [helper.make_node("Block", ["x"], [f"t{i}"], domain="own", name=f"call{i}") for i in range(n)]
    nodes.append(helper.make_node("Concat", [f"t{i}" for i in range(n)], ["y"], axis=0, name="join"))
    return bytes_of(nodes, [value("x", 1, 16)], [value("y", n, 16)], [block()])


def calls_out(n: int) -> bytes:
    """A fan of calls of one function, each of whose results is an output of the graph."""
    nodes = [helper.make_node("Block", ["x"], [f"t{i}"], domain="own", name=f"call{i}") for i in range(n)]
    return bytes_of(nodes, [value("x", 1, 16)], [value(f"t{i}", 1, 16) for i in range(n)], [block()])


def calls_nested(n: int) -> bytes:
    """Functions that call each other ten times, down to operators."""
    functions, size = [block()], 1
    while size < n:
        inner = functions[-1].name
        names = ["a", *(f"{inner}{k}" for k in range(10))]
        nodes = [helper.make_node(inner, [a], [b], domain="own") for a, b in itertools.pairwise(names)]
        functions.append(helper.make_function("own", f"Of{len(functions)}", ["a"], names[-1:], nodes, OPSETS))
        size *= 10
    nodes = [helper.make_node(functions[-1].name, ["x"], ["y"], domain="own", name="main")]
    return bytes_of(nodes, [value("x", 1, 16)], [value("y", 1, 16)], functions)


def concat(n: int) -> bytes:
    """One Concat of many inputs of the graph."""
    names = [f"x{i}" for i in range(n)]
    nodes = [helper.make_node("Concat", names, ["y"], axis=0, name="join")]
    return bytes_of(nodes, [value(name, 1, 256) for name in names], [value("y", n, 256)])


def concat_made(n: int) -> bytes:
    """One Concat of many results."""
    nodes = [helper.make_node("Exp", ["x"], [f"t{i}"], name=f"e{i}") for i in range(n)]
    nodes.append(helper.make_node("Concat", [f"t{i}" for i in range(n)], ["y"], axis=0, name="join"))
    return bytes_of(nodes, [value("x", 1, 256)], [value("y", n, 256)])


def outputs(n: int) -> bytes:
    """Many outputs of the graph, each of an operator of its own."""
    nodes = [helper.make_node("Exp", ["x"], [f"y{i}"], name=f"e{i}") for i in range(n)]
    return bytes_of(nodes, [value("x", 1, 4096)], [value(f"y{i}", 1, 4096) for i in range(n)])


def split(n: int) -> bytes:
    """One Split into many outputs of the graph."""
    names = [f"y{i}" for i in range(n)]
    nodes = [helper.make_node("Split", ["x"], names, axis=0, name="split")]
    return bytes_of(nodes, [value("x", n, 256)], [value(name, 1, 256) for name in names])


def shared(n: int) -> bytes:
    """A tensor that every operator reads, and that has to leave between each two of them."""
    nodes, last = [], "s"
    for i in range(n // 2):
        nodes.append(helper.make_node("Concat", [last, "x"], [f"a{i}"], axis=1, name=f"a{i}"))
        nodes.append(helper.make_node("ReduceMax", [f"a{i}"], [f"b{i}"], axes=[1], name=f"b{i}"))
        last = f"b{i}"
    return bytes_of(nodes, [value("s", 1, 1), value("x", 1, 4000)], [value(last, 1, 1)])


def too_large(n: int) -> bytes:
    """A tensor larger than the memory, which every operator streams."""
    names = [f"y{i}" for i in range(n)]
    nodes = [helper.make_node("Exp", ["x"], ["t"], name="t")]
    nodes += [helper.make_node("ReduceMax", ["t"], [name], axes=[1], name=name) for name in names]
    nodes.append(helper.make_node("Concat", names, ["y"], axis=0, name="join"))
    return bytes_of(nodes, [value("x", 1, 1 << 22)], [value("y", n, 1)])


def long_lived(n: int) -> bytes:
    """Operators that each read the result before them and one from anywhere before."""
    rng, names, nodes = Random(0), ["x"], []
    for i in range(n):
        other = rng.choice(names)
        nodes.append(helper.make_node("Add", [names[-1], other], [f"t{i}"], name=f"op{i}"))
        names.append(f"t{i}")
    return bytes_of(nodes, [value("x", 4096)], [value(names[-1], 4096)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A way to be wide."""

    build: Callable[[int], bytes]
    size: int  # the size that is measured, beside a quarter of it
    sram_bytes: int = 0
    sram_bytes_each: int = 0  # added for each of ``size``

    def sram(self, n: int) -> int:
        """The memory for a model of size ``n``, in bytes."""
        return -(-(self.sram_bytes + n * self.sram_bytes_each) // 64) * 64


KINDS = {
    "calls": Kind(build=calls, size=100_000, sram_bytes_each=84),
    "calls_nested": Kind(build=calls_nested, size=100_000, sram_bytes_each=84),
    "calls_out": Kind(build=calls_out, size=100_000, sram_bytes_each=84),
    "concat": Kind(build=concat, size=10_000, sram_bytes_each=840),
    "concat_made": Kind(build=concat_made, size=10_000, sram_bytes_each=840),
    "outputs": Kind(build=outputs, size=5_000, sram_bytes=1 << 20),
    "split": Kind(build=split, size=5_000, sram_bytes_each=840),
    "shared": Kind(build=shared, size=20_000, sram_bytes=24 << 10),
    "too_large": Kind(build=too_large, size=20_000, sram_bytes=4 << 20),
    "long_lived": Kind(build=long_lived, size=100_000, sram_bytes=8 << 20),
}


def measure(data: bytes, sram_bytes: int) -> tuple[dict[str, float], str]:
    """(CPU seconds of each stage, the start of the SHA-256 of the JSON, or the error)."""
    seconds: dict[str, float] = {}

    def timed(what: str, call: Callable[[], Any]) -> Any:
        start = time.process_time()
        try:
            return call()
        finally:
            seconds[what] = time.process_time() - start

    target = load_target("generic-npu").with_overrides(sram_bytes=sram_bytes)
    try:
        graph = timed("read", lambda: read_model(data, name="wide.onnx"))
        n = len(graph.operators)
        strategies = next((few for many, few in FEW_STRATEGIES if n > many), ())  # as the command does
        options = AnalyzeOptions(strategies=strategies, what_if=True)
        profile = timed("analyze", lambda: analyze(graph, target, options))
        text = timed("json", lambda: profile_json(profile, events=True))
        timed("html", lambda: html.render(profile))
        timed("text", lambda: terminal.render(profile, color=False))
    except SpillprofError as error:
        return seconds, f"refused: {error.message}"
    return seconds, hashlib.sha256(text.encode()).hexdigest()[:16]


def main() -> None:
    """Print the table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--share", type=float, default=1.0, help="of each kind's size")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    gc.disable()  # as the command does
    found = {}
    for name in args.kinds.split(","):
        kind = KINDS[name]
        size = round(kind.size * args.share)
        found[name] = [(n, *measure(kind.build(n), kind.sram(n))) for n in (size // 4, size)]
        if not args.json:
            print(row(name, *found[name]), flush=True)
    if args.json:
        print(json.dumps(found))


Measured = tuple[int, dict[str, float], str]


def row(name: str, small: Measured, large: Measured) -> str:
    """A line of the table: the sizes, the seconds of all and of each stage, with ratios."""
    stages = [f"{k} {s:.2f} ({s / max(small[1].get(k, 0), 0.01):.1f}x)" for k, s in large[1].items()]
    before, after = sum(small[1].values()), sum(large[1].values())
    total = f"{name:13}{small[0]:>8,}{before:8.2f} s{large[0]:>9,}{after:8.2f} s{after / before:6.1f}x"
    return f"{total}  {'  '.join(stages)}  {large[2]}"


if __name__ == "__main__":
    main()
