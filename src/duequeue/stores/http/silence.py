"""A long call over HTTP may take its time, but not if the server no longer answers anybody."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException

from duequeue.process.sockets import end_connection

# In seconds.
PROBE_EVERY = 10.0
PROBE_SECONDS = 5.0
PROBE_PATH = "/healthz"
# What a proxy answers for a server that it gets no answer from.
NOT_FROM_SERVER = frozenset({502, 504})


def no_answer() -> TimeoutError:
    """Return the error of a call that was given up."""
    return TimeoutError(f"no answer, and none to another request within {PROBE_SECONDS:.3g} s")


@contextmanager
def given_up_in_silence(connection: socket.socket, answers: Callable[[], bool]) -> Iterator[None]:
    """End the call of a block if the server does not answer another request either."""
    watch = _Watch(connection, answers)
    thread = threading.Thread(target=watch.run, name="duequeue-probe", daemon=True)
    with suppress(RuntimeError):  # out of threads; the call has a limit of its own
        thread.start()
    try:
        yield
    except (OSError, HTTPException) as error:
        if watch.is_cut:
            raise no_answer() from error
        raise
    finally:
        watch.end()


class _Watch:
    def __init__(self, connection: socket.socket, answers: Callable[[], bool]) -> None:
        self._connection = connection
        self._answers = answers
        self._over = threading.Event()
        # Held while the call ends, so that the next call on the connection is never cut off.
        self._lock = threading.Lock()
        self.is_cut = False

    def run(self) -> None:
        while not self._over.wait(PROBE_EVERY):
            if not self._answers():
                self._cut()

    def end(self) -> None:
        with self._lock:
            self._over.set()

    def _cut(self) -> None:
        with self._lock:
            if not self._over.is_set():
                self.is_cut = True
                self._over.set()
                with suppress(OSError):  # it was lost just now
                    end_connection(self._connection)
