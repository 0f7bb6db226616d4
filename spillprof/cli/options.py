"""Options that several commands share, and what their texts mean."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spillprof.cli.declaring import Decorated, Decorator, apply, completing, names_of_list, option, options_of, parsed
from spillprof.cli.invocation import Invocation
from spillprof.ir.errors import SpillprofError, UsageError
from spillprof.ir.target import builtin_target_names
from spillprof.ir.target_settings import parse_target_setting
from spillprof.ir.units import parse_rate, parse_size
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.options import PlanningOptions
from spillprof.planning.strategies import IDEAL, STRATEGIES

if TYPE_CHECKING:
    from spillprof.cli.config import Config

_MAX_DIGITS = 18  # of a dimension: more than any tensor has elements


def model_options(command: Decorated) -> Decorated:
    """MODEL, and what binds its open dimensions."""
    return apply(command, click.argument("model"), binding_options)


def binding_options(command: Decorated) -> Decorated:
    """What binds open dimensions."""
    return apply(
        command,
        option("--dim", "dims", multiple=True, callback=parsed(_dim), metavar="NAME=N",
               help='Size of a named dimension, or of an unnamed one: --dim "INPUT[AXIS]=N". Repeatable.'),
        shape_options,
    )  # fmt: skip


def shape_options(command: Decorated) -> Decorated:
    """Whole shapes of inputs and of tensors that cannot be inferred, and what control flow does."""
    return apply(
        command,
        option("--shape", "shapes", multiple=True, callback=parsed(_shape), metavar="INPUT=1x3x8x8",
               help="Shape of an input. Repeatable."),
        option("--batch", type=click.IntRange(min=1), metavar="N", help="First dimension of every input."),
        option("--assume", multiple=True, callback=parsed(_assumed), metavar="TENSOR=100x3",
               help="Shape of a tensor that depends on data, or that an unknown operator writes. Repeatable."),
        option("--branch", "branches", multiple=True, callback=parsed(_branch), metavar="IF=then|else",
               help="Branch that an If takes. Default: the one that needs more memory. Repeatable."),
        option("--trips", multiple=True, callback=parsed(_trips), metavar="[LOOP=]N",
               help="How often a Loop runs if the model does not say; without a name, every such Loop. Repeatable."),
    )  # fmt: skip


def target_options(command: Decorated) -> Decorated:
    """The target, and options that replace some of its fields."""
    return apply(
        command,
        option("--sram", callback=parsed(parse_size), metavar="SIZE",
               help="On-chip memory, e.g. 32MB. Default: the target's."),
        machine_options,
    )  # fmt: skip


def machine_options(command: Decorated) -> Decorated:
    """As ``target_options``, without the size of the SRAM."""
    return apply(
        command,
        option("--target", default="generic-npu", show_default=True, metavar="NAME|FILE",
               shell_complete=completing(_target_names),
               help="Built in, of --config, or a file: .toml, vela.ini:SYSTEM:MODE, .mpool; see 'info targets'."),
        option("--align", callback=parsed(parse_size), metavar="SIZE", help="Alignment of buffers, e.g. 64."),
        option("--dram-read", callback=parsed(parse_rate), metavar="RATE", help="Bandwidth, e.g. 60GB/s."),
        option("--dram-write", callback=parsed(parse_rate), metavar="RATE", help="Bandwidth, e.g. 60GB/s."),
        option("--set", "target_settings", multiple=True, callback=parsed(parse_target_setting), metavar="FIELD=VALUE",
               help="Any field of the target, e.g. dma-read-channels=2; see 'info targets NAME'. Repeatable."),
    )  # fmt: skip


def simulation_options(command: Decorated) -> Decorated:
    """All options of planning and lowering."""
    return apply(command, options_of(PlanningOptions), options_of(LoweringOptions))


def config_options(read: "Callable[[Config], Mapping[str, Any]]" = lambda config: config.settings) -> Decorator:
    """``--config``: settings that apply where neither options nor the environment do. ``read`` picks the settings."""

    def use(ctx: click.Context, param: click.Parameter, value: str | None) -> "Config":
        from spillprof.cli.config import load_config

        config = load_config(Path(value) if value else None)
        ctx.default_map = {key.replace("-", "_"): setting for key, setting in read(config).items()}
        return config

    return option("--config", is_eager=True, callback=use, metavar="FILE",
                  help="Settings. Default: the nearest spillprof.toml or pyproject.toml upwards.")  # fmt: skip


def verbosity_options(command: Decorated) -> Decorated:
    """How much to print on stderr, and whether in colour."""
    return apply(
        command,
        option("-q", "--quiet", is_flag=True, expose_value=False, callback=_keep, help="No notes on stderr."),
        option("-v", "--verbose", is_flag=True, expose_value=False, callback=_keep,
               help="More notes; a traceback if spillprof has a bug."),
        option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True,
               expose_value=False, callback=_keep, is_eager=True, help="Also NO_COLOR and FORCE_COLOR."),
    )  # fmt: skip


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Store the option in the invocation, before anything is printed."""
    invocation = ctx.find_object(Invocation)
    if invocation is not None and param.name is not None:
        setattr(invocation, param.name, value)
    if param.name == "color":  # click knows the terminal, but not NO_COLOR
        ctx.color = invocation.colored(sys.stdout) if invocation else None


def strategy_names(text: str) -> tuple[str, ...]:
    """The strategies in a comma-separated list, each once. ``UsageError`` for an unknown name, or an empty list."""
    return names_of_list(text, (*STRATEGIES, IDEAL), "strategy")


def _target_names() -> Sequence[str]:
    """Built-in targets, and those of the configuration if it can be read."""
    from spillprof.cli.config import load_config

    try:
        return sorted({*builtin_target_names(), *load_config().targets})
    except SpillprofError:
        return builtin_target_names()


def _dim(text: str) -> tuple[str, int]:
    name, separator, size = text.rpartition("=")
    if not separator or not name or not _is_count(size):
        raise UsageError(f"'{text}' binds no dimension", hint="write it like --dim batch=1 or --dim 'input[0]=1'")
    return name, int(size)


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    return _named_shape(text, "an input", "--shape input=1x3x224x224")


def _assumed(text: str) -> tuple[str, tuple[int, ...]]:
    return _named_shape(text, "a tensor", "--assume boxes=100x4")


def _named_shape(text: str, whose: str, example: str) -> tuple[str, tuple[int, ...]]:
    name, separator, shape = text.rpartition("=")
    sizes = shape.lower().split("x") if shape else []
    if not separator or not name or not all(map(_is_count, sizes)):
        raise UsageError(f"'{text}' is no shape of {whose}", hint=f"write it like {example}")
    return name, tuple(int(size) for size in sizes)


def _branch(text: str) -> tuple[str, str]:
    name, separator, branch = text.rpartition("=")
    if not separator or not name or branch not in ("then", "else"):
        raise UsageError(f"'{text}' chooses no branch", hint="write it like --branch /model/If=then")
    return name, branch


def _trips(text: str) -> tuple[str, int]:
    name, separator, count = text.rpartition("=")
    if not _is_count(count) or (separator and not name):
        raise UsageError(f"'{text}' is no number of trips", hint="write it like --trips 8 or --trips /model/Loop=8")
    return name, int(count)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
