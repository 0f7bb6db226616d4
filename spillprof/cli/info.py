"""``spillprof info``: the names that options accept, and what they mean."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from spillprof.cli.config_keys import GATE_SETTINGS, SETTINGS
from spillprof.cli.declaring import examples
from spillprof.cli.options import config_options, verbosity_options
from spillprof.cli.output import print_result
from spillprof.ir.errors import UsageError
from spillprof.ir.target import builtin_target_names
from spillprof.ir.units import format_energy, format_rate, format_size, format_size_exact, format_time
from spillprof.planning.placements import PLACEMENT_TABLE
from spillprof.planning.strategies import STRATEGY_TABLE
from spillprof.report.scales import field_text
from spillprof.report.table import Table
from spillprof.report.text import label

if TYPE_CHECKING:
    from spillprof.cli.config import Config
    from spillprof.ir.target import Target


@click.command(
    "info",
    epilog=examples(
        "spillprof info targets",
        "spillprof info targets ethos-u65",
        "spillprof info config",
    ),
)
@click.argument("topic", type=click.Choice(["targets", "strategies", "placements", "config"]))
@click.argument("name", required=False)
@config_options(lambda config: {})
@verbosity_options
def command(topic: str, name: str | None, **values: Any) -> None:
    """List the names that --target, --strategy or --placement accept; or each setting and where it comes from.

    With the NAME of a target (or its file): every field of it, and the source of each.
    Settings come from the command line, else from the environment, else from --config, else from the defaults.
    """
    config = values["config"]
    if name is not None:
        if topic != "targets":
            raise UsageError(f"'{topic}' takes no name", hint="only a target can be looked at: info targets NAME")
        print_result(_fields(config.target(name)))
        return
    if topic == "config":
        print_result(_settings(config))
        return
    tables = {
        "strategies": [(row.name, row.help) for row in STRATEGY_TABLE],
        "placements": [(row.name, row.help) for row in PLACEMENT_TABLE],
    }
    rows = tables[topic] if topic in tables else list(_targets(config))
    print_result(_aligned([(label(name, 40), text) for name, text in rows]))


def _targets(config: "Config") -> Iterable[tuple[str, str]]:
    for name in sorted({*builtin_target_names(), *config.targets}):
        yield name, _machine(config, name)


def _fields(target: "Target") -> str:
    """Each field, its value, and where it comes from."""
    rows = [
        (field, label(field_text(field, getattr(target, field)), 200), label(target.sources.get(field, "-"), 300))
        for field in target.__dataclass_fields__
        if field not in ("name", "sources")
    ]
    return _aligned(rows)


def _settings(config: "Config") -> str:
    """Each setting as commands resolve it without options, and where it comes from; then targets and models."""
    from spillprof.cli.analyze import command as analyze
    from spillprof.cli.gate import command as gate

    rows = [*_resolved(analyze, ["-"], config, SETTINGS), *_resolved(gate, [], config, GATE_SETTINGS, "gate.")]
    rows.insert(0, ("baseline", label(str(config.baseline)), _origin(config, "baseline" in config.settings)))
    rows += [(f"targets.{label(name)}", _machine(config, name), str(config.path)) for name in config.targets]
    rows += [
        (f"models.{label(e.name)}", ", ".join(map(label, e.targets)) or "-", f"{config.path}:{e.line}")
        for e in config.models
    ]
    return _aligned(rows)


def _resolved(
    command: click.Command, arguments: list[str], config: "Config", known: Iterable[str], prefix: str = ""
) -> list[tuple[str, str, str]]:
    """(name, value, source) of the command's options that are settings."""
    file = [] if config.path is None else ["--config", str(config.path)]
    rows = []
    names = click.get_current_context().help_option_names  # a command keeps the help option that it is first asked for
    with command.make_context(command.name, [*arguments, *file], help_option_names=names) as ctx:
        for parameter in command.params:
            key = (parameter.name or "").replace("_", "-")
            if key not in known or key == "baseline":
                continue
            source = ctx.get_parameter_source(parameter.name or "")
            from_file = source is ParameterSource.DEFAULT_MAP
            origin = _origin(config, from_file)
            if source is ParameterSource.ENVIRONMENT:
                origin = f"environment {parameter.envvar}"
            rows.append((f"{prefix}{key}", _shown(ctx.params[parameter.name or ""], parameter), origin))
    return rows


def _origin(config: "Config", from_file: bool) -> str:
    return str(config.path) if from_file else "default"


def _machine(config: "Config", name: str) -> str:
    target = config.target(name)
    read, write = format_rate(target.dram_read_bytes_per_s), format_rate(target.dram_write_bytes_per_s)
    return f"SRAM {format_size(target.sram_bytes)}, align {target.alignment_bytes} B, DRAM {read} / {write}"


def _shown(value: Any, parameter: click.Parameter) -> str:
    if value is None or value == ():
        return "-"
    if isinstance(value, tuple):
        return ", ".join(label(str(item)) for item in value)
    if parameter.metavar == "SIZE":
        return format_size_exact(value)
    if parameter.metavar == "RATE":
        return format_rate(value)
    if parameter.metavar == "TIME":
        return format_time(value)
    if parameter.metavar == "ENERGY":
        return format_energy(value)
    if parameter.metavar == "SHARE":
        return f"{float(100 * value):g}%"
    return ("on" if value else "off") if isinstance(value, bool) else label(str(value))


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(Table(cells=rows, align="l" * len(rows[0])).lines()) + "\n"
