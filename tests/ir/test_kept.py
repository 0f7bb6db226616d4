"""What is kept for the next time."""

import pytest

from spillprof.ir.kept import Kept


def test_those_asked_for_longest_ago_go_first() -> None:
    kept: Kept[int] = Kept(2)
    kept.put("a", 1)
    kept.put("b", 2)
    assert kept.get("a") == 1
    kept.put("c", 3)
    assert (kept.get("a"), kept.get("b"), kept.get("c")) == (1, None, 3)


def test_a_value_is_made_once_and_an_error_is_not_kept() -> None:
    kept: Kept[list[int]] = Kept(2)
    made = kept.get_or_make("a", lambda: [1])
    assert kept.get_or_make("a", lambda: [1]) is made

    def fails() -> list[int]:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        kept.get_or_make("b", fails)
    assert kept.get_or_make("b", lambda: [2]) == [2]
