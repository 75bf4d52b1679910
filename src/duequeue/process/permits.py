"""Permits that are handed out in turn and given back, and that no interruption can lose."""

from collections import deque
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import TIMEOUT_MAX
from time import monotonic
from weakref import ref

# How often, in seconds, those who wait make sure that they are still in line.
LOOK_EVERY = 1.0


class Permit:
    """The right to use something; whoever holds it gives it back.

    An exception that a signal handler raises, such as KeyboardInterrupt, may strike between any two
    steps of a program, even between taking a permit and the `try` that would give it back. Such a
    permit is garbage, and is replaced when Python removes it.
    """

    __slots__ = ("__weakref__", "_home")

    def __init__(self, home: "Permits") -> None:
        self._home = ref(home)  # a strong reference would keep permits and home alive for ever

    def give_back(self) -> None:
        """Let the next in line have it."""
        home = self._home()
        if home is not None:
            home.take_back(self)

    def __del__(self) -> None:
        home = self._home()
        if home is not None:
            home.take_back(Permit(home))


class Permits:
    """A number of permits; those who wait get them in turn.

    The free ones are in a queue, and each of those who wait has a queue of its own, into which its
    permit is put. Without a line, a thread that gives a permit back and takes it again at once
    would always be faster than the others. These queues are written in C, so that a signal finds
    them before or after a step, but never within one. That is not so for the conditions and
    semaphores of `threading`.
    """

    def __init__(self, number: int) -> None:
        self._free: SimpleQueue[Permit] = SimpleQueue()
        self._line: deque[SimpleQueue[Permit]] = deque()
        for _ in range(number):
            self._free.put(Permit(self))

    def take(self, seconds: float) -> Permit | None:
        """Wait for a permit; return None if there is none within these seconds."""
        if not self._line:
            with suppress(Empty):
                return self._free.get_nowait()
        place: SimpleQueue[Permit] = SimpleQueue()
        try:
            return self._wait(place, min(max(seconds, 0.0), TIMEOUT_MAX))
        finally:
            # A permit that comes to this place too late is garbage along with it.
            with suppress(ValueError):
                self._line.remove(place)

    def take_back(self, permit: Permit) -> None:
        """Keep a permit for the next in line."""
        self._free.put(permit)
        if self._line:
            self._hand_out()

    def _wait(self, place: "SimpleQueue[Permit]", seconds: float) -> Permit | None:
        gives_up_at = monotonic() + seconds
        while True:
            if place not in self._line:  # or no longer, because the one who called it up was struck
                self._line.append(place)
            self._hand_out()
            left = gives_up_at - monotonic()
            try:
                return place.get(timeout=max(min(left, LOOK_EVERY), 0.0))
            except Empty:
                if left <= LOOK_EVERY:
                    return None

    def _hand_out(self) -> None:
        while self._line:
            try:
                permit = self._free.get_nowait()
            except Empty:
                return
            try:
                place = self._line.popleft()
            except IndexError:
                self._free.put(permit)
            else:
                place.put(permit)
