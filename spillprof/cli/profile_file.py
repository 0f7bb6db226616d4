"""A saved profile, as a path or ``-``."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from spillprof.errors import ProfileError, UsageError

if TYPE_CHECKING:
    from spillprof.model.profile import Profile


def read_profile(path: str) -> "Profile":
    """The profile in a file, or on stdin for ``-``. ``ProfileError`` if it is none."""
    from spillprof.model.profile_json import profile_from_json

    try:
        if path != "-":
            text = Path(path).read_text("utf-8-sig")
        elif sys.stdin is None:
            raise UsageError("there is no stdin to read from", hint="give the path of a file")
        else:
            text = sys.stdin.buffer.read().decode("utf-8-sig")
        data = json.loads(text)
    except OSError as error:
        raise ProfileError("cannot read the profile", where=(f"{path}: {error.strerror or error}",)) from None
    except (ValueError, RecursionError) as error:
        raise ProfileError(
            "the profile is no JSON",
            where=(f"{path}: {error}",),
            hint="'spillprof analyze MODEL -o FILE.json' writes one",
        ) from None
    try:
        return profile_from_json(data)
    except ProfileError as error:
        raise ProfileError(error.message, where=(path, *error.where), hint=error.hint) from None
