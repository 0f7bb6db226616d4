"""The command line: one module a command. The entry point imports nothing until Ctrl-C is handled."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn


def main(arguments: "Sequence[str] | None" = None) -> "NoReturn":
    """Run the command line and exit: 0 done, 1 gate failed, 2 could not evaluate, 3 our bug, 130 interrupted."""
    try:
        from spillprof.ir.interrupts import end_in_silence

        end_in_silence()
    except (KeyboardInterrupt, RuntimeError):  # Ctrl-C in a class definition raises RuntimeError
        os._exit(130)

    import gc

    gc.disable()  # to the end: modules and commands allocate millions of acyclic values
    from spillprof.cli.running import run_and_exit

    run_and_exit(arguments)


def run(arguments: "Sequence[str]") -> int:
    """Run one command and return its exit code. Errors go to stderr."""
    from spillprof.cli.running import run_command

    return run_command(arguments)
