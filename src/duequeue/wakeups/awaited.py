"""Wakes those who wait for responses, each by the key that it waits for."""

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from duequeue.wakeups.bell import Bell


class Awaited:
    """A bell for each key whose response somebody waits for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bells: dict[str, list[Bell]] = {}
        self._informed: list[Callable[[Collection[str]], None]] = []

    @contextmanager
    def bell(self, key: str) -> Iterator[Bell]:
        """Return a bell that rings for the response of a key, until the end of the block."""
        bell = Bell()
        with self._lock:
            self._bells.setdefault(key, []).append(bell)
        try:
            yield bell
        finally:
            with self._lock:
                self._bells[key].remove(bell)
                if not self._bells[key]:
                    del self._bells[key]

    def inform(self, listener: Callable[[Collection[str]], None]) -> None:
        """Call `listener` with the keys of every ring."""
        with self._lock:
            self._informed.append(listener)

    def stop_informing(self, listener: Callable[[Collection[str]], None]) -> None:
        """Undo one `inform`."""
        with self._lock:
            self._informed.remove(listener)

    def ring(self, keys: Collection[str]) -> None:
        """Wake those who wait for one of these keys."""
        with self._lock:
            for listener in self._informed:
                listener(keys)
            bells = [bell for key in keys for bell in self._bells.get(key, ())]
        for bell in bells:
            bell.ring_all()

    def ring_all(self) -> None:
        """Wake everybody who waits."""
        with self._lock:
            bells = [bell for each in self._bells.values() for bell in each]
        for bell in bells:
            bell.ring_all()
