"""Results that are kept for the next time that somebody asks: in this process, the last few of each kind."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

_Value = TypeVar("_Value")


class Kept(Generic[_Value]):
    """Values by key; where there are more than ``most``, those go that were asked for longest ago."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Hashable, _Value] = OrderedDict()
        self._lock = Lock()  # workers of a cluster run several tasks in one process

    def get(self, key: Hashable) -> _Value | None:
        """The value of a key, if it is still there."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: Hashable, value: _Value) -> None:
        """Keep a value."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)

    def get_or_make(self, key: Hashable, make: Callable[[], _Value]) -> _Value:
        """The value of a key, made now if it is not there. What ``make`` raises is not kept."""
        found = self.get(key)
        if found is None:
            found = make()
            self.put(key, found)
        return found
