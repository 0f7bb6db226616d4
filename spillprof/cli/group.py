"""The group of commands: a command's module is imported only when that command runs."""

from importlib import import_module

import click

from spillprof import __version__
from spillprof.ir.nearest import nearest

COMMANDS = {
    "analyze": "Simulate a model on a memory: what spills, why, and what it costs.",
    "sweep": "The same models on many memories, strategies, bandwidths and dimensions.",
    "report": "A saved profile rendered again, in any format.",
    "inspect": "A model's tensors and operators, its peak and its smallest SRAM.",
    "verify": "Check a plan against a model, and cost it.",
    "pack": "Offsets for buffers with given lifetimes, in as little memory as can be found.",
    "diff": "Two runs side by side: what moved, where and why.",
    "gate": "Judge models against budgets and a committed baseline, for CI.",
    "history": "The trend of what the gate recorded, and where it changed.",
    "calibrate": "Measure this machine's transfers, fit their curve, and write a target.",
    "info": "Targets, strategies, placements, and where each setting comes from.",
}
"""Each command and its line in the help. Module ``spillprof.cli.NAME`` defines it as ``command``."""


class _LazyGroup(click.Group):
    """A click group that lists its commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"spillprof.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does; an unknown name gets a hint with the nearest one."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            near = nearest(args[0], COMMANDS)
            also = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(COMMANDS)}"
            raise click.UsageError(f"no command '{args[0]}'; {also}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table into the help."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="'spillprof COMMAND --help' explains a command and shows examples.",
)
@click.version_option(__version__, prog_name="spillprof", message="%(prog)s %(version)s")
def spillprof() -> None:
    """What it costs when a neural network's tensors do not fit into on-chip memory, and why."""
