"""The configuration file of a project: how it is found, read and checked.

It is ``spillprof.toml``, or ``[tool.spillprof]`` in ``pyproject.toml``; the nearest upwards wins, files are not merged.
A setting has the name of its option, without the leading dashes.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spillprof.frontends.targets import open_target, resolve_path
from spillprof.ir.errors import UsageError
from spillprof.ir.graph import Bindings
from spillprof.ir.metric import Budgets
from spillprof.ir.nearest import nearest
from spillprof.ir.side_files.kinds import CONFIGURATION
from spillprof.ir.side_files.opening import read_bytes, read_text
from spillprof.ir.side_files.toml_text import parse_toml
from spillprof.ir.target import MOST_PARENTS, Target, builtin_target_names

if TYPE_CHECKING:
    from spillprof.cli.config_keys import SettingValue

_DEFAULT_BASELINE = "spillprof-baseline.json"
_FILE_NAMES = ("spillprof.toml", "pyproject.toml")
"""File names in the order in which each folder is searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """A model that the gate judges."""

    path: str  # as written, relative to the file
    name: str  # what baselines call it: the path unless the file says otherwise
    line: int  # of the file, from 1
    bindings: Bindings = field(default_factory=Bindings)
    targets: tuple[str, ...] = ()  # empty: the target of the options
    budgets: Budgets = field(default_factory=Budgets)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A checked configuration file; the defaults where there is no file."""

    path: Path | None = None
    settings: Mapping[str, "SettingValue"] = field(default_factory=dict)
    gate: Mapping[str, "SettingValue"] = field(default_factory=dict)
    targets: Mapping[str, Target] = field(default_factory=dict)
    models: tuple[ModelEntry, ...] = ()

    @property
    def folder(self) -> Path:
        """The folder that paths in the file are relative to; without a file, the working folder."""
        return self.path.parent if self.path else Path()

    @property
    def baseline(self) -> Path:
        """The path of the baseline."""
        return self.folder / str(self.settings.get("baseline", _DEFAULT_BASELINE))

    def target(self, name: str) -> Target:
        """The target of that name: of the file, built in, or a TOML file. ``UsageError`` if there is none."""
        if name in self.targets:
            return self.targets[name]
        try:
            return open_target(name)
        except UsageError as error:
            near = nearest(name, self.targets)
            raise UsageError(
                error.message, where=error.where, hint=f"did you mean '{near[0]}'?" if near else error.hint
            ) from None


def load_config(path: Path | None = None, *, start: Path | None = None) -> Config:
    """The file at ``path``, else the nearest one from ``start`` upwards, else an empty configuration.

    ``UsageError`` if it cannot be read, or has an unknown key or a wrong value.
    """
    found = path if path is not None else find_config(start or Path.cwd())
    if found is None:
        return Config()
    return parse_config(read_text(found, CONFIGURATION), found)


def find_config(start: Path) -> Path | None:
    """The nearest file with settings of spillprof in ``start`` or a folder above it."""
    for folder in (start.absolute(), *start.absolute().parents):
        for name in _FILE_NAMES:
            path = folder / name
            if os.path.isfile(path) and (name != "pyproject.toml" or _is_ours(path)):
                return path
    return None


def parse_config(text: str, path: Path) -> Config:
    """The configuration in TOML text. ``path`` decides which table is read, and is named in errors."""
    from spillprof.cli.config_keys import FILE_SETTINGS, GATE_SETTINGS, SETTINGS  # costly, and of no use without a file

    document = parse_toml(text, CONFIGURATION, str(path))
    table, prefix = document, ""
    if path.name == "pyproject.toml":
        table, prefix = _tool_table(document), "tool.spillprof"
    top = _Section(path=path, name=prefix, table=table)
    settings = top.read(SETTINGS, besides=("targets", "gate", "models"))
    target = settings.get("target")
    if isinstance(target, str):
        settings["target"] = resolve_path(target, path.parent)
    settings |= {key: str(path.parent / str(settings[key])) for key in FILE_SETTINGS if key in settings}
    targets = _targets(top)
    config = Config(
        path=path,
        settings=settings,
        gate=top.section("gate").read(GATE_SETTINGS),
        targets=targets,
        models=_models(top, _header_lines(text)),
    )
    _check_names(config)
    return config


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    """A table of the file, and its name in errors."""

    path: Path
    name: str
    table: Any

    def error(self, message: str, key: str = "", hint: str | None = None) -> UsageError:
        where = f"{self.path}: [{self.name}]" if self.name else str(self.path)
        return UsageError(message, where=(f"{where} {key}".rstrip(),), hint=hint)

    def section(self, key: str) -> "_Section":
        name = f"{self.name}.{key}" if self.name else key
        return _Section(path=self.path, name=name, table=self.mapping().get(key, {}))

    def mapping(self) -> dict[str, Any]:
        if not isinstance(self.table, dict):
            raise self.error("this is no table", hint="write it like [tool.spillprof.gate]")
        return self.table

    def read(self, readers: Mapping[str, Callable[[Any], Any]], *, besides: Iterable[str] = ()) -> dict[str, Any]:
        """The values of all keys. ``UsageError`` names file and key of an unknown key or a wrong value."""
        values: dict[str, Any] = {}
        known = (*readers, *besides)
        for key, value in self.mapping().items():
            if key in readers:
                try:
                    values[key] = readers[key](value)
                except UsageError as error:
                    raise self.error(error.message, key, error.hint) from None
            elif key not in known:
                near = nearest(key, known, cutoff=0.4)
                hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(known)}"
                raise self.error(f"unknown key '{key}'", key, hint)
        return values


def _is_ours(path: Path) -> bool:
    """Whether a pyproject.toml has settings of spillprof. An unreadable one that does not name spillprof is ignored."""
    try:
        text = read_bytes(path, CONFIGURATION).decode("utf-8", errors="replace")
    except UsageError:
        return False
    if "spillprof" not in text:
        return False
    try:
        return bool(_tool_table(parse_toml(text, CONFIGURATION, str(path))))
    except UsageError:
        return "tool.spillprof" in text  # so that the error is reported


def _tool_table(document: Mapping[str, Any]) -> Any:
    tools = document.get("tool", {})
    return tools.get("spillprof", {}) if isinstance(tools, dict) else {}


def _targets(top: _Section) -> dict[str, Target]:
    """Each named target, resolved over the target that it inherits from."""
    from spillprof.cli.config_keys import TARGET_FIELDS, TARGET_KEYS

    tables = top.section("targets")
    resolved: dict[str, Target] = {}

    def resolve(name: str, chain: tuple[str, ...]) -> Target:
        if name in resolved:
            return resolved[name]
        section = tables.section(name)
        if len(chain) > MOST_PARENTS + 1:
            raise section.error(f"target '{chain[0]}' inherits through more than {MOST_PARENTS} others", "inherit")
        values = section.read(TARGET_KEYS)
        parent_name = values.pop("inherit", "generic-npu")
        if parent_name in chain and parent_name not in builtin_target_names():
            raise section.error(f"target '{name}' inherits from itself", "inherit", "inherit from a built-in target")
        if parent_name in tables.mapping() and parent_name not in chain:
            parent = resolve(parent_name, (*chain, parent_name))
        else:
            try:
                parent = open_target(resolve_path(parent_name, top.path.parent))
            except UsageError as error:
                raise section.error(error.message, "inherit", error.hint) from None
        changes = {TARGET_FIELDS[key]: value for key, value in values.items()}
        own_sources = {**dict.fromkeys(changes, top.path.name), **changes.pop("sources", {})}
        try:
            target = parent.with_overrides(**changes)
        except UsageError as error:  # each field is valid, but not their combination
            raise section.error(error.message, hint=error.hint) from None
        resolved[name] = target.with_overrides(name=name, sources={**target.sources, **own_sources})
        return resolved[name]

    for name in tables.mapping():
        resolve(name, (name,))
    return resolved


def _models(top: _Section, lines: list[int]) -> tuple[ModelEntry, ...]:
    from spillprof.cli.config_keys import BUDGETS, MODEL_KEYS

    tables = top.mapping().get("models", [])
    section = top.section("models")
    if not isinstance(tables, list):
        raise section.error("models are a list of tables", hint="write each as [[tool.spillprof.models]]")
    entries = []
    for index, table in enumerate(tables):
        values = _Section(path=top.path, name=section.name, table=table).read(MODEL_KEYS)
        if "path" not in values:
            raise section.error(f"model {index + 1} has no path", "path", 'write path = "model.onnx"')
        entries.append(
            ModelEntry(
                path=values["path"],
                name=values.get("name", Path(values["path"]).as_posix()),
                line=lines[index] if index < len(lines) else 1,
                bindings=Bindings(**{key: values[key] for key in Bindings.__dataclass_fields__ if key in values}),
                targets=values.get("targets", ()),
                budgets=Budgets(**{name: values[key] for key, (name, _) in BUDGETS.items() if key in values}),
            )
        )
    return tuple(entries)


def _check_names(config: Config) -> None:
    """Check that each pair of model and target occurs once, as baselines need, and that each target exists."""
    seen: set[tuple[str, str]] = set()
    for entry in config.models:
        where = (f"{config.path}:{entry.line}: {entry.name}",)
        for target in entry.targets or ("",):
            if (entry.name, target) in seen:
                raise UsageError(f"model '{entry.name}' is listed twice", where=where, hint="give one of them a name")
            seen.add((entry.name, target))
            if target:
                try:
                    config.target(target)
                except UsageError as error:
                    raise UsageError(error.message, where=where, hint=error.hint) from None


def _header_lines(text: str) -> list[int]:
    """The line of each ``[[models]]`` header, from 1, for messages about a model."""
    header = re.compile(r"\s*\[\[\s*(?:tool\s*\.\s*spillprof\s*\.\s*)?models\s*\]\]")
    return [number for number, line in enumerate(text.splitlines(), start=1) if header.match(line)]
