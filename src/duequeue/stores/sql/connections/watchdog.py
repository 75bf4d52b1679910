"""One thread per process that ends the calls that a server does not answer in time.

A call that waits for an answer waits inside the driver, for minutes if packets vanish, and for ever
if the server is frozen. To end it, the thread shuts its socket down. The call then fails like any
call whose connection is lost, blocking or awaiting, and it is tried again on another connection.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from queue import SimpleQueue
from time import monotonic, sleep
from typing import Any, Protocol
from weakref import ref

from duequeue.port.store import LONGEST_CALL
from duequeue.process.shared import Shared

# In seconds. A call ends at most this much later than its deadline.
LOOK_EVERY = 0.1
# The thread sleeps after a second without a call. If it slept sooner, more calls would have to
# wake it, and that would cost more than looking.
LOOKS_BEFORE_SLEEP = 10
# A long operation may take its time, but not if the server no longer answers anybody.
PROBE_EVERY = 10.0
PROBE_SECONDS = 5


class PooledConnection(Protocol):
    """A connection of a pool, of any driver."""

    idle_since: float


class PooledServer(Protocol):
    """A database that connections lead to; equal ones share a pool, so it can be hashed."""

    @property
    def pool_size(self) -> int:
        """How many connections may be in use at a time."""

    def __str__(self) -> str:
        """Return what it is and where, for people to read, without secrets."""

    def socket_of(self, connection: Any) -> int:
        """Return the file descriptor of a connection; raise OSError if it has none any more."""

    def is_lost(self, connection: Any) -> bool:
        """Return whether a connection broke, as others then probably have too."""

    def finish(self, connection: Any) -> None:
        """Close a connection at once, whatever it is doing."""

    def answers(self, seconds: int) -> bool:
        """Return whether it answers a new connection in time; a refusal is an answer too."""

    def __hash__(self) -> int:
        """Return a hash of the settings."""


class WatchedPlace:
    """A place for a connection in use, and the deadline of the call that uses it, if any."""

    __slots__ = (
        "__weakref__",
        "_server",
        "connection",
        "deadline",
        "for_consumers",
        "is_cut",
        "lock",
        "probes",
        "seconds",
        "watchdog",
    )

    def __init__(self, server: PooledServer, *, for_consumers: bool = False) -> None:
        self._server = server
        self.for_consumers = for_consumers
        self.connection: Any = None
        self.seconds = inf
        self.deadline: float | None = None
        self.probes = 0
        self.is_cut = False
        # A call holds this while it clears its deadline, so that the next call is never cut off.
        self.lock = threading.Lock()
        self.watchdog = watchdog()
        self.watchdog.add(self)

    @contextmanager
    def limit(self, connection: Any, seconds: float) -> Iterator[None]:
        """Limit the calls in a block to some seconds, on a connection outside the pools."""
        self.connection, self.seconds, self.deadline = connection, seconds, monotonic() + seconds
        if self.watchdog.sleeps:
            self.watchdog.wake()
        try:
            yield
        finally:
            with self.lock:
                self.connection = self.deadline = None

    def check(self) -> None:
        """End the call if its time is over; a long one only if the server does not answer."""
        with self.lock:
            if self.connection is None or self.deadline is None or monotonic() < self.deadline:
                return
            if self._is_over:
                self._cut()
            else:
                self._start_probe()

    @property
    def _is_over(self) -> bool:
        """Whether the call has had its time; that of a long one is counted in probes."""
        return self.seconds < LONGEST_CALL or self.probes * PROBE_EVERY >= self.seconds

    def _start_probe(self) -> None:
        self.probes += 1
        self.deadline = inf  # until the probe has an answer
        try:
            threading.Thread(target=self._probe, name="duequeue-probe", daemon=True).start()
        except RuntimeError:  # out of threads
            self.deadline = monotonic() + PROBE_EVERY

    def _probe(self) -> None:
        answers = self._server.answers(PROBE_SECONDS)
        with self.lock:
            if self.deadline != inf:
                return  # the call has ended
            if answers:
                self.deadline = monotonic() + PROBE_EVERY
            else:
                self._cut()

    def _cut(self) -> None:
        self.is_cut, self.deadline = True, inf
        try:
            number = self._server.socket_of(self.connection)
            with socket.fromfd(number, socket.AF_INET, socket.SOCK_STREAM) as duplicate:
                # If the driver closed it meanwhile, the number may already mean another file.
                if self._server.socket_of(self.connection) == number:
                    duplicate.shutdown(socket.SHUT_RDWR)
        except OSError:
            # The connection was lost just now, or the process is out of file descriptors. If the
            # call still waits, the next look tries again.
            self.is_cut, self.deadline = False, monotonic() + LOOK_EVERY

    @property
    def ends_at(self) -> float:
        """When the call must have ended; a long one ends only if the server does not answer."""
        return inf if self.deadline is None or self.seconds >= LONGEST_CALL else self.deadline

    @property
    def no_answer(self) -> str:
        """The reason that the error of a call that was cut off gives."""
        return (
            f"no answer within {self.seconds:.3g} s"
            if self._is_over
            else f"no answer, and none to a new connection within {PROBE_SECONDS} s"
        )


class Watchdog:
    """Looks after the places of this process while calls are in progress, and sleeps otherwise."""

    def __init__(self) -> None:
        self._places: list[ref[WatchedPlace]] = []
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._wake_ups: SimpleQueue[None] = SimpleQueue()
        self.sleeps = True

    def add(self, place: WatchedPlace) -> None:
        """Look after a place for as long as it exists."""
        self._places.append(ref(place))

    def wake(self) -> None:
        """Wake the thread, because a call has begun while it slept."""
        with self._starting:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._run, name="duequeue-watchdog", daemon=True
                )
                self._thread.start()
            self.sleeps = False
        self._wake_ups.put(None)

    def _run(self) -> None:
        looks_in_vain = 0
        while True:
            looks_in_vain = 0 if self._look() else looks_in_vain + 1
            if looks_in_vain > LOOKS_BEFORE_SLEEP:
                self._sleep()
                looks_in_vain = 0
            sleep(LOOK_EVERY)

    def _sleep(self) -> None:
        self.sleeps = True
        if self._look():  # a call may have begun before `sleeps` was set
            self.sleeps = False
        else:
            self._wake_ups.get()

    def _look(self) -> bool:
        """Check every place, and return whether a call is in progress in any of them."""
        is_busy = False
        for each in list(self._places):
            place = each()
            if place is None:
                self._places.remove(each)
            elif place.deadline is not None:
                is_busy = True
                place.check()
        return is_busy


_watchdogs = Shared(Watchdog)


def watchdog() -> Watchdog:
    """Return the watchdog of this process."""
    return _watchdogs.get("the one")
