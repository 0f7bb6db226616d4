"""How many examples property tests try: SPILLPROF_TEST_SCALE=20 tries twenty times as many."""

import os


def examples(count: int) -> int:
    """So many, times the scale of this run of the tests."""
    return count * int(os.environ.get("SPILLPROF_TEST_SCALE", "1"))
