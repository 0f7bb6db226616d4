"""Sound files of every kind but models, and how their values are damaged."""

import contextlib
import copy
import csv
import io
import json
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from fuzzing.models import own_model
from fuzzing.streams import Stream
from spillprof.cli import run

Damage = Callable[[Random, bytes], bytes]

MPOOL = {
    "memory": {
        "mempools": [
            {
                "fname": name.upper(),
                "name": name,
                "prop": {"rights": "ACC_WRITE", "throughput": rate, "latency": "LOW", "byteWidth": 8, "freqRatio": 1},
                "offset": {"value": "0x34200000", "magnitude": "BYTES"},
                "size": {"value": "16", "magnitude": "KBYTES"},
            }
            for name, rate in (("npuram", "HIGH"), ("xspi", "LOW"))
        ]
    }
}
VELA_INI = """[System_Config.Small_U55]
core_clock=400e6
axi0_port=Sram
axi1_port=Dram
Dram_clock_scale=0.125
Dram_burst_length=128
Dram_read_latency=64
Dram_write_latency=32
Dram_max_reads=2
Dram_max_writes=2
[Memory_Mode.Shared_Sram]
const_mem_area=Axi1
arena_mem_area=Axi1
cache_mem_area=Axi0
arena_cache_size=16384
"""
RUNTIME_PROFILE = json.dumps(
    [{"cat": "Node", "name": f"{name}_kernel_time", "dur": 7, "ts": 1, "args": {"op_name": "Relu"}} for name in "abcde"]
)
BUFFERS = "id,lower,upper,size\n" + "".join(f"b{i},{i},{i + 3},{64 * (i % 5 + 1)}\n" for i in range(20))
TIMES = "name,time_us\n" + "".join(f"{name},3.5\n" for name in "abcde")
LAYERS = "Original Operator,NPU,SRAM AC,Op Cycles,Name\n" + "".join(f"CONV,5,9,9,{name}\n" for name in "abcde")
TARGET = """name = "mine"
sram_bytes = 16384
dram_read_bytes_per_s = 4e9
dram_write_bytes_per_s = 3e9
dram_read_setup_s = 1e-6
dram_write_setup_s = 1e-6
sram_bytes_per_s = 64e9
macs_per_s = { default = 1e12 }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sound:
    """A file that a command reads."""

    kind: str
    path: Path
    arguments: list[str]
    content: bytes
    damage: Damage | None = None  # of values; bytes can always be damaged


def sound_files(folder: Path) -> Iterator[Sound]:
    """One of each kind, written by the tool itself where it writes such files; each is read before it is damaged."""
    for sound in _made(folder):
        _quiet(sound.arguments)
        yield sound


def _made(folder: Path) -> Iterator[Sound]:
    model = folder / "sound.onnx"
    model.write_bytes(own_model())

    def given(name: str, text: str) -> Path:
        (folder / name).write_text(text, "utf-8")
        return folder / name

    def made(name: str, arguments: list[str]) -> Path:
        _quiet([*arguments, str(folder / name)])
        return folder / name

    def sound(kind: str, path: Path, arguments: list[str], damage: Damage | None = None) -> Sound:
        return Sound(kind=kind, path=path, arguments=arguments, content=path.read_bytes(), damage=damage)

    small = [str(model), "--sram", "8KiB", "--strategy", "lru", "-q"]
    analyze = ["analyze", *small, "--no-report"]
    plan = made("plan.json", [*analyze, "--plan"])
    yield sound("plan", plan, ["verify", str(model), str(plan), "--sram", "8KiB", "-q"], _damaged_json)
    profile = made("profile.json", ["analyze", *small, "--events", "-o"])
    pages = [option for name in ("p.html", "p.md", "p.csv") for option in ("-o", str(folder / name))]
    yield sound("profile", profile, ["report", str(profile), "-q", *pages], _damaged_json)
    yield sound("profile to diff", profile, ["diff", str(model), str(profile), "--sram", "8KiB", "-q"], _damaged_json)
    check = ["verify", str(model), "--certificate", str(profile), "--sram", "8KiB", "-q"]
    yield sound("certificate", profile, check, _damaged_json)

    baseline = folder / "spillprof-baseline.json"
    config = given(
        "project.toml",  # by the name that is looked for, it would be read by every other command, too
        f'strategy = "lru"\nbaseline = "{baseline.as_posix()}"\n'
        '[targets.small]\nsram = "16KiB"\ndram-read = "4GB/s"\n'
        '[gate]\nmax-increase = "1%"\nmin-increase = "64KiB"\nmetrics = ["spill-bytes", "latency"]\n'
        f'[[models]]\npath = "{model.as_posix()}"\ntargets = ["small"]\nmax-spill = "24MiB"\n',
    )
    gate = ["gate", "--config", str(config), "-q"]
    _quiet([*gate, "--update"])
    yield sound("baseline", baseline, [*gate, "--baseline", str(baseline)], _damaged_json)
    yield sound("config", config, gate)
    for commit in "ab":
        history = made("history.db", [*gate, "--commit", commit, "--record"])
    yield sound("history", history, ["history", str(history), "-q"], _damaged_sqlite)

    sweep = ["sweep", str(model), "--sram", "8KiB,16KiB", "--strategy", "lru", "--jobs", "1", "-q"]
    for suffix, damage in (("json", _damaged_json), ("csv", _damaged_csv)):
        rows = made(f"rows.{suffix}", [*sweep, "-o"])
        again = [*sweep, "--resume", str(rows), "-o", str(folder / f"again.{suffix}")]
        yield sound("sweep rows", rows, again, damage)

    buffers = given("buffers.csv", BUFFERS)
    yield sound("buffers", buffers, ["pack", str(buffers), "--sram", "1KiB", "--seconds", "1", "-q"], _damaged_csv)
    times = given("times.csv", TIMES)
    yield sound("times", times, [*analyze, "--op-times", str(times)], _damaged_csv)
    layers = given("layers.csv", LAYERS)
    yield sound("times of Vela", layers, [*analyze, "--target", "ethos-u65", "--op-times", str(layers)], _damaged_csv)
    runtime = given("times.json", RUNTIME_PROFILE)
    yield sound("runtime profile", runtime, [*analyze, "--op-times", str(runtime)], _damaged_json)
    target, pools, vela = given("target.toml", TARGET), given("b.mpool", json.dumps(MPOOL)), given("v.ini", VELA_INI)
    for path, damage in ((target, None), (pools, _damaged_json), (vela, None)):
        yield sound(f"target {path.suffix}", path, [*analyze, "--target", str(path)], damage)


def _quiet(arguments: list[str]) -> None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(Stream()) as err:
        code = run(arguments)
    if code not in (0, 1):
        raise RuntimeError(f"nothing damaged yet, but {' '.join(arguments)} gives {code}: {err.getvalue()}")


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
