"""The LRU cache."""

import pytest

from spillprof.ir.lru_cache import LruCache


def test_the_least_recently_used_value_is_evicted_first() -> None:
    cache: LruCache[int] = LruCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)


def test_a_value_is_made_once_and_an_error_is_not_stored() -> None:
    cache: LruCache[list[int]] = LruCache(2)
    made = cache.get_or_make("a", lambda: [1])
    assert cache.get_or_make("a", lambda: [1]) is made

    def fails() -> list[int]:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        cache.get_or_make("b", fails)
    assert cache.get_or_make("b", lambda: [2]) == [2]
