"""Side files made to attack: nested, with endless numbers, keys and chains, or large; by the suffix of the file."""

import contextlib
import re
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random

from fuzzing.raw_bytes import damaged_bytes

REFUSED = frozenset({2})
Attack = tuple[str, bytes, bool]
"""(what was done, the file, whether nothing but a refusal is right)."""

_DEPTHS = (65, 200, 990, 5_000, 100_000)
_ENDLESS = ("9" * 5000, "1" + "0" * 400, "-" + "8" * 101, "0." + "3" * 5000)
_BEYOND = ("1e400", "-1E+999", "2.5e100")
_TOML_VALUES = (
    "[]", '["x"]', "[[1]]", "{}", "{ a = 1 }", "-1", "0", "1.5", "inf", "-inf", "nan", "1e300", "true", '""', '"x"',
    "2020-01-01", "07:32:00", '"\\u0000"', '"\\u202e"', "9" * 99, '"none"', '"1e300"', '"-1"',
)  # fmt: skip
_CELLS = ("", "-1", "nan", "inf", "1e999", "1e308", "9" * 400, "=1+1", "\x1b[2J", "x", "\u202e", "x" * 200_000)
_MOST_BYTES = 8 << 20  # of a file that grows


def attacked(rng: Random, content: bytes, suffix: str) -> Attack:
    """The file after one attack, or with its bytes damaged."""
    kinds: dict[str, tuple[Callable[[Random, str], Attack], ...]] = {
        ".json": (_json_nested, _json_endless, _json_constant, _json_repeated, _json_names),
        ".mpool": (_json_nested, _json_endless, _json_constant, _json_repeated, _json_names),
        ".toml": (_toml_nested, _toml_endless, _toml_dotted, _toml_value, _toml_chain, _repeated_lines),
        ".ini": (_ini_value, _ini_chain, _repeated_lines),
        ".csv": (_csv_cell, _csv_wide, _repeated_lines, _csv_quote),
    }
    if rng.random() < 0.25:
        return "bytes", damaged_bytes(rng, content), False
    if suffix == ".db":
        return _database(rng, content)
    return rng.choice(kinds[suffix])(rng, content.decode())


def _put(rng: Random, text: str, pattern: str, value: str) -> bytes:
    """The text with the value in place of one match; of its group ``it``, where it has one."""
    group = "it" if "?P<it>" in pattern else 0
    match = rng.choice([match for match in re.finditer(pattern, text) if match[group]])
    return (text[: match.start(group)] + value + text[match.end(group) :]).encode()


_JSON_NUMBER = r'"(?:[^"\\]|\\.)*"|(?P<it>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)'
"""A number, not one in a string."""


def _json_nested(rng: Random, text: str) -> Attack:
    depth = rng.choice(_DEPTHS)
    left, right = rng.choice((("[", "]"), ('{"a":', "}")))
    end = right * depth if rng.random() < 0.7 else ""
    return "nesting", _put(rng, text, _JSON_NUMBER, left * depth + "1" + end), True


def _json_endless(rng: Random, text: str) -> Attack:
    return "digits", _put(rng, text, _JSON_NUMBER, rng.choice(_ENDLESS + _BEYOND)), True


def _json_constant(rng: Random, text: str) -> Attack:
    return "constant", _put(rng, text, _JSON_NUMBER, rng.choice(("NaN", "Infinity", "-Infinity"))), True


def _json_repeated(rng: Random, text: str) -> Attack:
    value = rng.choice(("[],", "{},", "0,", '"",', "1.5,", '{"a":0},', "[[]],", '"\\u202e",'))
    count = rng.choice((1000, 100_000, _MOST_BYTES // len(value)))
    return "many values", _put(rng, text, _JSON_NUMBER, "[" + value * count + "0]"), False


def _json_names(rng: Random, text: str) -> Attack:
    name = rng.choice(('"\\ud800"', '"\\u0000"', '"' + "x" * 1_000_000 + '"', '"\\u001b[2J"', '""', '"__class__"'))
    return "names", _put(rng, text, r'"[^"\\]*"', name), False


def _toml_nested(rng: Random, text: str) -> Attack:
    depth = rng.choice(_DEPTHS)
    left, right = rng.choice((("[", "]"), ("{a=", "}")))
    value = left * depth + "1" + (right * depth if rng.random() < 0.7 else "")
    return "nesting", _put(rng, text, r"(?<== )[^\n]+", value), True


def _toml_endless(rng: Random, text: str) -> Attack:
    value = rng.choice((*_ENDLESS, "0x" + "f" * 50_000, "1_" * 200 + "1", "0b" + "1" * 4000))
    return "digits", _put(rng, text, r"(?<== )[^\n]+", value), True


def _toml_dotted(rng: Random, text: str) -> Attack:
    key = rng.choice((".", " . ")).join([rng.choice(("a", '"b"'))] * rng.choice((18, 500, 50_000)))
    line = rng.choice((f"{key} = 1", f"[{key}]", f"[[{key}]]", f"a = {{ {key} = 1 }}"))
    lines = text.splitlines()
    lines.insert(rng.randrange(len(lines) + 1), line)
    return "dotted keys", "\n".join(lines).encode(), True


def _toml_value(rng: Random, text: str) -> Attack:
    return "values", _put(rng, text, r"(?<== )[^\n]+", rng.choice(_TOML_VALUES)), False


def _toml_chain(rng: Random, text: str) -> Attack:
    length = rng.choice((17, 100, 1000))
    if "[targets" in text:
        links = "".join(f'[targets.t{i}]\ninherit = "t{i + 1}"\n' for i in range(length))
        return "chains", (text + f"\n{links}[targets.t{length}]\nsram = '1MB'\n").encode(), True
    parent = rng.choice(("absent.toml", "target.toml", ".", "/dev/zero", "pipe.toml", "", "generic-npu\\u0000"))
    return "chains", (f'inherit = "{parent}"\n' + text).encode(), True


def _ini_value(rng: Random, text: str) -> Attack:
    value = rng.choice((*_CELLS[:-1], "[x]", "%(x)s", "inherit", "0", "1e-320", "Axi9"))
    return "values", _put(rng, text, r"(?<==)[^\n]+", value), False


def _ini_chain(rng: Random, text: str) -> Attack:
    length = rng.choice((17, 100, 1000))
    name = "System_Config.Small_U55"
    links = "".join(f"[{name}{i}]\ninherit={name}{i + 1}\n" for i in range(length))
    return (
        "chains",
        (text.replace(f"[{name}]", f"[{name}]\ninherit={name}0") + links + f"[{name}{length}]\n").encode(),
        True,
    )


def _csv_cell(rng: Random, text: str) -> Attack:
    return "values", _put(rng, text, r"[^,\n]+", rng.choice(_CELLS)), False


def _csv_wide(rng: Random, text: str) -> Attack:
    return (
        "many cells",
        _put(rng, text, r"\n", rng.choice((",", ";", "\t")) * rng.choice((100, 1_000_000)) + "\n"),
        False,
    )


def _csv_quote(rng: Random, text: str) -> Attack:
    return "quotes", _put(rng, text, r"[^,\n]+", '"' + rng.choice(("", "\n" * 10_000, '""' * 50_000))), False


def _repeated_lines(rng: Random, text: str) -> Attack:
    lines = text.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    line = rng.choice((lines[at], "\n", "x\n"))
    lines.insert(at, line * rng.choice((1, 1000, min(300_000, _MOST_BYTES // len(line)))))
    return "many lines", "".join(lines).encode(), False


_ENDLESS_VIEW = (
    "CREATE VIEW runs AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS number, "
    "'c' AS commit_id, 'm' AS model, 't' AS target, 'ok' AS verdict, '{}' AS config, 's' AS model_sha256, "
    "1 AS spill_bytes, 1 AS latency_ns, 1 AS peak_live_bytes, 1 AS energy_pj FROM n"
)


def _database(rng: Random, content: bytes) -> Attack:
    what, statements, is_refused = rng.choice(
        (
            ("views", ("DROP TABLE runs", _ENDLESS_VIEW), True),
            ("views", ("ALTER TABLE runs RENAME TO r", "CREATE VIEW runs AS SELECT * FROM r"), True),
            ("triggers", ("CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END",), True),
            ("columns", ("ALTER TABLE runs ADD COLUMN more AS (spill_bytes * 2)",), True),
            ("columns", ("ALTER TABLE runs DROP COLUMN config",), True),
            ("columns", ("DROP TABLE runs", "CREATE TABLE other (a)"), True),
            ("values", ("UPDATE runs SET latency_ns = -1",), True),
            ("values", ("UPDATE runs SET spill_bytes = 'x'",), True),
            ("values", ("UPDATE runs SET energy_pj = 9223372036854775807",), False),
            ("values", ("UPDATE runs SET model = x'ff'",), True),
            ("values", ("UPDATE runs SET config = hex(zeroblob(1000000))",), False),
            ("values", ("PRAGMA user_version = 99",), False),
        )
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "h.db"
        path.write_bytes(content)
        with contextlib.closing(sqlite3.connect(path)) as base, base:
            for statement in statements:
                base.execute(statement)
        return what, path.read_bytes(), is_refused
