"""Requests to stop a worker or a job, which come from signals or from a parent process."""

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from multiprocessing.connection import Connection, wait
from typing import Protocol

from duequeue.process.stop_signals import STOP_SIGNALS, answered_by


class StopRequest(Enum):
    """How to stop."""

    STOP = "stop"
    STOP_NOW = "stop now"


class StopRequests(Protocol):
    """A source of stop requests."""

    def await_request(self, seconds: float) -> StopRequest | None:
        """Wait for the next request; return None if none comes in time."""


class Signals:
    """SIGTERM and SIGINT as requests: the first is for a clean stop, later ones for a hard stop."""

    def __init__(self, incoming: socket.socket) -> None:
        self.incoming = incoming  # readable once a signal has come
        self._received = 0

    def take(self) -> StopRequest:
        """Return the request that a received signal stands for."""
        self.incoming.recv(1)
        self._received += 1
        return StopRequest.STOP if self._received == 1 else StopRequest.STOP_NOW

    def await_request(self, seconds: float) -> StopRequest | None:
        """Wait for the next request; return None if none comes in time."""
        return self.take() if wait([self.incoming], seconds) else None


class SignalsAndParent:
    """Requests to one of several worker processes.

    A signal may reach all processes at once and also be passed on by the parent, so here a second
    signal adds nothing. A parent that is gone counts as a request to stop.
    """

    def __init__(self, signals: Signals, parent: "Connection[object, object]") -> None:
        self._signals = signals
        self._parent: Connection[object, object] | None = parent

    def await_request(self, seconds: float) -> StopRequest | None:
        """Wait for the next request; return None if none comes in time."""
        pipes = [] if self._parent is None else [self._parent]
        ready = wait([self._signals.incoming, *pipes], seconds)
        if self._parent is not None and self._parent in ready:
            try:
                return StopRequest(self._parent.recv())
            except (EOFError, OSError):
                self._parent = None
                return StopRequest.STOP
        if ready:
            self._signals.take()
            return StopRequest.STOP
        return None


@contextmanager
def listening_to_signals() -> Iterator[Signals]:
    """Turn signals into requests, including those that were blocked until now."""
    incoming, outgoing = socket.socketpair()
    outgoing.settimeout(0)

    def on_signal() -> None:
        with suppress(BlockingIOError):
            outgoing.send(b"!")

    with incoming, outgoing, answered_by(on_signal):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        yield Signals(incoming)


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Block signals while a process is started; it inherits the block, so it loses no signal."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
