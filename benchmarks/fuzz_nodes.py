"""Models of one random node each, of every operator that onnx has, read in processes that may crash.

    python benchmarks/fuzz_nodes.py [--seconds 60 | --models 1000] [--seed 0]

Attributes, types and known contents are drawn near what the operator takes, and far from it: onnx's own inference is
native code, and some nodes make it read out of bounds or loop forever. Reading must give a graph whose operators can
be counted, or one of our errors, within 4 CPU seconds and 2 GiB. Any other end of a process is reported with the seed
that reproduces it, and the exit code is 1. POSIX only.
"""

import argparse
import os
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import onnx
import onnx.defs
from onnx import helper, numpy_helper

from spillprof.frontends import read_model
from spillprof.ir.errors import SpillprofError
from spillprof.lowering.operators.table import count_macs

CASES_PER_PROCESS = 500
MAX_CPU_SECONDS = 4
MAX_MORE_BYTES = 2 << 30
KIND = onnx.defs.OpSchema.AttrType
SIZES = (0, 1, 2, 3, 4, 8)
WILD = (
    -(1 << 63), -(1 << 31), -1_000_000_007, -5, -3, -2, -1, 0, 1, 2, 3, 4, 7, 8, 64, 1000,
    1 << 16, 1 << 20, 1_000_000_007, (1 << 31) - 1, 1 << 31, 1 << 32, 1 << 40, 1 << 62, (1 << 63) - 1,
)  # fmt: skip
WILD_FLOATS = (0.0, -0.0, 1.0, 2.0, 0.5, -1.0, 1e-30, 1e-9, 1e9, 1e18, 1e30, float("inf"), float("-inf"), float("nan"))
TEXTS = (
    "", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER", "linear", "nearest", "cubic", "constant", "reflect", "wrap",
    "edge", "none", "add", "DCR", "CRD", "avg", "forward", "bidirectional", "reverse", "sum", "mean", "bogus",
    "half_pixel", "tf_crop_and_resize", "stretch", "not_larger", "not_smaller", "\x00", "...", "....", "é",
)  # fmt: skip
EQUATIONS = (
    "....", "...", ".", "..", "......", "...,...", "...i,...j->...ij", "ij,jk->ik", "ij,jk", "ii->i", "ii", "->", "",
    ",", ",,", "i->", "->i", "i->j", "ij->iij", "....i->i", "i...j...->", "...->......", "i, j -> i j", "I,i->Ii",
    "1->1", "i-i", "i>i", "i->i->i", "bhid,bhjd->bhij", "...ij->...ji", "abcdefghijklmnopqrstuvwxyz->a", "é->é", "-",
)  # fmt: skip
SCHEMAS = sorted(
    (
        schema
        for schema in onnx.defs.get_all_schemas_with_history()
        if schema.domain in ("", "ai.onnx.ml", "ai.onnx.preview") and not schema.deprecated
    ),
    key=lambda schema: (schema.domain, schema.name, schema.since_version),
)
OPERATORS = sorted({(schema.domain, schema.name) for schema in SCHEMAS})
ELEMENTS = {
    "float": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "string": 8, "bool": 9, "float16": 10, "double": 11,
}  # fmt: skip


def random_model(number: int) -> bytes:
    """The model of that number: one node, every input stored or fed, settings and sizes often far out of range."""
    pick = Random(number)
    domain, name = OPERATORS[number % len(OPERATORS)]
    schema = pick.choice([s for s in SCHEMAS if (s.domain, s.name) == (domain, name)])
    inputs, fed, stored = _inputs(pick, schema)
    outputs = [f"o{i}" for i in range(pick.randint(max(schema.min_output, 1), min(max(schema.max_output, 1), 5)))]
    node = onnx.NodeProto(op_type=name, domain=domain, input=inputs, output=outputs)
    for key, attribute in sorted(schema.attributes.items()):
        if attribute.required or pick.random() < 0.6:
            made = _attribute(pick, key, attribute.type, name)
            if made is not None:
                node.attribute.append(made)
    graph = onnx.GraphProto(name="g", node=[node], input=fed, initializer=stored)
    graph.output.extend(onnx.ValueInfoProto(name=o) for o in outputs)
    opsets = [helper.make_opsetid("", 17 if domain else schema.since_version)]
    opsets += [helper.make_opsetid(domain, schema.since_version)] if domain else []
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def operator_of(number: int) -> str:
    """The operator of that number's model."""
    domain, name = OPERATORS[number % len(OPERATORS)]
    return f"{domain}.{name}" if domain else name


def _inputs(
    pick: Random, schema: onnx.defs.OpSchema
) -> tuple[list[str], list[onnx.ValueInfoProto], list[onnx.TensorProto]]:
    count = pick.randint(schema.min_input, max(min(schema.max_input, 6), schema.min_input))
    names: list[str] = []
    fed: list[onnx.ValueInfoProto] = []
    stored: list[onnx.TensorProto] = []
    ranks = pick.randint(0, 5)
    for i in range(count):
        formal = schema.inputs[min(i, len(schema.inputs) - 1)]
        if i >= schema.min_input and pick.random() < 0.15:
            names.append("")
            continue
        names.append(f"i{i}")
        allowed = [t for t in formal.types if t.removeprefix("tensor(").removesuffix(")") in ELEMENTS]
        kind = pick.choice(sorted(allowed)) if allowed else "tensor(float)"
        element = ELEMENTS[kind.removeprefix("tensor(").removesuffix(")")]
        if pick.random() < (0.7 if i and element in (1, 6, 7) else 0.15):
            stored.append(_stored(pick, names[-1], element, ranks))
        else:
            rank = ranks if pick.random() < 0.8 else pick.choice((0, 1, 2, 3, 6, 40))
            wide = pick.random() < 0.15
            shape = [
                pick.choice(WILD[11:]) if wide and pick.random() < 0.5 else pick.choice(SIZES) for _ in range(rank)
            ]
            fed.append(helper.make_tensor_value_info(names[-1], element, shape))
    return names, fed, stored


def _stored(pick: Random, name: str, element: int, ranks: int) -> onnx.TensorProto:
    dtype = helper.tensor_dtype_to_np_dtype(element)
    shape = pick.choice(((), (1,), (ranks,), (ranks,), (ranks,), (2 * ranks,), (2,), (4,), (2, 2), (0,)))
    count = int(np.prod(shape))
    if element == ELEMENTS["string"]:
        return helper.make_tensor(name, element, shape, [pick.choice(TEXTS).encode() for _ in range(count)])
    pool: Sequence[float] = WILD_FLOATS if dtype.kind == "f" else WILD if pick.random() < 0.6 else (0, 1, 2, 3, -1)
    with np.errstate(all="ignore"):
        values = np.array([pick.choice(pool) for _ in range(count)]).astype(dtype).reshape(shape)
    return numpy_helper.from_array(values, name)


def _attribute(pick: Random, key: str, kind: KIND, op_type: str) -> onnx.AttributeProto | None:
    match kind:
        case KIND.INT:
            return helper.make_attribute(key, pick.choice(WILD))
        case KIND.INTS:
            size = pick.choice((0, 1, 2, 2, 3, 4, 4, 6))
            pool = WILD if pick.random() < 0.5 else (0, 1, 2, 3, -1)
            return helper.make_attribute(key, [pick.choice(pool) for _ in range(size)], attr_type=7)
        case KIND.FLOAT:
            return helper.make_attribute(key, pick.choice(WILD_FLOATS))
        case KIND.FLOATS:
            size = pick.choice((0, 1, 2, 4))
            return helper.make_attribute(key, [pick.choice(WILD_FLOATS) for _ in range(size)], attr_type=6)
        case KIND.STRING:
            return helper.make_attribute(key, _equation(pick) if op_type == "Einsum" else pick.choice(TEXTS))
        case KIND.STRINGS:
            return helper.make_attribute(key, [pick.choice(TEXTS) for _ in range(pick.randint(0, 3))], attr_type=8)
        case KIND.TENSOR:
            return helper.make_attribute(key, _stored(pick, "t", pick.choice((1, 6, 7)), 1))
        case KIND.GRAPH:
            return helper.make_attribute(key, _body(pick))
    return None


def _equation(pick: Random) -> str:
    if pick.random() < 0.4:
        return pick.choice(EQUATIONS)
    return "".join(pick.choice((".", "...", ",", "->", "i", "j", "k", " ", "Z")) for _ in range(pick.randint(0, 9)))


def _body(pick: Random) -> onnx.GraphProto:
    names = [f"b{i}" for i in range(pick.randint(0, 4))]
    shape = [pick.choice(SIZES) for _ in range(pick.randint(0, 3))]
    kinds = [pick.choice((1, 7, 9)) for _ in names]
    nodes = [helper.make_node("Identity", [name], [f"r{name}"]) for name in names]
    if names:
        nodes.append(helper.make_node(pick.choice(("Concat", "Tile", "Add")), [names[-1], names[-1]], ["grown"]))
    if names and nodes[-1].op_type == "Concat":
        nodes[-1].attribute.append(helper.make_attribute("axis", pick.choice(WILD)))
    ends = [f"r{name}" for name in names[:-1]] + (["grown"] if names else [])
    graph = onnx.GraphProto(name="body", node=nodes)
    graph.input.extend(helper.make_tensor_value_info(n, k, shape) for n, k in zip(names, kinds, strict=True))
    graph.output.extend(onnx.ValueInfoProto(name=e) for e in ends)
    return graph


def _read_many(first: int, count: int, report: int) -> None:
    """In a process of its own: reads models, and writes down the number of each before."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    if sys.platform == "linux":  # elsewhere the limit counts what no program asked for
        held = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + MAX_MORE_BYTES, resource.RLIM_INFINITY))
    for number in range(first, first + count):
        os.write(report, number.to_bytes(8, "little"))
        signal.setitimer(signal.ITIMER_PROF, MAX_CPU_SECONDS)  # its signal ends native code too
        try:
            graph = read_model(random_model(number), name="random")
            counts = [count_macs(op, graph).macs for op in graph.operators]
            if min((*counts, *(size for tensor in graph.tensors.values() for size in tensor.shape)), default=0) < 0:
                os._exit(3)
        except SpillprofError as error:
            if not error.hint:
                os._exit(2)
        except BaseException:
            os._exit(1)
    os._exit(0)


def _last_number(readable: int) -> int:
    """The number that was written last."""
    with os.fdopen(readable, "rb") as stream:
        return int.from_bytes(stream.read()[-8:], "little")


def main() -> int:
    """Read models until the time is up; 1 if one of them ended its process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--models", type=int, help="this many, however long it takes")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    first = number = args.seed * 1_000_000_000
    ends: Counter[str] = Counter()
    end = time.monotonic() + args.seconds
    while number < first + args.models if args.models else time.monotonic() < end:
        readable, report = os.pipe()
        child = os.fork()
        if child == 0:
            left = first + args.models - number if args.models else CASES_PER_PROCESS
            _read_many(number, min(CASES_PER_PROCESS, left), report)
        os.close(report)
        last = _last_number(readable)
        _, status = os.waitpid(child, 0)
        number = last + 1
        if status:
            what = f"{operator_of(last)}: {os.waitstatus_to_exitcode(status)}"
            ends[what] += 1
            if ends[what] <= 3:
                print(f"number {last}: {what}", flush=True)
    print(f"{number - first:,} models, {ends.total()} ended their process; {dict(ends)}")
    return 1 if ends else 0


if __name__ == "__main__":
    sys.exit(main())
