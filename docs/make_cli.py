"""Writes docs/cli.md from the help of every command. ``python docs/make_cli.py``; a test checks that it is current."""

from pathlib import Path

import click

from spillprof.cli.group import COMMANDS, spillprof

WIDTH = 100
INTRODUCTION = """# Command line

This page is made from the help of the commands by `docs/make_cli.py`.

Exit codes: 0 done; 1 a gate failed, and nothing else; 2 could not evaluate (usage, model, memory, an illegal plan);
3 a bug; 130 interrupted. Results go to stdout, notes and errors to stderr. Every option can be set in the environment
as `SPILLPROF_` and its name: `--dram-read` as `SPILLPROF_DRAM_READ`; repeatable options take several values there,
separated by spaces.
"""


def render() -> str:
    """The reference as Markdown."""
    root = click.Context(spillprof, info_name="spillprof", terminal_width=WIDTH, **spillprof.context_settings)
    parts = [INTRODUCTION, _section(spillprof, root)]
    for name in COMMANDS:
        command = spillprof.get_command(root, name)
        if command is not None:
            parts.append(_section(command, click.Context(command, info_name=name, parent=root, terminal_width=WIDTH)))
    return "\n".join(parts)


def _section(command: click.Command, context: click.Context) -> str:
    return f"## {context.command_path}\n\n```text\n{command.get_help(context).rstrip()}\n```\n"


if __name__ == "__main__":
    (Path(__file__).parent / "cli.md").write_text(render(), encoding="utf-8", newline="\n")
