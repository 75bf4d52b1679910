"""Permits that are handed out in turn and given back, and that no interruption can lose."""

from collections import deque
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import TIMEOUT_MAX
from time import monotonic
from weakref import ref

# How often, in seconds, a waiting caller makes sure that it is still in line.
LOOK_EVERY = 1.0


class Permit:
    """The right to use something, which its holder gives back.

    A signal handler may raise an exception, such as KeyboardInterrupt, between any two steps of a
    program, even between taking a permit and the `try` that would give it back. The permit is then
    garbage, and is replaced when Python removes it.
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
    """A fixed number of permits, which waiting callers get in turn.

    The free permits are in a queue, and each waiting caller has a queue of its own, into which its
    permit is put. Without a line, a thread that gives a permit back and takes it again at once
    would always be faster than the others. These queues are written in C, so a signal handler runs
    before or after an operation on them, but never in the middle of one. The conditions and
    semaphores of `threading` do not have this property.
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
            # A permit that comes to this place too late becomes garbage with it, and is replaced.
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
            # After the first time, it is missing only if a thread was interrupted as it served it.
            if place not in self._line:
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
