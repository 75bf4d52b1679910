"""Permits that are handed out and given back, and that no interruption can lose."""

from queue import Empty, SimpleQueue
from threading import TIMEOUT_MAX
from weakref import ref


class Permit:
    """The right to use something; whoever holds it gives it back.

    An exception that a signal handler raises, such as KeyboardInterrupt, may strike between any two
    steps of a program, even between taking a permit and the `try` that would give it back. Such a
    permit is garbage, and is replaced when Python removes it.
    """

    __slots__ = ("__weakref__", "_free")

    def __init__(self, free: "SimpleQueue[Permit]") -> None:
        self._free = ref(free)  # a strong reference would keep permits and queue alive for ever

    def give_back(self) -> None:
        """Let the next in line have it."""
        free = self._free()
        if free is not None:
            free.put(self)

    def __del__(self) -> None:
        free = self._free()
        if free is not None:
            free.put(Permit(free))


class Permits:
    """A number of permits; those who wait get them in turn.

    The queue of the free ones is written in C, so that a signal finds it before or after a step,
    but never within one. That is not so for the conditions and semaphores of `threading`.
    """

    def __init__(self, number: int) -> None:
        self._free: SimpleQueue[Permit] = SimpleQueue()
        for _ in range(number):
            self._free.put(Permit(self._free))

    def take(self, seconds: float) -> Permit | None:
        """Wait for a permit; return None if there is none within these seconds."""
        try:
            return self._free.get(timeout=min(max(seconds, 0.0), TIMEOUT_MAX))
        except Empty:
            return None
