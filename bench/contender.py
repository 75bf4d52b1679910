"""The methods of contenders, which are small files in `contenders` and `limits`."""

import random
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from time import perf_counter, time
from typing import TypeVar

T = TypeVar("T")

PAYLOAD_BYTES = 100
BATCH = 100


class Contender:
    """One way to queue messages, on its own store, which is empty at first.

    A contender has only the methods that it can do well, and takes part in their workloads.
    """

    name = ""
    notes = ""

    def __init__(self, url: str) -> None:
        self.url = url
        self.payload = "x" * (PAYLOAD_BYTES - 2)  # JSON adds two quotes

    def close(self) -> None:
        """Close all connections."""

    def load(self, messages: int) -> None:
        """Put in messages that are due now; this is not timed."""
        raise NotImplementedError

    def offer_one(self, messages: int) -> float:
        """Put in one message after another, and return the seconds."""
        raise NotImplementedError

    def offer_together(self, messages: int, callers: int) -> float:
        """Do the same with several callers at once, in threads or tasks of one process."""
        raise NotImplementedError

    def offer_batch(self, messages: int) -> float:
        """Put in all messages, in the fastest way that there is for many."""
        raise NotImplementedError

    def poll_ack_one(self, messages: int) -> float:
        """Take one message and settle it, then take the next one."""
        raise NotImplementedError

    def poll_ack_many(self, messages: int) -> float:
        """Take a hundred messages and settle them, then take the next hundred."""
        raise NotImplementedError

    def consume(self, messages: int) -> float:
        """Run a worker with an empty handler, and return the seconds from first to last call."""
        raise NotImplementedError

    def receive(self, messages: int, ready: Callable[[], None]) -> list[float]:
        """Call `ready` once waiting, and return how old each message is at its handler, in ms."""
        raise NotImplementedError

    def ping(self, messages: int) -> None:
        """Send messages to a receiver; wait `pause()` before each, and put `stamp()` into it."""
        raise NotImplementedError

    def keep_time(self, messages: int, seconds: float) -> list[float]:
        """Schedule messages over the next seconds, and return how late each was, in ms."""
        raise NotImplementedError

    def fill_future(self, messages: int) -> None:
        """Put in messages that are due in a year."""
        raise NotImplementedError

    def take_turns(self, turns: int) -> list[float]:
        """Put in, take and settle single messages, and return the milliseconds of each take."""
        raise NotImplementedError

    def stay_idle(self, seconds: float) -> None:
        """Run a worker with nothing to do."""
        raise NotImplementedError

    def offer_hundreds(self, messages: int) -> float:
        """Put in a hundred messages at a time, with a few callers at once."""
        raise NotImplementedError

    def take_hundreds(self, messages: int) -> float:
        """Take a hundred messages and settle them, with a few callers at once."""
        raise NotImplementedError

    def offer_connected(self, messages: int, connections: int) -> float:
        """Put in one message after the other on each of many connections."""
        raise NotImplementedError

    def share_when_idle(self, clients: int) -> float:
        """Return the share of a core that a server needs while clients wait and nothing is due."""
        raise NotImplementedError

    def wake(self, clients: int) -> list[float]:
        """Have each waiting client get a message, and return how late each came, in ms."""
        raise NotImplementedError

    def write_new(self, messages: int) -> float:
        """Write a table of new messages, and return the seconds."""
        raise NotImplementedError

    def write_equal(self, messages: int) -> float:
        """Write a table of messages that are all stored already, without a change."""
        raise NotImplementedError

    def write_changed(self, messages: int) -> float:
        """Write a table of messages that are all stored already, with other payloads."""
        raise NotImplementedError

    def read_all(self, messages: int) -> float:
        """Read all columns of messages, and change nothing."""
        raise NotImplementedError

    def drain(self, messages: int) -> float:
        """Take and settle messages, and return the seconds at the speed of a warm process."""
        raise NotImplementedError

    def watch_memory(self, messages: int) -> list[float]:
        """Do the same, and return the memory of the driver after each micro-batch, in MB."""
        raise NotImplementedError


def takes_part(contender: type[Contender], method: str) -> bool:
    """Return whether a contender has a method."""
    return getattr(contender, method) is not getattr(Contender, method)


def timed(times: int, call: Callable[[int], object]) -> float:
    """Call with 0, 1, 2, …, and return the seconds."""
    began = perf_counter()
    for number in range(times):
        call(number)
    return perf_counter() - began


def chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Cut items into lists of at most that size."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


class Tally:
    """Counts the calls of a handler, on any thread, up to the last one."""

    def __init__(self, expected: int, on_done: Callable[[], object] = lambda: None) -> None:
        self._expected = expected
        self._on_done = on_done
        self._calls: list[float] = []
        self._done = threading.Event()

    def count(self) -> None:
        """Count one call."""
        self._calls.append(perf_counter())
        if len(self._calls) == self._expected:
            self._done.set()
            self._on_done()

    def wait(self) -> None:
        """Wait for the last call."""
        self._done.wait()

    @property
    def seconds(self) -> float:
        """The time from the first call to the last, plus that of one more call."""
        calls = len(self._calls)
        return (self._calls[-1] - self._calls[0]) * calls / (calls - 1)


def stamp() -> float:
    """Return the present instant in milliseconds, to send in a message."""
    return time() * 1000


def pause() -> float:
    """Return how many seconds to wait before a ping, so that all workers are asleep."""
    return random.uniform(0.01, 0.02)


def lead_time(messages: int) -> float:
    """Return the seconds until the first scheduled message, by when all must be stored."""
    return 1 + messages / 5000
