"""The solver, silent: HiGHS prints a banner on stdout when it is first made, before any option can say no."""

import errno
import os
import sys
from typing import Any


def quiet_solver() -> Any:
    """A ``highspy.Highs`` on one thread that prints nothing. highspy is imported here, where it is first needed."""
    if sys.stdout is not None:
        sys.stdout.flush()
    kept = _duplicate(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        import highspy

        solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("threads", 1)
    finally:
        if kept is not None:
            os.dup2(kept, 1)
            os.close(kept)
        if nowhere != 1:
            os.close(nowhere)
    return solver


def _duplicate(number: int) -> int | None:
    """Another descriptor of the same file; None if it is closed."""
    try:
        return os.dup(number)
    except OSError as error:
        if error.errno != errno.EBADF:
            raise
        return None
