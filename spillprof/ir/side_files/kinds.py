"""Kinds of side files: their name in errors, and their limits.

The limits lie far above what anybody writes, and low enough that a file of that size is refused or read in bounded
memory and time.
"""

from dataclasses import dataclass

from spillprof.ir.errors import ModelError, PlanError, ProfileError, SpillprofError, UsageError

MOST_DEPTH = 64
"""Brackets inside each other. Ours nest less than ten deep."""

MOST_DIGITS = 100
"""Of one number: a double written out in full has 55 behind its point, and products of two stay within a float."""

MOST_DOTS = 16
"""Of one TOML key: ``tool.spillprof.targets.NAME.macs_per_s.default`` has five."""

_KIB, _MIB = 1 << 10, 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKind:
    """A kind of file and its limits."""

    what: str  # with its article: "the profile"
    most_bytes: int
    most_values: int = 1_000_000  # JSON values and keys, or cells of a table
    most_lines: int = 1_000_000  # of a table, or of sections
    error: type[SpillprofError] = UsageError
    hint: str | None = None  # how to get such a file


TARGET = FileKind(
    what="the target file", most_bytes=256 * _KIB, hint="it is TOML; 'spillprof info targets NAME' shows what one says"
)
VELA_INI = FileKind(what="the configuration of Vela", most_bytes=256 * _KIB, most_lines=5_000, hint="is it a vela.ini?")
MPOOL = FileKind(what="the file of memory pools", most_bytes=_MIB, hint="is it a .mpool file of ST Edge AI?")
CONFIGURATION = FileKind(
    what="the configuration", most_bytes=_MIB, hint="it is TOML, with settings like sram = '12MB'; see docs/ci.md"
)
BASELINE = FileKind(
    what="the baseline",
    most_bytes=64 * _MIB,
    most_values=4_000_000,
    hint="delete it, and make a new one with 'spillprof gate --update'",
)
TIMES = FileKind(
    what="the file of times",
    most_bytes=128 * _MIB,
    most_values=4_000_000,
    hint="profile fewer runs, or keep the events of nodes alone",
)
SWEEP = FileKind(
    what="the result of a sweep",
    most_bytes=128 * _MIB,
    most_values=8_000_000,
    hint="give the .json or .csv that an earlier sweep wrote",
)
BUFFERS = FileKind(
    what="the table of buffers",
    most_bytes=64 * _MIB,
    most_values=8_000_000,
    error=ModelError,
    hint="the first line is id,lower,upper,size; a buffer is live in [lower, upper)",
)
PLAN = FileKind(
    what="the plan",
    most_bytes=256 * _MIB,
    most_values=16_000_000,
    error=PlanError,
    hint="'spillprof analyze MODEL --plan FILE.json' writes one",
)
CERTIFICATE = FileKind(
    what="the certificate",
    most_bytes=512 * _MIB,
    most_values=32_000_000,
    error=PlanError,
    hint="'spillprof analyze MODEL -o FILE.json' writes one",
)
PROFILE = FileKind(
    what="the profile",
    most_bytes=512 * _MIB,
    most_values=32_000_000,
    error=ProfileError,
    hint="'spillprof analyze MODEL -o FILE.json' writes one",
)
HISTORY = FileKind(
    what="the history", most_bytes=512 * _MIB, hint="take the file from a backup, or record into a new one"
)
