"""Thread-safe LRU cache of at most ``capacity`` values."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

_Value = TypeVar("_Value")


class LruCache(Generic[_Value]):
    """At most ``capacity`` values by key; inserting into a full cache evicts the least recently used."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._values: OrderedDict[Hashable, _Value] = OrderedDict()
        self._lock = Lock()  # workers of a cluster run several tasks in one process

    def get(self, key: Hashable) -> _Value | None:
        """The value of a key, or None; it becomes the most recently used."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: Hashable, value: _Value) -> None:
        """Inserts or replaces the value of a key."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._capacity:
                self._values.popitem(last=False)

    def get_or_make(self, key: Hashable, make: Callable[[], _Value]) -> _Value:
        """The value of a key, computed by ``make`` on a miss. Nothing is stored when ``make`` raises."""
        found = self.get(key)
        if found is None:
            found = make()
            self.put(key, found)
        return found
