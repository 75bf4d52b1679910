"""What a worker is told to do: by signals, and in a crew by its parent."""

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from multiprocessing.connection import Connection, wait
from typing import Protocol

from duequeue.process.stop_signals import STOP_SIGNALS, answered_by


class Order(Enum):
    """How to stop."""

    STOP = "stop"
    STOP_NOW = "stop now"


class Orders(Protocol):
    """Where orders come from."""

    def await_order(self, seconds: float) -> Order | None:
        """Wait for the next; None if none came in time."""


class Signals:
    """SIGTERM and SIGINT as orders: the first to stop in good order, the others at once."""

    def __init__(self, incoming: socket.socket) -> None:
        self.incoming = incoming  # readable once a signal has come
        self._heard = 0

    def take(self) -> Order:
        """Return the order that a signal stands for."""
        self.incoming.recv(1)
        self._heard += 1
        return Order.STOP if self._heard == 1 else Order.STOP_NOW

    def await_order(self, seconds: float) -> Order | None:
        """Wait for the next; None if none came in time."""
        return self.take() if wait([self.incoming], seconds) else None


class FromParent:
    """Orders of a crew's member.

    A signal may reach the whole crew at once and be passed on by the parent too, so that here a
    second one means nothing new. When the parent is gone, it is time to stop.
    """

    def __init__(self, signals: Signals, parent: "Connection[object, object]") -> None:
        self._signals = signals
        self._parent: Connection[object, object] | None = parent

    def await_order(self, seconds: float) -> Order | None:
        """Wait for the next; None if none came in time."""
        lines = [] if self._parent is None else [self._parent]
        ready = wait([self._signals.incoming, *lines], seconds)
        if self._parent is not None and self._parent in ready:
            try:
                return Order(self._parent.recv())
            except (EOFError, OSError):
                self._parent = None
                return Order.STOP
        if ready:
            self._signals.take()
            return Order.STOP
        return None


@contextmanager
def listening_to_signals() -> Iterator[Signals]:
    """Turn signals into orders, also those that were held back until now."""
    incoming, outgoing = socket.socketpair()
    outgoing.settimeout(0)

    def on_signal() -> None:
        with suppress(BlockingIOError):
            outgoing.send(b"!")

    with incoming, outgoing, answered_by(on_signal):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        yield Signals(incoming)


@contextmanager
def holding_signals_back() -> Iterator[None]:
    """Let none be lost on a process that starts: it is born with them held back."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
