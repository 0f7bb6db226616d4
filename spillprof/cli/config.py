"""Configuration: what a project's own file says, and which file that is.

``spillprof.toml``, or ``[tool.spillprof]`` in ``pyproject.toml``; the nearest upwards wins, and files are not merged.
Settings carry the names of the options that they stand for, without the dashes in front.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spillprof.cli.config_keys import (
    BUDGETS,
    FILE_SETTINGS,
    GATE_SETTINGS,
    MODEL_KEYS,
    SETTINGS,
    TARGET_FIELDS,
    TARGET_KEYS,
    SettingValue,
)
from spillprof.frontends.targets import open_target, resolve_path
from spillprof.ir.errors import UsageError
from spillprof.ir.metric import Budgets
from spillprof.ir.nearest import nearest
from spillprof.ir.side_files.kinds import CONFIGURATION
from spillprof.ir.side_files.opening import read_bytes, read_text
from spillprof.ir.side_files.toml_text import parse_toml
from spillprof.ir.target import MOST_PARENTS, Target, builtin_target_names

DEFAULT_BASELINE = "spillprof-baseline.json"
FILE_NAMES = ("spillprof.toml", "pyproject.toml")
"""What is looked for in each folder; the first one found there counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """A model that the project watches."""

    path: str  # as written, relative to the file
    name: str  # what baselines call it: the path unless the file says otherwise
    line: int  # of the file, from 1
    dims: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    batch: int | None = None
    assume: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    branches: Mapping[str, str] = field(default_factory=dict)
    trips: Mapping[str, int] = field(default_factory=dict)
    targets: tuple[str, ...] = ()  # empty: the target of the options
    budgets: Budgets = field(default_factory=Budgets)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One file, checked; or nothing, where there is none."""

    path: Path | None = None
    settings: Mapping[str, SettingValue] = field(default_factory=dict)
    gate: Mapping[str, SettingValue] = field(default_factory=dict)
    targets: Mapping[str, Target] = field(default_factory=dict)
    models: tuple[ModelEntry, ...] = ()

    @property
    def folder(self) -> Path:
        """What paths in the file are relative to; the working folder without a file."""
        return self.path.parent if self.path else Path()

    @property
    def baseline(self) -> Path:
        """Where the baseline lies."""
        return self.folder / str(self.settings.get("baseline", DEFAULT_BASELINE))

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

    ``UsageError`` if it cannot be read, or says what nobody understands.
    """
    found = path if path is not None else find_config(start or Path.cwd())
    if found is None:
        return Config()
    return parse_config(read_text(found, CONFIGURATION), found)


def find_config(start: Path) -> Path | None:
    """The nearest file with settings of ours in ``start`` or a folder above it."""
    for folder in (start.absolute(), *start.absolute().parents):
        for name in FILE_NAMES:
            path = folder / name
            if os.path.isfile(path) and (name != "pyproject.toml" or _is_ours(path)):
                return path
    return None


def parse_config(text: str, path: Path) -> Config:
    """The configuration in TOML text; ``path`` says how to read it, and is named in errors."""
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
    """A table of the file, and what errors call it."""

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
        """Every key by its reader. An unknown key, or a value that its reader refuses, is an error that names both."""
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
    """Whether a pyproject.toml has settings of ours. One that cannot be read, and does not name us, is passed by."""
    try:
        text = read_bytes(path, CONFIGURATION).decode("utf-8", errors="replace")
    except UsageError:
        return False
    if "spillprof" not in text:
        return False
    try:
        return bool(_tool_table(parse_toml(text, CONFIGURATION, str(path))))
    except UsageError:
        return "tool.spillprof" in text  # found, so that the error is told


def _tool_table(document: Mapping[str, Any]) -> Any:
    tools = document.get("tool", {})
    return tools.get("spillprof", {}) if isinstance(tools, dict) else {}


def _targets(top: _Section) -> dict[str, Target]:
    """Each named target, on top of the one that it inherits from."""
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
        except UsageError as error:  # each field is sound, but not all of them together
            raise section.error(error.message, hint=error.hint) from None
        resolved[name] = target.with_overrides(name=name, sources={**target.sources, **own_sources})
        return resolved[name]

    for name in tables.mapping():
        resolve(name, (name,))
    return resolved


def _models(top: _Section, lines: list[int]) -> tuple[ModelEntry, ...]:
    tables = top.mapping().get("models", [])
    section = top.section("models")
    if not isinstance(tables, list):
        raise section.error("models are a list of tables", hint="write each as [[tool.spillprof.models]]")
    entries = []
    for index, table in enumerate(tables):
        values = _Section(path=top.path, name=section.name, table=table).read(MODEL_KEYS)
        if "path" not in values:
            raise section.error(f"model {index + 1} has no path", "path", 'write path = "model.onnx"')
        budgets = {name: values[key] for key, name in BUDGETS.items() if key in values}
        entries.append(
            ModelEntry(
                path=values["path"],
                name=values.get("name", Path(values["path"]).as_posix()),
                line=lines[index] if index < len(lines) else 1,
                dims=values.get("dims", {}),
                shapes=values.get("shapes", {}),
                batch=values.get("batch"),
                assume=values.get("assume", {}),
                branches=values.get("branches", {}),
                trips=values.get("trips", {}),
                targets=values.get("targets", ()),
                budgets=Budgets(**budgets),
            )
        )
    return tuple(entries)


def _check_names(config: Config) -> None:
    """Baselines tell entries apart by model and target: no pair may occur twice, and each target must exist."""
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
    """Line of each ``[[models]]`` header, from 1: where messages about a model point to."""
    header = re.compile(r"\s*\[\[\s*(?:tool\s*\.\s*spillprof\s*\.\s*)?models\s*\]\]")
    return [number for number, line in enumerate(text.splitlines(), start=1) if header.match(line)]
