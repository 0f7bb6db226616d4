"""A saved profile, as a path or ``-``."""

from typing import TYPE_CHECKING

from spillprof.ir.errors import ProfileError
from spillprof.ir.side_files.json_text import parse_json
from spillprof.ir.side_files.kinds import PROFILE
from spillprof.ir.side_files.opening import decoded_stdin, read_text

if TYPE_CHECKING:
    from spillprof.ir.profile import Profile


def read_profile(path: str) -> "Profile":
    """The profile in a file, or on stdin for ``-``. ``ProfileError`` if it is none."""
    from spillprof.ir.profile_json import profile_from_json

    text = decoded_stdin(PROFILE) if path == "-" else read_text(path, PROFILE)
    data = parse_json(text, PROFILE, path)
    try:
        return profile_from_json(data)
    except ProfileError as error:
        raise ProfileError(error.message, where=(path, *error.where), hint=error.hint) from None
