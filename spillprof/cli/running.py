"""One run of the command line, and the only code that chooses exit codes and prints errors."""

import errno
import gc
import platform
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

import click

from spillprof import __version__
from spillprof.cli.group import spillprof
from spillprof.cli.session import Session
from spillprof.cli.streams import discard, make_encodable, open_missing, tell
from spillprof.ir.errors import SpillprofError, UsageError
from spillprof.ir.interrupts import EXIT_CODE as INTERRUPTED
from spillprof.ir.nearest import nearest
from spillprof.ir.side_files.opening import watched
from spillprof.report.text import printable, shorten_middle

COULD_NOT_EVALUATE_EXIT_CODE = 2
BUG_EXIT_CODE = 3
BROKEN_PIPE_EXIT_CODE = 0  # the reader had enough; what it asked for was done
MAX_LINE = 600  # characters of a message: names in it may be endless


def run_and_exit(arguments: Sequence[str] | None) -> NoReturn:
    """Run a command with the arguments, or those of the process, and exit with its code."""
    given = tuple(sys.argv[1:] if arguments is None else arguments)
    if open_missing():
        for stream in (sys.stdout, sys.stderr):
            make_encodable(stream)
        exit_code = run_command(given)
    else:
        closed = UsageError("stdout is closed", hint="send it to a file, or to /dev/null")
        exit_code = report_failure(closed, Session(arguments=given))
    gc.freeze()  # the interpreter searches for cycles once more when it ends
    raise SystemExit(exit_code)


def run_command(arguments: Sequence[str]) -> int:
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
    """Python's cyclic collector is off meanwhile: a command makes millions of values, and hardly a cycle of them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def report_failure(failure: BaseException, session: Session) -> int:
    """Print what went wrong on stderr; the exit code."""
    match failure:
        case click.exceptions.Exit():
            return failure.exit_code
        case click.Abort() | KeyboardInterrupt():
            return INTERRUPTED
        case OSError(errno=errno.EPIPE):
            discard(sys.stdout)
            return BROKEN_PIPE_EXIT_CODE
        case OSError(errno=errno.ENOSPC | errno.EDQUOT | errno.EFBIG | errno.EIO | errno.EBADF):
            discard(sys.stdout)
            where = () if failure.filename is None else (str(failure.filename),)
            reason = (failure.strerror or "the disk failed").lower()
            hint = "write it elsewhere" if failure.errno == errno.EBADF else "make room, or write it elsewhere"
            _print_error(session, f"cannot write the result: {reason}", where, hint)
            return COULD_NOT_EVALUATE_EXIT_CODE
        case OSError(errno=errno.EMFILE | errno.ENFILE):
            _print_error(session, "too many open files", (), "raise the limit of the system (ulimit -n)")
            return COULD_NOT_EVALUATE_EXIT_CODE
        case SpillprofError():
            _print_error(session, failure.message, failure.where, failure.hint)
            return failure.exit_code
        case click.NoSuchOption() if failure.ctx is not None:
            known = [name for each in failure.ctx.command.get_params(failure.ctx) for name in each.opts]
            near = nearest(failure.option_name, known)
            hint = f"did you mean {near[0]}? " if near else ""
            _print_error(session, f"no such option '{failure.option_name}'", (), f"{hint}{_usage_hint(failure)}")
            return COULD_NOT_EVALUATE_EXIT_CODE
        case click.ClickException():
            _print_error(session, _sentence(failure.format_message()), (), _usage_hint(failure))
            return COULD_NOT_EVALUATE_EXIT_CODE
        case MemoryError():
            _print_error(session, "out of memory", (), "analyse fewer strategies at once, or a smaller model")
            return COULD_NOT_EVALUATE_EXIT_CODE
    _print_bug(session, failure)
    return BUG_EXIT_CODE


def _print_error(session: Session, message: str, where: tuple[str, ...], hint: str | None) -> None:
    lines = [f"{_styled(session, 'error:', 'red')} {_line(message)}"]
    lines += [f"  --> {_line(place)}" for place in where]
    if hint:
        lines.append(f"{_styled(session, 'hint:', 'cyan')} {_line(hint)}")
    tell("\n".join(lines), color=True)


def _print_bug(session: Session, failure: BaseException) -> None:
    if session.verbose:
        tell(printable_lines("".join(traceback.format_exception(failure))))
    what = f"{type(failure).__name__}: {failure}" if str(failure) else type(failure).__name__
    where = f"spillprof {__version__}, Python {platform.python_version()}, {platform.system()}"
    again = "" if session.verbose else "; run again with -v for the traceback"
    _print_error(session, f"a bug in spillprof: {what}", (where,), f"please report it{again}")


def printable_lines(text: str) -> str:
    """Text of several lines, each made printable."""
    return "\n".join(printable(line) for line in text.splitlines())


def _styled(session: Session, word: str, color: str) -> str:
    return click.style(word, fg=color, bold=True) if session.colored(sys.stderr) else word


def _line(text: str) -> str:
    return shorten_middle(printable(text), MAX_LINE)


def _sentence(message: str) -> str:
    """A click message in the form of ours: lower case, no final period."""
    text = " ".join(message.split()).removesuffix(".")
    return text[:1].lower() + text[1:]


def _usage_hint(failure: click.ClickException) -> str | None:
    context = failure.ctx if isinstance(failure, click.UsageError) else None
    return f"see '{context.command_path} --help'" if context else None
