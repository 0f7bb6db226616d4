"""Where the command line writes while it is fuzzed."""

import io


class Stream(io.StringIO):
    """A stream as the command line finds it: text, encodable or not."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return False
