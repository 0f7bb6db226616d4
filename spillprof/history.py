"""History: a SQLite file with one row for each model, target and commit, and where their figures changed."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from json import dumps, loads
from pathlib import Path

from spillprof.config_keys import Metric
from spillprof.errors import UsageError
from spillprof.gate.fingerprint import without_defaults
from spillprof.gate.values import Check

SCHEMA_VERSION = 1
_RECORD_ANEW = "take the file from a backup, or record into a new one"
_COLUMNS = {
    Metric.SPILL_BYTES: "spill_bytes",
    Metric.LATENCY: "latency_ns",
    Metric.PEAK: "peak_live_bytes",
    Metric.ENERGY: "energy_pj",
}
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
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
class Series:
    """One model on one target, in the order of recording."""

    model: str
    target: str
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A commit at which a figure is not what it was at the one recorded before."""

    commit: str
    previous: str
    before: int
    after: int
    reason: str  # "model", "configuration" or "neither": what else changed at that commit


def record(path: Path, commit: str, checks: Iterable[Check]) -> int:
    """Append a row for each check that has figures; how many. A commit that is recorded again is replaced."""
    rows = [
        (
            *map(_text, (commit, check.model, check.target, check.verdict)),
            dumps(dict(entry.config), sort_keys=True),
            entry.model_sha256,
            *(entry.totals.of(metric) for metric in _COLUMNS),
        )
        for check in checks
        if (entry := check.entry) is not None
    ]
    names = ["commit_id", "model", "target", "verdict", "config", "model_sha256", *_COLUMNS.values()]
    replaced = ", ".join(f"{name} = excluded.{name}" for name in names[3:])
    with _opened(path) as connection, connection:
        if connection.execute("PRAGMA user_version").fetchone()[0] not in (0, SCHEMA_VERSION):
            raise UsageError("the history was written by another version of spillprof", where=(str(path),))
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute(_TABLE)
        connection.executemany(
            f"INSERT INTO runs ({', '.join(names)}) VALUES ({', '.join('?' * len(names))}) "
            f"ON CONFLICT (model, target, commit_id) DO UPDATE SET {replaced}",
            rows,
        )
    return len(rows)


def read_history(path: Path) -> tuple[Series, ...]:
    """Every series of the file, by model and target. ``UsageError`` if it is no history."""
    if not path.is_file():
        raise UsageError(
            "there is no such history", where=(str(path),), hint=f"make it with 'spillprof gate --record {path}'"
        )
    columns = ", ".join(_COLUMNS.values())
    with _opened(path) as connection:
        rows = connection.execute(
            f"SELECT commit_id, model, target, verdict, config, model_sha256, {columns} FROM runs "
            "ORDER BY model, target, number"
        ).fetchall()
    found: dict[tuple[str, str], list[Run]] = {}
    for commit, model, target, verdict, config, sha256, *figures in rows:
        texts = (commit, model, target, verdict, config, sha256)
        if not (all(isinstance(t, str) for t in texts) and all(isinstance(f, int) for f in figures)):
            raise UsageError(
                "the history is damaged: a value has the wrong type", where=(str(path),), hint=_RECORD_ANEW
            )
        run = Run(commit=commit, model=model, target=target, verdict=verdict, config=config, model_sha256=sha256,
                  figures=tuple(figures))  # fmt: skip
        found.setdefault((model, target), []).append(run)
    return tuple(Series(model=model, target=target, runs=tuple(runs)) for (model, target), runs in found.items())


def steps(runs: Sequence[Run], metric: Metric) -> tuple[Step, ...]:
    """Where the metric changed, oldest first."""
    return tuple(
        Step(
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
    """The name without what UTF-8 cannot hold: names of files may be no text."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def _reason(old: Run, now: Run) -> str:
    """What changed with the figure. A new configuration makes figures that are not comparable, so it comes first."""
    if _settings(old.config) != _settings(now.config):
        return "configuration"
    return "model" if old.model_sha256 != now.model_sha256 else "neither"


def _settings(config: str) -> object:
    """What the fingerprint says; those recorded by earlier versions name defaults too. As it is if it is damaged."""
    try:
        return without_defaults(loads(config))
    except (ValueError, RecursionError, AttributeError):
        return config


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        with closing(sqlite3.connect(path, timeout=30)) as connection:
            yield connection
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the library cannot decode its own message on damaged names
        raise UsageError("the history cannot be used", where=(f"{path}: {error}",), hint=_RECORD_ANEW) from None
