"""The summary of a profile on the terminal."""

import shutil
import sys
from typing import TYPE_CHECKING

from spillprof.cli.session import Session

if TYPE_CHECKING:
    from spillprof.ir.profile import Profile


def summary(profile: "Profile", top: int, session: Session) -> str:
    """As wide as the terminal, coloured as the session says."""
    from spillprof.report.profile.terminal import render

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    return render(profile, top=top, width=width, color=session.colored(sys.stdout))
