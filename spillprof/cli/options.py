"""Options that several commands share."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spillprof.cli.declaring import Decorated, Option, apply, choice, completing, option, parsed, switch
from spillprof.cli.option_texts import (
    dtype_names,
    parse_assumed,
    parse_branch,
    parse_dim,
    parse_placement,
    parse_shape,
    parse_trips,
    target_names,
)
from spillprof.cli.session import Session
from spillprof.ir.dtypes import parse_dtype
from spillprof.ir.target_settings import parse_target_setting
from spillprof.ir.units import parse_rate, parse_size
from spillprof.lowering.options import Control, ConvAlgorithm, Fuse, LoweringOptions, Oversized, Views, WeightsPolicy
from spillprof.planning.options import Dma, Inputs, Order, PlanningOptions, Recomputing, Release, WriteBack
from spillprof.planning.placements import PLACEMENTS

if TYPE_CHECKING:
    from spillprof.cli.config import Config

MOST_OPTIMIZE_SECONDS = 86_400.0


def model_options(command: Decorated) -> Decorated:
    """MODEL, and what binds its open dimensions."""
    return apply(command, click.argument("model"), binding_options)


def binding_options(command: Decorated) -> Decorated:
    """What binds open dimensions."""
    return apply(
        command,
        option("--dim", "dims", multiple=True, callback=parsed(parse_dim), metavar="NAME=N",
               help='Size of a named dimension, or of an unnamed one: --dim "INPUT[AXIS]=N". Repeatable.'),
        shape_options,
    )  # fmt: skip


def shape_options(command: Decorated) -> Decorated:
    """What gives whole shapes: of inputs, and of tensors that cannot be inferred."""
    return apply(
        command,
        option("--shape", "shapes", multiple=True, callback=parsed(parse_shape), metavar="INPUT=1x3x8x8",
               help="Shape of an input. Repeatable."),
        option("--batch", type=click.IntRange(min=1), metavar="N", help="First dimension of every input."),
        option("--assume", multiple=True, callback=parsed(parse_assumed), metavar="TENSOR=100x3",
               help="Shape of a tensor that depends on the data, or whose operator nobody knows. Repeatable."),
        run_options,
    )  # fmt: skip


def run_options(command: Decorated) -> Decorated:
    """What the user says of control flow."""
    return apply(
        command,
        option("--branch", "branches", multiple=True, callback=parsed(parse_branch), metavar="IF=then|else",
               help="Branch that an If takes. Default: the one that needs more memory. Repeatable."),
        option("--trips", multiple=True, callback=parsed(parse_trips), metavar="[LOOP=]N",
               help="How often a Loop runs if the model does not say; without a name, every such Loop. Repeatable."),
    )  # fmt: skip


def target_options(command: Decorated) -> Decorated:
    """The machine, and single figures that replace its own."""
    return apply(
        command,
        option("--sram", callback=parsed(parse_size), metavar="SIZE",
               help="On-chip memory, e.g. 32MB. Default: the target's."),
        machine_options,
    )  # fmt: skip


def machine_options(command: Decorated) -> Decorated:
    """The machine but for the size of its memory."""
    return apply(
        command,
        option("--target", default="generic-npu", show_default=True, metavar="NAME|FILE",
               shell_complete=completing(target_names),
               help="Built in, of --config, or a file: .toml, vela.ini:SYSTEM:MODE, .mpool; see 'info targets'."),
        option("--align", callback=parsed(parse_size), metavar="SIZE", help="Alignment of buffers, e.g. 64."),
        option("--dram-read", callback=parsed(parse_rate), metavar="RATE", help="Bandwidth, e.g. 60GB/s."),
        option("--dram-write", callback=parsed(parse_rate), metavar="RATE", help="Bandwidth, e.g. 60GB/s."),
        option("--set", "target_settings", multiple=True, callback=parsed(parse_target_setting), metavar="FIELD=VALUE",
               help="Any field of the target, e.g. dma-read-channels=2; see 'info targets NAME'. Repeatable."),
    )  # fmt: skip


def config_options(read: "Callable[[Config], Mapping[str, Any]]" = lambda config: config.settings) -> Option:
    """The file that sets what neither options nor the environment do; ``read`` says which of its settings."""

    def use(ctx: click.Context, param: click.Parameter, value: str | None) -> "Config":
        from spillprof.cli.config import load_config

        config = load_config(Path(value) if value else None)
        ctx.default_map = {key.replace("-", "_"): setting for key, setting in read(config).items()}
        return config

    return option("--config", is_eager=True, callback=use, metavar="FILE",
                  help="Settings. Default: the nearest spillprof.toml or pyproject.toml upwards.")  # fmt: skip


def simulation_options(command: Decorated) -> Decorated:
    """How a model becomes a program, and how that is planned: all but the machine."""
    return apply(command, planning_options, lowering_options, dtype_options, op_times_option)


def lowering_options(command: Decorated) -> Decorated:
    """How the model becomes a program."""
    default = LoweringOptions()
    return apply(
        command,
        choice("--weights", WeightsPolicy, default.weights,
                "stream: pass through a staging area; cached: evictable, wanted again by the next inference; "
                "resident: on-chip all the time."),
        choice("--fuse", Fuse, default.fuse, "standard: bias, batch norm, activation and Q/DQ join their operator."),
        option("--fuse-tensor", multiple=True, metavar="TENSOR",
               help="Join the operator that makes a tensor to the elementwise one that reads it. Repeatable."),
        choice("--conv", ConvAlgorithm, default.conv, "Algorithm of convolutions: decides workspace and time."),
        switch("--inplace", default.inplace, "Elementwise results overwrite an input that dies."),
        choice("--views", Views, default.views, "share: Reshape and the like take no memory."),
        switch("--fold", default.fold, "What is computed from constants alone counts as a weight."),
        choice("--control-flow", Control, default.control,
                "unfold: If, Loop and Scan as the operators that they run; step: each as one step."),
        option("--pin", multiple=True, metavar="TENSOR", help="Give a tensor its own slot, never evicted. Repeatable."),
        choice("--oversized", Oversized, default.oversized,
                "stream: an operator that cannot fit is tiled through DRAM; error: stop."),
    )  # fmt: skip


def op_times_option(command: Decorated) -> Decorated:
    """Times that were measured."""
    return apply(
        command,
        option("--op-times", metavar="FILE",
               help="Measured times of operators, by name: CSV, a profile of ONNX Runtime, Vela's CSV of layers."),
    )  # fmt: skip


def dtype_options(command: Decorated) -> Decorated:
    """The element types that a float model is deployed in."""
    return apply(
        command,
        option("--act-dtype", callback=parsed(parse_dtype), metavar="TYPE", shell_complete=completing(dtype_names),
               help="Element type of float activations, e.g. int8; file: as in the file, the default."),
        option("--weight-dtype", callback=parsed(parse_dtype), metavar="TYPE", shell_complete=completing(dtype_names),
               help="Element type of float weights, e.g. int4. Biases and norms keep theirs below 16 bits."),
    )  # fmt: skip


def planning_options(command: Decorated) -> Decorated:
    """How the program is planned."""
    default = PlanningOptions()
    return apply(
        command,
        option("--placement", default=default.placement, show_default=True, callback=parsed(parse_placement),
               metavar="NAME", shell_complete=completing(lambda: PLACEMENTS),
               help="Rule for addresses; see 'spillprof info placements'."),
        choice("--order", Order, default.order,
                "file: as the model lists its operators; memory: search for the order that spills least."),
        transfer_options,
    )  # fmt: skip


def transfer_options(command: Decorated) -> Decorated:
    """How the program is planned, but for addresses."""
    default = PlanningOptions()
    return apply(
        command,
        choice("--recompute", Recomputing, default.recompute,
                "rules: run operators twice where that is clearly cheaper than to move what they make; joint: as an "
                "integer program chooses together with what is spilled."),
        option("--recompute-tensor", multiple=True, metavar="TENSOR",
               help="Run a tensor's operator again at the end of the tensor's longest gap. Repeatable."),
        choice("--inputs", Inputs, default.inputs, "When graph inputs come on-chip."),
        choice("--dma", Dma, default.dma, "prefetch: transfers start as early as space allows; demand: when needed."),
        choice("--writeback", WriteBack, default.writeback, "always: an evicted buffer is written each time."),
        choice("--release", Release, default.release, "When a dead buffer's space is freed."),
        option("--cold", is_flag=True, help="With cached weights, report the first inference, not the steady state."),
        option("--optimize-seconds", type=click.FloatRange(min=0, max=MOST_OPTIMIZE_SECONDS), metavar="N",
               help="End each search for the optimum after so much processor time. Default: its work is counted. A "
               "search that the time cuts off may end elsewhere next time: results say so, and a gate refuses them."),
    )  # fmt: skip


def session_options(command: Decorated) -> Decorated:
    """How much to say, and in which colours."""
    return apply(
        command,
        option("-q", "--quiet", is_flag=True, expose_value=False, callback=_keep, help="No notes on stderr."),
        option("-v", "--verbose", is_flag=True, expose_value=False, callback=_keep,
               help="More notes; a traceback if spillprof has a bug."),
        option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True,
               expose_value=False, callback=_keep, is_eager=True, help="Also NO_COLOR and FORCE_COLOR."),
    )  # fmt: skip


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Hand what the user wants to hear to the session, before anything is said."""
    session = ctx.find_object(Session)
    if session is not None and param.name is not None:
        setattr(session, param.name, value)
    if param.name == "color":  # click knows the terminal, but not NO_COLOR
        ctx.color = session.colored(sys.stdout) if session else None
