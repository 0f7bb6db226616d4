"""Models of one random node each, of every operator that onnx has, read in processes that may die.

    python benchmarks/fuzz_nodes.py [--seconds 60] [--seed 0]

Settings, types and known contents are drawn near what the operator takes, and far from it: onnx's own inference is
native code, and some nodes lead it outside of its memory. Reading must give a graph or one of our errors, within 10 s.
What ended a process otherwise is named with the number that makes it again; the exit code is 1 then. POSIX alone.
"""

import argparse
import os
import signal
import sys
import time
from collections import Counter
from random import Random

import numpy as np
import onnx
import onnx.defs
from onnx import helper, numpy_helper

from spillprof.errors import SpillprofError
from spillprof.frontends.onnx import read_onnx_bytes

CASES_PER_PROCESS = 500
MAX_SECONDS = 10
TEXTS = ("", "SAME_UPPER", "VALID", "NOTSET", "bidirectional", "linear", "ij,jk->ik", "...ij->...ji", "->", ",", "DCR")
HUGE = (1 << 31, -(1 << 31), 1 << 62, -(1 << 63), (1 << 63) - 1)
CONTENTS = {onnx.TensorProto.INT64: np.int64, onnx.TensorProto.INT32: np.int32, onnx.TensorProto.FLOAT: np.float32}
ELEMENTS = {f"tensor({name.lower()})": number for name, number in onnx.TensorProto.DataType.items()}
SCHEMAS = [
    schema
    for schema in onnx.defs.get_all_schemas_with_history()
    if not any(attribute.type.name.startswith("GRAPH") for attribute in schema.attributes.values())
]


def random_model(rng: Random) -> tuple[str, bytes]:
    """What it is of, and a file."""
    schema = rng.choice(SCHEMAS)
    n_inputs = rng.randint(schema.min_input, max(schema.min_input, min(schema.max_input, schema.min_input + 4)))
    n_outputs = rng.randint(schema.min_output, min(schema.max_output, schema.min_output + 4))
    inputs, stored = [], []
    for i in range(n_inputs):
        element, shape = _element(rng, schema, i), [_dim(rng) for _ in range(rng.choice((0, 1, 2, 3, 4, 4, 5)))]
        if element in CONTENTS and rng.random() < 0.5:
            values = [_number(rng, 0.2) for _ in range(rng.choice((0, 1, 1, 2, 3, 4, 8)))]
            array = np.array(values if rng.random() < 0.8 else _number(rng, 0.2), np.int64).astype(CONTENTS[element])
            stored.append(numpy_helper.from_array(array, f"i{i}"))
        else:
            inputs.append(helper.make_tensor_value_info(f"i{i}", element, shape))
    names = [f"i{i}" if i < schema.min_input or rng.random() < 0.95 else "" for i in range(n_inputs)]
    node = helper.make_node(schema.name, names, [f"o{i}" for i in range(n_outputs)], domain=schema.domain)
    for name, attribute in schema.attributes.items():
        if (attribute.required and rng.random() < 0.97) or rng.random() < 0.4:
            setting = _attribute(rng, name, attribute.type.name)
            node.attribute.extend([] if setting is None else [setting])
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name="o0")], stored)
    imports = [helper.make_opsetid(schema.domain, schema.since_version)]
    made = helper.make_model(graph, opset_imports=imports, ir_version=10)
    return f"{schema.name}-{schema.since_version}", made.SerializeToString()


def _element(rng: Random, schema: onnx.defs.OpSchema, i: int) -> int:
    """A type of elements that the operator takes, mostly."""
    formal = schema.inputs[min(i, len(schema.inputs) - 1)]
    taken = sorted(ELEMENTS[name] for name in formal.types if name in ELEMENTS)
    usual = [element for element in taken if element in CONTENTS]
    return int(rng.choice(usual or taken or [1])) if rng.random() < 0.95 else rng.choice((1, 7, 8, 9, 10))


def _dim(rng: Random) -> int:
    return (
        rng.choice((0, 5, 16, 1 << 31, 1 << 40, (1 << 63) - 1)) if rng.random() < 0.1 else rng.choice((1, 2, 3, 4, 8))
    )


def _number(rng: Random, huge: float) -> int:
    return rng.choice(HUGE) if rng.random() < huge else rng.randint(-3, 8)


def _attribute(rng: Random, name: str, kind: str) -> onnx.AttributeProto | None:
    values = {
        "INT": _number(rng, 0.3),
        "FLOAT": rng.choice((0.0, 1.0, -1.0, 0.5, 1e30, float("nan"), float("inf"))),
        "STRING": rng.choice(TEXTS),
        "INTS": [_number(rng, 0.1) for _ in range(rng.choice((0, 1, 2, 2, 3, 4, 4, 5, 8)))],
        "FLOATS": [rng.choice((0.0, 1.0, 0.5, -1.0)) for _ in range(rng.choice((0, 1, 2, 4)))],
        "STRINGS": ["a"] * rng.randint(0, 3),
        "TENSOR": numpy_helper.from_array(np.array(rng.choice(([1.0], [1, 2], [[1.0]], [])), np.float32)),
    }
    kind = kind if rng.random() < 0.9 else rng.choice(sorted(values))
    if kind not in values:
        return None
    return helper.make_attribute(name, values[kind], attr_type=onnx.AttributeProto.AttributeType.Value(kind))


def _read_many(first: int, report: int) -> None:
    """In a process of its own: reads models, and writes down the number of each before."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    for number in range(first, first + CASES_PER_PROCESS):
        os.write(report, number.to_bytes(8, "little"))
        signal.alarm(MAX_SECONDS)
        try:
            read_onnx_bytes(random_model(Random(number))[1], name="random")
        except SpillprofError:
            pass
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
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    first = number = args.seed * 1_000_000_000
    ends: Counter[str] = Counter()
    end = time.monotonic() + args.seconds
    while time.monotonic() < end:
        readable, report = os.pipe()
        child = os.fork()
        if child == 0:
            _read_many(number, report)
        os.close(report)
        last = _last_number(readable)
        _, status = os.waitpid(child, 0)
        number = last + 1
        if status:
            what = f"{random_model(Random(last))[0]}: {os.waitstatus_to_exitcode(status)}"
            ends[what] += 1
            if ends[what] <= 3:
                print(f"number {last}: {what}", flush=True)
    print(f"{number - first:,} models, {ends.total()} ended their process; {dict(ends)}")
    return 1 if ends else 0


if __name__ == "__main__":
    sys.exit(main())
