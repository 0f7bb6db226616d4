"""One run of the command line, and the only code that chooses exit codes and prints errors."""

import errno
import gc
import platform
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

import click

from spillprof import __version__
from spillprof.cli.group import spillprof
from spillprof.cli.invocation import Invocation
from spillprof.cli.streams import discard, make_encodable, open_missing, tell
from spillprof.ir.errors import SpillprofError, UsageError
from spillprof.ir.interrupts import EXIT_CODE as INTERRUPTED
from spillprof.ir.nearest import nearest
from spillprof.ir.side_files.opening import watched
from spillprof.report.text import printable, shorten_middle

_COULD_NOT_EVALUATE = 2
BUG_EXIT_CODE = 3
_BROKEN_PIPE = 0  # the reader closed the pipe early, as head does
_MAX_LINE = 600  # characters of a message: names in it may be very long


def run_and_exit(arguments: Sequence[str] | None) -> NoReturn:
    """Run a command with the arguments, by default those of the process, and exit with its code."""
    given = tuple(sys.argv[1:] if arguments is None else arguments)
    if open_missing():
        for stream in (sys.stdout, sys.stderr):
            make_encodable(stream)
        exit_code = run_command(given)
    else:
        closed = UsageError("stdout is closed", hint="send it to a file, or to /dev/null")
        exit_code = _report_failure(closed, Invocation(arguments=given))
    gc.freeze()  # spares the collection at interpreter exit
    raise SystemExit(exit_code)


def run_command(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. Errors go to stderr."""
    invocation = Invocation(arguments=tuple(arguments))
    try:
        with _no_cyclic_collection(), watched(invocation.files.reads_beside):
            result = spillprof.main(list(arguments), prog_name="spillprof", standalone_mode=False, obj=invocation)
        sys.stdout.flush()
    except SystemExit as stop:  # click exits by itself: 1 for a closed pipe, 0 after shell completion
        if stop.code == 1:
            discard(sys.stdout)
            return _BROKEN_PIPE
        return stop.code if isinstance(stop.code, int) else 0
    except (click.exceptions.Exit, Exception, KeyboardInterrupt) as failure:
        return _report_failure(failure, invocation)
    return result if isinstance(result, int) else 0


@contextmanager
def _no_cyclic_collection() -> Iterator[None]:
    """Disables the cyclic garbage collector: commands allocate millions of acyclic values."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _report_failure(failure: BaseException, invocation: Invocation) -> int:
    """Print the failure on stderr and return its exit code."""
    match failure:
        case click.exceptions.Exit():
            return failure.exit_code
        case click.Abort() | KeyboardInterrupt():
            return INTERRUPTED
        case OSError(errno=errno.EPIPE):
            discard(sys.stdout)
            return _BROKEN_PIPE
        case OSError(errno=errno.ENOSPC | errno.EDQUOT | errno.EFBIG | errno.EIO | errno.EBADF):
            discard(sys.stdout)
            where = () if failure.filename is None else (str(failure.filename),)
            reason = (failure.strerror or "the disk failed").lower()
            hint = "write it elsewhere" if failure.errno == errno.EBADF else "make room, or write it elsewhere"
            _print_error(invocation, f"cannot write the result: {reason}", where, hint)
            return _COULD_NOT_EVALUATE
        case OSError(errno=errno.EMFILE | errno.ENFILE):
            _print_error(invocation, "too many open files", (), "raise the limit of the system (ulimit -n)")
            return _COULD_NOT_EVALUATE
        case SpillprofError():
            _print_error(invocation, failure.message, failure.where, failure.hint)
            return failure.exit_code
        case click.NoSuchOption() if failure.ctx is not None:
            known = [name for each in failure.ctx.command.get_params(failure.ctx) for name in each.opts]
            near = nearest(failure.option_name, known)
            hint = f"did you mean {near[0]}? " if near else ""
            _print_error(invocation, f"no such option '{failure.option_name}'", (), f"{hint}{_usage_hint(failure)}")
            return _COULD_NOT_EVALUATE
        case click.ClickException():
            _print_error(invocation, _sentence(failure.format_message()), (), _usage_hint(failure))
            return _COULD_NOT_EVALUATE
        case MemoryError():
            _print_error(invocation, "out of memory", (), "analyse fewer strategies at once, or a smaller model")
            return _COULD_NOT_EVALUATE
    _print_bug(invocation, failure)
    return BUG_EXIT_CODE


def _print_error(invocation: Invocation, message: str, where: tuple[str, ...], hint: str | None) -> None:
    lines = [f"{_styled(invocation, 'error:', 'red')} {_line(message)}"]
    lines += [f"  --> {_line(place)}" for place in where]
    if hint:
        lines.append(f"{_styled(invocation, 'hint:', 'cyan')} {_line(hint)}")
    tell("\n".join(lines), color=True)


def _print_bug(invocation: Invocation, failure: BaseException) -> None:
    if invocation.verbose:
        import traceback

        tell(_printable_lines("".join(traceback.format_exception(failure))))
    what = f"{type(failure).__name__}: {failure}" if str(failure) else type(failure).__name__
    where = f"spillprof {__version__}, Python {platform.python_version()}, {platform.system()}"
    again = "" if invocation.verbose else "; run again with -v for the traceback"
    _print_error(invocation, f"a bug in spillprof: {what}", (where,), f"please report it{again}")


def _printable_lines(text: str) -> str:
    """The text with each line made printable."""
    return "\n".join(printable(line) for line in text.splitlines())


def _styled(invocation: Invocation, word: str, color: str) -> str:
    return click.style(word, fg=color, bold=True) if invocation.colored(sys.stderr) else word


def _line(text: str) -> str:
    return shorten_middle(printable(text), _MAX_LINE)


def _sentence(message: str) -> str:
    """A click message in the style of spillprof's: lower case, no final period."""
    text = " ".join(message.split()).removesuffix(".")
    return text[:1].lower() + text[1:]


def _usage_hint(failure: click.ClickException) -> str | None:
    context = failure.ctx if isinstance(failure, click.UsageError) else None
    return f"see '{context.command_path} --help'" if context else None
