"""One object per name in this process, for as long as somebody holds it."""

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")


class Shared(Generic[T]):
    """Hands the same object to everyone who asks by the same name."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._alive: WeakValueDictionary[Hashable, T] = WeakValueDictionary()

    def get(self, name: Hashable) -> T:
        """Return the object of that name, made now if nobody holds one."""
        with self._lock:
            found = self._alive.get(name)
            if found is None:
                found = self._alive[name] = self._make()
            return found
