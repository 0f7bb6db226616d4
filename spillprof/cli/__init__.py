"""The command line: one module a command. Here are the entry point and the only code that chooses exit codes."""

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

import click

from spillprof.cli.encoding import make_encodable
from spillprof.cli.failures import BROKEN_PIPE_EXIT_CODE, discard_stdout, report_failure
from spillprof.cli.group import spillprof
from spillprof.cli.session import Session
from spillprof.side_files.opening import watched


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit: 0 done, 1 gate failed, 2 could not evaluate, 3 our bug, 130 interrupted."""
    for stream in (sys.stdout, sys.stderr):
        make_encodable(stream)
    exit_code = run(sys.argv[1:] if arguments is None else arguments)
    gc.freeze()  # the interpreter searches for cycles once more when it ends
    raise SystemExit(exit_code)


def run(arguments: Sequence[str]) -> int:
    """Run one command; its exit code. What went wrong is on stderr."""
    session = Session(arguments=tuple(arguments))
    try:
        with _cycles_not_sought(), watched(session.files.reads_beside):
            result = spillprof.main(list(arguments), prog_name="spillprof", standalone_mode=False, obj=session)
        sys.stdout.flush()
    except SystemExit as stop:  # click exits with 1 by itself where a pipe is closed, and 0 after shell completion
        if stop.code == 1:
            discard_stdout()
            return BROKEN_PIPE_EXIT_CODE
        return stop.code if isinstance(stop.code, int) else 0
    except (click.exceptions.Exit, Exception, KeyboardInterrupt) as failure:
        return report_failure(failure, session)
    return result if isinstance(result, int) else 0


@contextmanager
def _cycles_not_sought() -> Iterator[None]:
    """Python's cyclic collector is off meanwhile: a command makes millions of values, and hardly a cycle of them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
