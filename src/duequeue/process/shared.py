"""One object per name in this process, for as long as somebody holds it."""

import os
import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")


class Shared(Generic[T]):
    """Hands the same object to everyone who asks by the same name."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._begin()
        if hasattr(os, "register_at_fork"):  # not on Windows
            os.register_at_fork(after_in_child=self._begin)

    def get(self, name: Hashable) -> T:
        """Return the object of that name, made now if nobody holds one."""
        with self._lock:
            found = self._alive.get(name)
            if found is None:
                found = self._alive[name] = self._make()
            return found

    def _begin(self) -> None:
        # The threads that work on what is shared, or hold a lock, do not live on in a fork.
        self._lock = threading.Lock()
        self._alive: WeakValueDictionary[Hashable, T] = WeakValueDictionary()
