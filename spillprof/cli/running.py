"""One run of the command line, and the only code that chooses exit codes."""

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

import click

from spillprof.cli.encoding import make_encodable
from spillprof.cli.failures import BROKEN_PIPE_EXIT_CODE, report_failure
from spillprof.cli.group import spillprof
from spillprof.cli.session import Session
from spillprof.cli.streams import discard, open_missing
from spillprof.ir.errors import UsageError
from spillprof.ir.side_files.opening import watched


def run_and_exit(arguments: Sequence[str] | None) -> NoReturn:
    """Run a command with the arguments, or those of the process, and exit with its code."""
    given = tuple(sys.argv[1:] if arguments is None else arguments)
    if open_missing():
        for stream in (sys.stdout, sys.stderr):
            make_encodable(stream)
        exit_code = run(given)
    else:
        closed = UsageError("stdout is closed", hint="send it to a file, or to /dev/null")
        exit_code = report_failure(closed, Session(arguments=given))
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
            discard(sys.stdout)
            return BROKEN_PIPE_EXIT_CODE
        return stop.code if isinstance(stop.code, int) else 0
    except (click.exceptions.Exit, Exception, KeyboardInterrupt) as failure:
        return report_failure(failure, session)
    return result if isinstance(result, int) else 0


@contextmanager
def _cycles_not_sought() -> Iterator[None]:
    """Disables the cyclic garbage collector: commands allocate millions of acyclic values."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
