"""Options that several commands share, and the values of the layers below that they make."""

import sys
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from spillprof.cli.session import Session
from spillprof.errors import SpillprofError, UsageError
from spillprof.frontends.targets import open_target
from spillprof.lowering.options import Control, ConvAlgorithm, Fuse, LoweringOptions, Oversized, Views, WeightsPolicy
from spillprof.model.dtypes import AS_IN_FILE, NUMBER_DTYPES, SHORT_NAMES, parse_dtype
from spillprof.model.op_times import OpTimes
from spillprof.model.target import Target, builtin_target_names
from spillprof.model.target_settings import parse_target_setting, with_fields
from spillprof.planning.options import (
    PLACEMENTS,
    STRATEGIES,
    Dma,
    Inputs,
    Order,
    PlanningOptions,
    Recomputing,
    Release,
    Start,
    WriteBack,
)
from spillprof.units import parse_rate, parse_size

if TYPE_CHECKING:
    from spillprof.config import Config

ENVIRONMENT_PREFIX = "SPILLPROF_"
MOST_OPTIMIZE_SECONDS = 86_400.0
_MAX_DIGITS = 18  # of a dimension: more than any tensor has elements
_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])
_Option = Callable[[Any], Any]


def option(*declarations: str, **attributes: Any) -> _Option:
    """A click option that can also be given as ``SPILLPROF_NAME`` in the environment."""
    long = next(name for name in declarations if name.startswith("--"))
    variable = ENVIRONMENT_PREFIX + long.removeprefix("--").replace("-", "_").upper()
    return click.option(*declarations, envvar=variable, **attributes)


def completing(names: Callable[[], Sequence[str]]) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Shell completion of the last of comma-separated names."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{name}" for name in names() if name.startswith(last)]

    return complete


def model_options(command: _Decorated) -> _Decorated:
    """MODEL, and what binds its open dimensions."""
    return _apply(command, click.argument("model"), binding_options)


def binding_options(command: _Decorated) -> _Decorated:
    """What binds open dimensions."""
    return _apply(
        command,
        option("--dim", "dims", multiple=True, callback=parsed(_parse_dim), metavar="NAME=N",
               help='Size of a named dimension, or of an unnamed one: --dim "INPUT[AXIS]=N". Repeatable.'),
        shape_options,
    )  # fmt: skip


def shape_options(command: _Decorated) -> _Decorated:
    """What gives whole shapes: of inputs, and of tensors that cannot be inferred."""
    return _apply(
        command,
        option("--shape", "shapes", multiple=True, callback=parsed(_parse_shape), metavar="INPUT=1x3x8x8",
               help="Shape of an input. Repeatable."),
        option("--batch", type=click.IntRange(min=1), metavar="N", help="First dimension of every input."),
        option("--assume", multiple=True, callback=parsed(_parse_assumed), metavar="TENSOR=100x3",
               help="Shape of a tensor that depends on the data, or whose operator nobody knows. Repeatable."),
        run_options,
    )  # fmt: skip


def run_options(command: _Decorated) -> _Decorated:
    """What the user says of control flow."""
    return _apply(
        command,
        option("--branch", "branches", multiple=True, callback=parsed(_parse_branch), metavar="IF=then|else",
               help="Branch that an If takes. Default: the one that needs more memory. Repeatable."),
        option("--trips", multiple=True, callback=parsed(_parse_trips), metavar="[LOOP=]N",
               help="How often a Loop runs if the model does not say; without a name, every such Loop. Repeatable."),
    )  # fmt: skip


def dtype_names() -> Sequence[str]:
    """What options that take an element type complete."""
    return (AS_IN_FILE, *SHORT_NAMES, *NUMBER_DTYPES)


def target_options(command: _Decorated) -> _Decorated:
    """The machine, and single figures that replace its own."""
    return _apply(
        command,
        option("--sram", callback=parsed(parse_size), metavar="SIZE",
               help="On-chip memory, e.g. 32MB. Default: the target's."),
        machine_options,
    )  # fmt: skip


def machine_options(command: _Decorated) -> _Decorated:
    """The machine but for the size of its memory."""
    return _apply(
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


def config_options(read: "Callable[[Config], Mapping[str, Any]]" = lambda config: config.settings) -> _Option:
    """The file that sets what neither options nor the environment do; ``read`` says which of its settings."""

    def use(ctx: click.Context, param: click.Parameter, value: str | None) -> "Config":
        from spillprof.config import load_config

        config = load_config(Path(value) if value else None)
        ctx.default_map = {key.replace("-", "_"): setting for key, setting in read(config).items()}
        return config

    return option("--config", is_eager=True, callback=use, metavar="FILE",
                  help="Settings. Default: the nearest spillprof.toml or pyproject.toml upwards.")  # fmt: skip


def lowering_options(command: _Decorated) -> _Decorated:
    """How the model becomes a program."""
    default = LoweringOptions()
    return _apply(
        command,
        _choice("--weights", WeightsPolicy, default.weights,
                "stream: pass through a staging area; cached: evictable, wanted again by the next inference; "
                "resident: on-chip all the time."),
        _choice("--fuse", Fuse, default.fuse, "standard: bias, batch norm, activation and Q/DQ join their operator."),
        _choice("--conv", ConvAlgorithm, default.conv, "Algorithm of convolutions: decides workspace and time."),
        switch("--inplace", default.inplace, "Elementwise results overwrite an input that dies."),
        _choice("--views", Views, default.views, "share: Reshape and the like take no memory."),
        switch("--fold", default.fold, "What is computed from constants alone counts as a weight."),
        _choice("--control-flow", Control, default.control,
                "unfold: If, Loop and Scan as the operators that they run; step: each as one step."),
        option("--pin", multiple=True, metavar="TENSOR", help="Give a tensor its own slot, never evicted. Repeatable."),
        _choice("--oversized", Oversized, default.oversized,
                "stream: an operator that cannot fit is tiled through DRAM; error: stop."),
    )  # fmt: skip


def op_times_option(command: _Decorated) -> _Decorated:
    """Times that were measured."""
    return _apply(
        command,
        option("--op-times", metavar="FILE",
               help="Measured times of operators, by name: CSV, a profile of ONNX Runtime, Vela's CSV of layers."),
    )  # fmt: skip


def dtype_options(command: _Decorated) -> _Decorated:
    """The element types that a float model is deployed in."""
    return _apply(
        command,
        option("--act-dtype", callback=parsed(parse_dtype), metavar="TYPE", shell_complete=completing(dtype_names),
               help="Element type of float activations, e.g. int8; file: as in the file, the default."),
        option("--weight-dtype", callback=parsed(parse_dtype), metavar="TYPE", shell_complete=completing(dtype_names),
               help="Element type of float weights, e.g. int4. Biases and norms keep theirs below 16 bits."),
    )  # fmt: skip


def planning_options(command: _Decorated) -> _Decorated:
    """How the program is planned."""
    default = PlanningOptions()
    return _apply(
        command,
        option("--placement", default=default.placement, show_default=True, callback=parsed(_parse_placement),
               metavar="NAME", shell_complete=completing(lambda: PLACEMENTS),
               help="Rule for addresses; see 'spillprof info placements'."),
        _choice("--order", Order, default.order,
                "file: as the model lists its operators; memory: search for the order that spills least."),
        transfer_options,
    )  # fmt: skip


def transfer_options(command: _Decorated) -> _Decorated:
    """How the program is planned, but for addresses."""
    default = PlanningOptions()
    return _apply(
        command,
        _choice("--recompute", Recomputing, default.recompute,
                "rules: run operators twice where that is clearly cheaper than to move what they make; joint: as an "
                "integer program chooses together with what is spilled."),
        _choice("--inputs", Inputs, default.inputs, "When graph inputs come on-chip."),
        _choice("--dma", Dma, default.dma, "prefetch: transfers start as early as space allows; demand: when needed."),
        _choice("--writeback", WriteBack, default.writeback, "always: an evicted buffer is written each time."),
        _choice("--release", Release, default.release, "When a dead buffer's space is freed."),
        option("--cold", is_flag=True, help="With cached weights, report the first inference, not the steady state."),
        option("--optimize-seconds", type=click.FloatRange(min=0, max=MOST_OPTIMIZE_SECONDS), metavar="N",
               default=default.optimize_seconds, show_default=True,
               help="When strategy optimal stops searching, if it has not finished by itself."),
    )  # fmt: skip


def session_options(command: _Decorated) -> _Decorated:
    """How much to say, and in which colours."""
    return _apply(
        command,
        option("-q", "--quiet", is_flag=True, expose_value=False, callback=_keep, help="No notes on stderr."),
        option("-v", "--verbose", is_flag=True, expose_value=False, callback=_keep,
               help="More notes; a traceback if spillprof has a bug."),
        option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True,
               expose_value=False, callback=_keep, is_eager=True, help="Also NO_COLOR and FORCE_COLOR."),
    )  # fmt: skip


def examples(*lines: str) -> str:
    """The end of a command's help. A test runs every line."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def read_target(values: Mapping[str, Any], name: str | None = None) -> Target:
    """The target that the options describe; ``name``: one that something nearer than the file's settings chose.

    Single figures replace the target's own, but those of the file do not if the target was chosen elsewhere. Fields
    named by ``--set`` come last; of one that is named twice, the last counts.
    """
    named = {"sram": "sram_bytes", "align": "alignment_bytes",
             "dram_read": "dram_read_bytes_per_s", "dram_write": "dram_write_bytes_per_s"}  # fmt: skip
    config = values.get("config")
    chosen = name or values["target"]
    target = config.target(chosen) if config else open_target(chosen)
    given = {key: field for key, field in named.items() if values[key] is not None}
    if name or is_given("target"):
        given = {key: field for key, field in given.items() if is_given(key)}
    target = target.with_overrides(**{field: values[key] for key, field in given.items()})
    return with_fields(target, dict(values["target_settings"]))


def is_given(parameter: str) -> bool:
    """Whether a value stands on the command line or in the environment, not in a file."""
    source = click.get_current_context().get_parameter_source(parameter)
    return source in (click.core.ParameterSource.COMMANDLINE, click.core.ParameterSource.ENVIRONMENT)


def read_lowering(values: Mapping[str, Any]) -> LoweringOptions:
    """The switches of lowering."""
    return LoweringOptions(
        fuse=Fuse(values["fuse"]),
        inplace=values["inplace"] == "on",
        views=Views(values["views"]),
        fold=values["fold"] == "on",
        control=Control(values["control_flow"]),
        conv=ConvAlgorithm(values["conv"]),
        weights=WeightsPolicy(values["weights"]),
        oversized=Oversized(values["oversized"]),
        pin=tuple(values["pin"]),
        act_dtype=values["act_dtype"],
        weight_dtype=values["weight_dtype"],
        op_times=_op_times(values.get("op_times")),
    )


def _op_times(path: str | None) -> OpTimes | None:
    from spillprof.frontends.op_times import read_op_times

    return read_op_times(path) if path else None


def read_planning(values: Mapping[str, Any]) -> PlanningOptions:
    """The switches of planning."""
    return PlanningOptions(
        placement=values["placement"],
        inputs=Inputs(values["inputs"]),
        writeback=WriteBack(values["writeback"]),
        release=Release(values["release"]),
        dma=Dma(values["dma"]),
        start=Start.COLD if values["cold"] else Start.STEADY,
        order=Order(values["order"]),
        recompute=Recomputing(values["recompute"]),
        optimize_seconds=values["optimize_seconds"],
    )


def strategy_names(text: str) -> tuple[str, ...]:
    """The strategies that a list names, each once. ``UsageError`` for a name that is none, or no name."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise UsageError("no strategy is named", where=("--strategy",), hint=f"there are {', '.join(STRATEGIES)}")
    known = (*STRATEGIES, "none")
    for name in names:
        if name not in known:
            raise nearest("strategy", name, known)
    return names


def nearest(kind: str, name: str, known: Sequence[str]) -> UsageError:
    """The error for a name that is not one of ``known``."""
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=1)
    hint = f"did you mean '{near[0]}'? There are {', '.join(known)}" if near else f"there are {', '.join(known)}"
    return UsageError(f"unknown {kind} '{name}'", hint=hint)


def _target_names() -> Sequence[str]:
    """Built-in targets, and those of the configuration if it can be read."""
    from spillprof.config import load_config

    try:
        return sorted({*builtin_target_names(), *load_config().targets})
    except SpillprofError:
        return builtin_target_names()


def _apply(command: _Decorated, *options: _Option) -> _Decorated:
    for each in reversed(options):
        command = each(command)
    return command


def parsed(parse: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """A callback that reads an option's text, or each of its texts; an error says which option it came from."""

    def read(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        try:
            if isinstance(value, tuple):
                return tuple(parse(each) for each in value)
            return None if value is None else parse(value)
        except UsageError as error:
            raise UsageError(error.message, where=(max(param.opts, key=len),), hint=error.hint) from None

    return read


def _choice(name: str, values: type[StrEnum], default: StrEnum, text: str) -> _Option:
    choices = click.Choice([str(value) for value in values])
    return option(name, type=choices, default=str(default), show_default=True, help=text)


def switch(name: str, default: bool, text: str) -> _Option:
    """An option that is on or off."""
    on_off = click.Choice(["on", "off"])
    return option(name, type=on_off, default="on" if default else "off", show_default=True, help=text)


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Hand what the user wants to hear to the session, before anything is said."""
    session = ctx.find_object(Session)
    if session is not None and param.name is not None:
        setattr(session, param.name, value)
    if param.name == "color":  # click knows the terminal, but not NO_COLOR
        ctx.color = session.colored(sys.stdout) if session else None


def _parse_dim(text: str) -> tuple[str, int]:
    name, separator, size = text.rpartition("=")
    if not separator or not name or not _is_count(size):
        raise UsageError(f"'{text}' binds no dimension", hint="write it like --dim batch=1 or --dim 'input[0]=1'")
    return name, int(size)


def _parse_shape(text: str) -> tuple[str, tuple[int, ...]]:
    return _named_shape(text, "an input", "--shape input=1x3x224x224")


def _parse_assumed(text: str) -> tuple[str, tuple[int, ...]]:
    return _named_shape(text, "a tensor", "--assume boxes=100x4")


def _named_shape(text: str, whose: str, example: str) -> tuple[str, tuple[int, ...]]:
    name, separator, shape = text.rpartition("=")
    sizes = shape.lower().split("x") if shape else []
    if not separator or not name or not all(map(_is_count, sizes)):
        raise UsageError(f"'{text}' is no shape of {whose}", hint=f"write it like {example}")
    return name, tuple(int(size) for size in sizes)


def _parse_branch(text: str) -> tuple[str, str]:
    name, separator, branch = text.rpartition("=")
    if not separator or not name or branch not in ("then", "else"):
        raise UsageError(f"'{text}' chooses no branch", hint="write it like --branch /model/If=then")
    return name, branch


def _parse_trips(text: str) -> tuple[str, int]:
    name, separator, count = text.rpartition("=")
    if not _is_count(count) or (separator and not name):
        raise UsageError(f"'{text}' is no number of trips", hint="write it like --trips 8 or --trips /model/Loop=8")
    return name, int(count)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS


def _parse_placement(text: str) -> str:
    if text not in PLACEMENTS:
        raise nearest("placement", text, PLACEMENTS)
    return text
