"""History: a SQLite file with one row per model, target and commit; and the commits that changed a figure."""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from json import dumps, loads
from pathlib import Path
from typing import Any

from spillprof.ir.errors import UsageError
from spillprof.ir.metric import Metric
from spillprof.ir.side_files.kinds import HISTORY
from spillprof.ir.side_files.opening import check_regular
from spillprof.studies.fingerprint import without_defaults
from spillprof.studies.gate.values import FIGURE_OF, GateCheck

SCHEMA_VERSION = 1
_WAIT_S = 10
"""Timeout for another process that holds the file."""

_MOST_RUNS = 1_000_000
_MOST_TEXT = 1 << 20  # characters of one value
_MOST_TEXT_IN_ALL = 1 << 29
_TABLE = """
CREATE TABLE IF NOT EXISTS runs (
    number INTEGER PRIMARY KEY,     -- order of recording
    commit_id TEXT NOT NULL,
    model TEXT NOT NULL,
    target TEXT NOT NULL,
    verdict TEXT NOT NULL,
    config TEXT NOT NULL,           -- the fingerprint, as JSON
    model_sha256 TEXT NOT NULL,
    spill_bytes INTEGER NOT NULL,
    latency_ns INTEGER NOT NULL,
    peak_live_bytes INTEGER NOT NULL,
    energy_pj INTEGER NOT NULL,
    UNIQUE (model, target, commit_id)
)
"""
_NAMES = ("commit_id", "model", "target", "verdict", "config", "model_sha256", *FIGURE_OF.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """Figures of one model on one target at one commit."""

    commit: str
    model: str
    target: str
    verdict: str
    config: str
    model_sha256: str
    figures: tuple[int, ...]  # in the order of Metric: bytes, nanoseconds, bytes, picojoules

    def of(self, metric: Metric) -> int:
        """The figure of a metric."""
        return self.figures[list(Metric).index(metric)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSeries:
    """Runs of one model on one target, in order of recording."""

    model: str
    target: str
    runs: tuple[RecordedRun, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureStep:
    """A commit whose figure differs from the one recorded before."""

    commit: str
    previous: str
    before: int
    after: int
    reason: str  # what else changed: "model", "configuration" or "neither"


def record(path: Path, commit: str, checks: Iterable[GateCheck]) -> int:
    """Writes a row for each check with figures, replacing rows of the same commit. Returns their number."""
    rows = [
        (
            *map(_text, (commit, check.model, check.target, check.verdict)),
            dumps(dict(entry.config), sort_keys=True),
            entry.model_sha256,
            *(entry.totals.of(metric) for metric in FIGURE_OF),
        )
        for check in checks
        if (entry := check.entry) is not None
    ]
    replaced = ", ".join(f"{name} = excluded.{name}" for name in _NAMES[3:])
    with _opened(path) as connection, connection:
        connection.execute("BEGIN IMMEDIATE")  # takes the write lock before reading
        _check_recordable(connection, path)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute(_TABLE)
        connection.executemany(
            f"INSERT INTO runs ({', '.join(_NAMES)}) VALUES ({', '.join('?' * len(_NAMES))}) "
            f"ON CONFLICT (model, target, commit_id) DO UPDATE SET {replaced}",
            rows,
        )
    return len(rows)


def check_history(path: Path) -> None:
    """``UsageError`` if ``record`` could not add to the file. Called before the gate runs, which may take long."""
    if os.path.lexists(path):
        with _opened(path) as connection:
            _check_recordable(connection, path)


def read_history(path: Path) -> tuple[RunSeries, ...]:
    """Series of the file, sorted by model and target. ``UsageError`` if it is no history."""
    if not os.path.lexists(path):
        raise UsageError(
            "there is no such history", where=(str(path),), hint=f"make it with 'spillprof gate --record {path}'"
        )
    with _opened(path) as connection:
        _check_schema(connection, path)
        rows = _rows(connection, path)
    rows.sort(key=lambda row: (row[2], row[3], row[0]))
    found: dict[tuple[str, str], list[RecordedRun]] = {}
    for _, commit, model, target, verdict, config, sha256, *figures in rows:
        run = RecordedRun(commit=commit, model=model, target=target, verdict=verdict, config=config,
                          model_sha256=sha256, figures=tuple(figures))  # fmt: skip
        found.setdefault((model, target), []).append(run)
    return tuple(RunSeries(model=model, target=target, runs=tuple(runs)) for (model, target), runs in found.items())


def steps(runs: Sequence[RecordedRun], metric: Metric) -> tuple[FigureStep, ...]:
    """Commits that changed the metric, oldest first."""
    return tuple(
        FigureStep(
            commit=now.commit,
            previous=old.commit,
            before=old.of(metric),
            after=now.of(metric),
            reason=_reason(old, now),
        )
        for old, now in pairwise(runs)
        if old.of(metric) != now.of(metric)
    )


def _text(name: str) -> str:
    """The name with lone surrogates escaped: file names need not be valid UTF-8."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def _reason(old: RecordedRun, now: RecordedRun) -> str:
    """What changed with the figure; the configuration first, since it makes figures incomparable."""
    if _settings(old.config) != _settings(now.config):
        return "configuration"
    return "model" if old.model_sha256 != now.model_sha256 else "neither"


def _settings(config: str) -> object:
    """The fingerprint without defaults, which earlier versions recorded too; a damaged one unchanged."""
    try:
        return without_defaults(loads(config))
    except (ValueError, RecursionError, AttributeError):
        return config


def _check_recordable(connection: sqlite3.Connection, path: Path) -> None:
    if connection.execute("PRAGMA user_version").fetchone()[0] not in (0, SCHEMA_VERSION):
        raise UsageError("the history was written by another version of spillprof", where=(str(path),))
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        _check_schema(connection, path)


def _check_schema(connection: sqlite3.Connection, path: Path) -> None:
    """``UsageError`` unless ``runs`` is a plain table of our columns: views and triggers could run arbitrary SQL."""
    foreign = connection.execute(
        "SELECT type, name FROM sqlite_master WHERE type IN ('view', 'trigger') OR sql LIKE 'CREATE VIRTUAL%' LIMIT 1"
    ).fetchone()
    if foreign is not None:
        kind, name = foreign
        raise UsageError(
            f"the history has a {kind} '{name}', which spillprof did not make", where=(str(path),), hint=HISTORY.hint
        )
    columns = connection.execute("PRAGMA table_xinfo(runs)").fetchall()
    if [(name, hidden) for _, name, *_, hidden in columns] != [(name, 0) for name in ("number", *_NAMES)]:
        raise UsageError("the file is no history of spillprof", where=(str(path),), hint=HISTORY.hint)


def _rows(connection: sqlite3.Connection, path: Path) -> list[tuple[Any, ...]]:
    """Checked rows: number, then ``_NAMES``. Not sorted in SQL: a damaged tree could yield rows forever."""
    rows: list[tuple[Any, ...]] = []
    texts: dict[str, str] = {}  # interned: most texts repeat
    n_characters = 0
    for row in connection.execute(f"SELECT number, {', '.join(_NAMES)} FROM runs LIMIT {_MOST_RUNS + 1}"):
        number, names, figures = row[0], row[1:7], row[7:]
        sound = isinstance(number, int) and all(isinstance(name, str) for name in names)
        if not sound or not all(isinstance(figure, int) and figure >= 0 for figure in figures):
            raise UsageError(
                "the history is damaged: a row has a value that is never recorded",
                where=(f"{path}: row {number!r}",),
                hint=HISTORY.hint,
            )
        n_characters += sum(len(name) for name in names if name not in texts)
        rows.append((number, *(texts.setdefault(name, name) for name in names), *figures))
        if len(rows) > _MOST_RUNS or n_characters > _MOST_TEXT_IN_ALL:
            raise UsageError("the history is too large", where=(f"{path}: more than {len(rows) - 1:,} rows fit",),
                             hint=HISTORY.hint)  # fmt: skip
    return rows


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    check_regular(path, HISTORY)
    try:
        with closing(sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_TEXT)
            connection.execute("PRAGMA trusted_schema = OFF")
            yield connection
    except sqlite3.Error as error:
        raise _unusable(path, error) from None
    except OverflowError:
        raise UsageError("a figure is larger than a history can hold", where=(str(path),)) from None
    except (UnicodeDecodeError, ValueError) as error:  # sqlite3 cannot decode its message about damaged names
        raise UsageError("the history cannot be used", where=(f"{path}: {error}",), hint=HISTORY.hint) from None


def _unusable(path: Path, error: sqlite3.Error) -> UsageError:
    where = (f"{path}: {error}",)
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:  # primary result code
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return UsageError(
                "the history is in use by another process",
                where=where,
                hint=f"another 'gate --record {path}', or a program that has it open: end it, then run this again",
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return UsageError(
                "the history cannot be opened", where=where, hint="both it and its folder must be writable"
            )
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
            return UsageError("the history cannot be written", where=where, hint="is there room on the disk?")
    return UsageError("the history cannot be used", where=where, hint=HISTORY.hint)
