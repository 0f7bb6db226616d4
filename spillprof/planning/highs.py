"""The solver, silent: HiGHS prints a banner on stdout when it is first made, before any option can say no."""

import os
import sys
from typing import Any


def quiet_solver() -> Any:
    """A ``highspy.Highs`` on one thread that prints nothing. highspy is imported here, where it is first needed."""
    sys.stdout.flush()
    kept = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        import highspy

        solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("threads", 1)
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)
    return solver
