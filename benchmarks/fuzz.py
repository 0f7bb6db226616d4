"""Damaged files of every kind that the tool reads, through the command line's own entry point, in one process.

    python benchmarks/fuzz.py [--seconds 60] [--seed 0] [--models FOLDER] [--keep FOLDER]

A case is one command on one damaged file. It must end with exit code 0 or 2 (the gate: 1 too), in bounded time and
memory; a failure is one line ``error: ...``; nothing that steers a terminal is printed. Cases that break a rule are
written to the folder of ``--keep``, and the exit code is 1.
"""

import argparse
import contextlib
import copy
import csv
import io
import json
import os
import resource
import signal
import sqlite3
import sys
import tempfile
import time
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import onnx
from onnx import helper

from spillprof.cli import run

MAX_SECONDS = 10
MAX_GROWTH_BYTES = 1 << 30
LARGE_BYTES = 1 << 18
HUGE = (0, 1, -1, 7, 1 << 31, (1 << 31) - 1, 1 << 40, (1 << 63) - 1, -(1 << 63))
NAMES = ("", "<script>alert(1)</script>", "\x1b[2J", "\u202ex", "a\nb\rc", "=cmd|' /C calc'!A0", "x" * 10_000,
         "../../x", "\x00", "\ud7ff", "x", "y", "'\"`$(id)")  # fmt: skip


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
    out, err = _Stream(), _Stream()
    before = _peak_bytes()
    start = time.perf_counter()
    signal.alarm(6 * MAX_SECONDS)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("error")
            code = run(case.arguments)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"raised {type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
    seconds = time.perf_counter() - start
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
    if seconds > MAX_SECONDS * _slowness():
        return f"took {seconds:.1f} s"
    if _peak_bytes() - before > MAX_GROWTH_BYTES:
        return f"took {(_peak_bytes() - before) >> 20} MiB"
    return None


def cases(rng: Random, folder: Path, models: list[bytes]) -> Iterator[Case]:
    """Endless damaged files."""
    others = _other_files(folder)
    while True:
        if rng.random() < 0.7:
            data = _damaged_model(rng, models)
            command = (
                ["inspect"] if rng.random() < 0.3 else ["analyze", "--sram", rng.choice(["8MiB", "64KiB", "1KiB"])]
            )
            more = ["--json"] if rng.random() < 0.5 else [] if command[0] == "inspect" else ["--no-report"]
            if command[0] == "analyze" and rng.random() < 0.3:
                more = [o for name in ("r.html", "r.md", "r.csv") for o in ("-o", str(folder / name))]
            if command[0] == "analyze" and rng.random() < 0.5:
                more = [*more, "--strategy", rng.choice(["lru", "interval", "belady,cost"])]
            path = folder / "fuzzed.onnx"
            yield Case(kind="model", arguments=[*command, str(path), "-q", *more], content=data, path=path)
        else:
            kind, path, arguments, content, structured = rng.choice(others)
            damaged = structured(rng, content) if structured and rng.random() < 0.6 else _damaged_bytes(rng, content)
            codes = frozenset({0, 1, 2}) if kind in ("baseline", "config") else frozenset({0, 2})
            yield Case(kind=kind, arguments=arguments, content=damaged, path=path, codes=codes)


def _damaged_model(rng: Random, models: list[bytes]) -> bytes:
    data = rng.choice(models)
    kind = rng.random()
    if kind < 0.5:
        with contextlib.suppress(Exception):  # what protobuf itself cannot hold is no case
            model = onnx.ModelProto.FromString(data)
            for _ in range(rng.randint(1, 4)):
                rng.choice(_EDITS)(rng, model)
            data = model.SerializeToString()
        return data if rng.random() < 0.8 else _damaged_bytes(rng, data)
    if kind < 0.6:
        other = rng.choice(models)
        return data[: rng.randrange(len(data))] + other[rng.randrange(len(other)) :]
    if kind < 0.75:
        return _damaged_fields(rng, data)
    return _damaged_bytes(rng, data)


# --- bytes


def _damaged_bytes(rng: Random, content: bytes) -> bytes:
    data = bytearray(content)
    for _ in range(rng.randint(1, 6)):
        at, length = rng.randrange(len(data) + 1), rng.choice((1, 2, 8, 64))
        match rng.randrange(6):
            case 0 if at < len(data):
                data[at] = rng.randrange(256)
            case 1 if at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            case 2:
                del data[at : at + length]
            case 3:
                data[at:at] = data[at : at + length] * rng.randint(1, 50)
            case 4:
                data[at:at] = rng.choice(
                    (b"\xff" * 9 + b"\x01", b"\x80" * 12, b"\x00" * 4, b"\x0a\xff\xff\xff\xff\x0f", b"9" * 30)
                )
            case 5:
                if rng.random() < 0.3:
                    del data[at:]
    return bytes(data)


def _damaged_fields(rng: Random, data: bytes) -> bytes:
    """Fields of the top, or of the messages inside, dropped, doubled, swapped or nested."""
    fields = _fields(data)
    if not fields:
        return _damaged_bytes(rng, data)
    at = rng.randrange(len(fields))
    key, body = fields[at]
    match rng.randrange(5):
        case 0:
            del fields[at]
        case 1:
            fields[at:at] = [fields[at]] * rng.choice((1, 2, 1000))
        case 2:
            rng.shuffle(fields)
        case 3 if key & 7 == 2 and body:
            fields[at] = (key, _damaged_fields(rng, body) if rng.random() < 0.9 else _damaged_bytes(rng, body))
        case 4 if key & 7 == 2:
            for _ in range(rng.choice((1, 40, 200))):
                body = _number(key) + _number(len(body)) + body
            fields[at] = (key, body)
    return b"".join(_number(k) + (_number(len(b)) if k & 7 == 2 else b"") + b for k, b in fields)


def _fields(data: bytes) -> list[tuple[int, bytes]]:
    """(key, content) of each field; what follows a malformed one is left out."""
    found, at = [], 0
    with contextlib.suppress(IndexError):
        while at < len(data):
            key, at = _read_number(data, at)
            if key & 7 == 2:
                length, at = _read_number(data, at)
                found.append((key, data[at : at + length]))
                at += length
            elif key & 7 == 0:
                value, at = _read_number(data, at)
                found.append((key, _number(value)))
            else:
                width = {1: 8, 5: 4}.get(key & 7, 0)
                if not width:
                    break
                found.append((key, data[at : at + width]))
                at += width
    return found


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def _number(value: int) -> bytes:
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


# --- fields of a graph


def _node(rng: Random, model: onnx.ModelProto) -> onnx.NodeProto:
    return rng.choice(model.graph.node)


def _value_name(rng: Random, model: onnx.ModelProto) -> str:
    node = _node(rng, model)
    return rng.choice([*node.input, *node.output] or [""])


def _rename(rng: Random, model: onnx.ModelProto) -> None:
    node, name = _node(rng, model), rng.choice(NAMES)
    match rng.randrange(5):
        case 0:
            node.name = name
        case 1:
            node.op_type = rng.choice((name, "Relu", "Concat", "Reshape", "If", "Loop", "MatMul", "Split", "Expand"))
        case 2:
            node.domain = rng.choice((name, "com.microsoft", "ai.onnx.ml"))
        case 3:
            model.graph.name = name
        case 4 if node.output:
            node.output[rng.randrange(len(node.output))] = name


def _rewire(rng: Random, model: onnx.ModelProto) -> None:
    node = _node(rng, model)
    if node.input and rng.random() < 0.7:
        node.input[rng.randrange(len(node.input))] = _value_name(rng, model)
    elif rng.random() < 0.5:
        node.input.extend([_value_name(rng, model)] * rng.choice((1, 2, 5000)))
    else:
        node.output.append(rng.choice((_value_name(rng, model), "", "new")))


def _resize(rng: Random, model: onnx.ModelProto) -> None:
    values = [*model.graph.input, *model.graph.output, *model.graph.value_info]
    shape = rng.choice(values).type.tensor_type.shape
    size = rng.choice(HUGE)
    if shape.dim and rng.random() < 0.8:
        dim = rng.choice(shape.dim)
        if rng.random() < 0.3:
            dim.dim_param = rng.choice(NAMES)
        else:
            dim.dim_value = size
    else:
        shape.dim.add().dim_value = size


def _restore(rng: Random, model: onnx.ModelProto) -> None:
    tensor = rng.choice(model.graph.initializer)
    match rng.randrange(6):
        case 0 if tensor.dims:
            tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(HUGE)
        case 1:
            tensor.data_type = rng.choice((0, 1, 7, 8, 9, 16, 21, 23, 99, 1 << 30))
        case 2:
            tensor.raw_data = bytes(rng.randrange(64))
        case 3:
            tensor.data_location = 1
            for key in ("location", "offset", "length"):
                tensor.external_data.add(
                    key=key, value=rng.choice((*NAMES, "/dev/zero", "/etc/passwd", "-1", str(1 << 60)))
                )
        case 4:
            model.graph.initializer.add().CopyFrom(tensor)
        case 5:
            tensor.name = _value_name(rng, model)


def _reset(rng: Random, model: onnx.ModelProto) -> None:
    node = _node(rng, model)
    if node.attribute and rng.random() < 0.7:
        attribute = rng.choice(node.attribute)
        match rng.randrange(5):
            case 0:
                attribute.i = rng.choice(HUGE)
            case 1 if attribute.ints:
                attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(HUGE)
            case 2:
                attribute.ints.extend([rng.choice(HUGE)] * rng.choice((1, 3, 3000)))
            case 3:
                attribute.type = rng.choice(range(15))
            case 4:
                node.attribute.add().CopyFrom(attribute)
    else:
        name = rng.choice(
            ("axis", "axes", "pads", "strides", "kernel_shape", "group", "perm", "to", "num_outputs", "split")
        )
        value = rng.choice((*HUGE[:7], [rng.choice(HUGE[:7]) for _ in range(rng.randint(1, 9))]))
        node.attribute.add().CopyFrom(helper.make_attribute(name, value))


def _repeat(rng: Random, model: onnx.ModelProto) -> None:
    match rng.randrange(4):
        case 0:
            model.graph.node.add().CopyFrom(_node(rng, model))
        case 1:
            model.graph.node.remove(_node(rng, model))
        case 2:
            model.graph.output.add().name = _value_name(rng, model)
        case 3:
            model.opset_import.add(domain=rng.choice(("", "com.microsoft", *NAMES)), version=rng.choice(HUGE))


def _nest(rng: Random, model: onnx.ModelProto) -> None:
    """A node becomes the branch of an If, the body of a Loop, or a call of a function, some levels deep."""
    inner = onnx.GraphProto(name="inner")
    inner.node.add().CopyFrom(_node(rng, model))
    inner.output.add().name = inner.node[0].output[0] if inner.node[0].output else ""
    for depth in range(rng.choice((1, 2, 20))):
        outer = onnx.GraphProto(name=f"level {depth}")
        node = outer.node.add(op_type=rng.choice(("If", "If", "Loop", "Scan")), output=[f"level{depth}"])
        node.input.extend([_value_name(rng, model)] * rng.randint(0, 3))
        for name in ("then_branch", "else_branch") if node.op_type == "If" else ("body",):
            node.attribute.add(name=name, type=onnx.AttributeProto.GRAPH).g.CopyFrom(inner)
        outer.output.add().name = f"level{depth}"
        inner = outer if depth < 6 or rng.random() < 0.8 else inner
        if inner.ByteSize() > LARGE_BYTES:
            break
    model.graph.node.add().CopyFrom(inner.node[0])


_EDITS: tuple[Callable[[Random, onnx.ModelProto], None], ...] = (
    _rename, _rewire, _rewire, _resize, _resize, _restore, _restore, _reset, _reset, _repeat, _nest,
)  # fmt: skip


# --- other files


_Structured = Callable[[Random, bytes], bytes]


def _other_files(folder: Path) -> list[tuple[str, Path, list[str], bytes, _Structured | None]]:
    """(kind, path, command that reads it, sound content, how its values are damaged)."""
    model = folder / "sound.onnx"
    model.write_bytes(_own_model())
    plan, baseline, history = folder / "plan.json", folder / "spillprof-baseline.json", folder / "history.db"
    rows_json, rows_csv, config, target = (
        folder / n for n in ("rows.json", "rows.csv", "spillprof.toml", "target.toml")
    )
    sound_config = (
        f'strategy = "lru"\nbaseline = "{baseline.as_posix()}"\n'
        '[targets.small]\nsram = "16KiB"\ndram-read = "4GB/s"\n'
        '[gate]\nmax-increase = "1%"\nmin-increase = "64KiB"\nmetrics = ["spill-bytes", "latency"]\n'
        f'[[models]]\npath = "{model.as_posix()}"\ntargets = ["small"]\nmax-spill = "24MiB"\n'
    )
    config.write_text(sound_config)
    target.write_text('name = "mine"\nsram = "16KiB"\ndram-read = "4GB/s"\ndram-write = "3GB/s"\n')
    gate = ["gate", "--config", str(config), "-q"]
    sweep = ["sweep", str(model), "--sram", "8KiB,16KiB", "--strategy", "lru", "--jobs", "1", "-q"]
    _quiet(["analyze", str(model), "--sram", "8KiB", "--strategy", "lru", "--plan", str(plan), "--no-report", "-q"])
    _quiet([*gate, "--update"])
    _quiet([*gate, "--record", str(history), "--commit", "a"])
    _quiet([*gate, "--record", str(history), "--commit", "b"])
    _quiet([*sweep, "-o", str(rows_json), "-o", str(rows_csv)])
    found: list[tuple[str, Path, list[str], bytes, _Structured | None]] = []
    verify = ["verify", str(model), str(plan), "--sram", "8KiB", "-q"]
    for kind, path, arguments, structured in (
        ("plan", plan, verify, _damaged_json),
        ("baseline", baseline, gate, _damaged_json),
        ("config", config, gate, None),
        ("target", target, ["analyze", str(model), "--target", str(target), "--no-report", "-q"], None),
        (
            "sweep rows",
            rows_json,
            [*sweep, "--resume", str(rows_json), "-o", str(folder / "again.json")],
            _damaged_json,
        ),
        ("sweep rows", rows_csv, [*sweep, "--resume", str(rows_csv), "-o", str(folder / "again.csv")], _damaged_csv),
        ("history", history, ["history", str(history), "-q"], _damaged_sqlite),
    ):
        if path.is_file():
            found.append((kind, path, arguments, path.read_bytes(), structured))
        else:
            print(f"no sound {kind}: not fuzzed", file=sys.stderr)
    return found


def _own_model() -> bytes:
    nodes = [helper.make_node("Relu", ["x"], ["a"], name="a"), helper.make_node("Neg", ["x"], ["b"], name="b"),
             helper.make_node("Add", ["a", "b"], ["c"], name="c"),
             helper.make_node("MatMul", ["c", "w"], ["d"], name="d"),
             helper.make_node("Sub", ["d", "a"], ["y"], name="e")]  # fmt: skip
    x, y = (helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [32, 32]) for n in "xy")
    w = helper.make_tensor("w", onnx.TensorProto.FLOAT, [32, 32], bytes(4096), raw=True)
    graph = helper.make_graph(nodes, "own", [x], [y], [w])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()


def _quiet(arguments: list[str]) -> None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(_Stream()) as err:
        code = run(arguments)
    if code not in (0, 1):
        print(f"{' '.join(arguments)} gives {code}: {err.getvalue()}", file=sys.stderr)


ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1,
    1 << 40,
    1 << 70,
    1.5,
    1e400,
    float("nan"),
    "",
    "x",
    "\x1b[2J",
    "\u202e",
    [],
    [[]],
    {},
    {"a": 1},
)


def _damaged_json(rng: Random, content: bytes) -> bytes:
    value = json.loads(content)
    for _ in range(rng.randint(1, 3)):
        inner = value
        while isinstance(inner, dict | list) and inner:
            key = rng.choice(list(inner) if isinstance(inner, dict) else range(len(inner)))
            if not isinstance(inner[key], dict | list) or not inner[key] or rng.random() < 0.3:
                match rng.randrange(3):
                    case 0:
                        inner[key] = copy.deepcopy(rng.choice(ODD))
                    case 1:
                        del inner[key]
                    case 2 if isinstance(inner[key], int):
                        inner[key] += rng.choice((-1, 1, 64, 3))
                break
            inner = inner[key]
    text = json.dumps(value)
    return ("[" * 100_000 + text if rng.random() < 0.02 else text).encode()


def _damaged_csv(rng: Random, content: bytes) -> bytes:
    rows = list(csv.reader(content.decode().splitlines()))
    row = rng.choice(rows)
    if row:
        row[rng.randrange(len(row))] = rng.choice(("", "-1", "nan", "1e999", "9" * 5000, "=1+1", "\x1b", "x"))
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def _damaged_sqlite(rng: Random, content: bytes) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "h.db"
        path.write_bytes(content)
        with contextlib.closing(sqlite3.connect(path)) as base, contextlib.suppress(sqlite3.Error), base:
            column = rng.choice(("commit_id", "model", "verdict", "config", "spill_bytes", "latency_ns"))
            value = rng.choice((0, -1, 1.5, "x", "\x1b[2J", b"\xff", "{", 1 << 62, None))
            sql = rng.choice(
                (f"UPDATE runs SET {column} = ?", f"ALTER TABLE runs DROP COLUMN {column}", "DROP TABLE runs",
                 "DELETE FROM runs", "PRAGMA user_version = 99")
            )  # fmt: skip
            base.execute(sql, (value,) if "?" in sql else ())
        return path.read_bytes()


# --- measuring


class _Stream(io.StringIO):
    """A stream as the command line finds it: text, encodable or not."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return False


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _slowness() -> float:
    """How many processes wait for each processor: a time limit on a busy machine is no limit on the work."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def _late(*_: object) -> None:
    raise TimeoutError("the case does not end")


def models_in(folder: Path | None) -> list[bytes]:
    """Small models to damage: those of a folder, and one of our own."""
    found = [] if folder is None else [p for p in sorted(folder.rglob("*.onnx")) if p.is_file()]
    return [_own_model(), *(p.read_bytes() for p in found if 0 < p.stat().st_size <= LARGE_BYTES)]


def main() -> int:
    """Run cases until the time is up; 1 if one of them broke a rule."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", type=Path, help="folder of .onnx files to damage")
    parser.add_argument("--keep", type=Path, help="folder for the cases that break a rule")
    args = parser.parse_args()
    os.environ["NO_COLOR"] = "1"
    signal.signal(signal.SIGALRM, _late)
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
