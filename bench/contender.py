"""What a contender may take part in; each is one small file in `contenders` or `limits`."""

import random
import threading
from collections.abc import Callable
from time import perf_counter, time

PAYLOAD_BYTES = 100
BATCH = 100


class Contender:
    """One way to queue messages, on a store of its own that is empty at first.

    A contender has only those methods that it can do well; it takes part where it has one.
    """

    name = ""
    notes = ""

    def __init__(self, url: str) -> None:
        self.url = url
        self.payload = "x" * (PAYLOAD_BYTES - 2)  # as JSON, two quotes more

    def close(self) -> None:
        """Give everything back."""

    def load(self, messages: int) -> None:
        """Put in that many messages, due now; nobody takes the time."""
        raise NotImplementedError

    def offer_one(self, messages: int) -> float:
        """Put in one message after the other; return the seconds it took."""
        raise NotImplementedError

    def offer_together(self, messages: int, callers: int) -> float:
        """The same by several callers at once, in threads or tasks of one process."""
        raise NotImplementedError

    def offer_batch(self, messages: int) -> float:
        """Put them all in, in the fastest way there is for many."""
        raise NotImplementedError

    def poll_ack_one(self, messages: int) -> float:
        """Take one message and settle it, then the next."""
        raise NotImplementedError

    def poll_ack_many(self, messages: int) -> float:
        """Take a hundred and settle them, then the next hundred."""
        raise NotImplementedError

    def consume(self, messages: int) -> float:
        """Run a worker on a handler that does nothing; from the first call to the last."""
        raise NotImplementedError

    def receive(self, messages: int, ready: Callable[[], None]) -> list[float]:
        """Say when waiting; return the age of each message at its handler, in milliseconds."""
        raise NotImplementedError

    def ping(self, messages: int) -> None:
        """Send messages to a receiver, each made of `stamp()`, and `pause()` before each."""
        raise NotImplementedError

    def keep_time(self, messages: int, seconds: float) -> list[float]:
        """Schedule messages over the next seconds; return how late each was, in milliseconds."""
        raise NotImplementedError

    def fill_future(self, messages: int) -> None:
        """Have that many messages lie there that are due in a year."""
        raise NotImplementedError

    def take_turns(self, turns: int) -> list[float]:
        """Put one message in, take it out and settle it; only taking it out counts, in ms."""
        raise NotImplementedError

    def stay_idle(self, seconds: float) -> None:
        """Run a worker with nothing to do."""
        raise NotImplementedError

    def write_new(self, messages: int) -> float:
        """Write a table of that many messages, none of which is there; return the seconds."""
        raise NotImplementedError

    def write_equal(self, messages: int) -> float:
        """Write the same table once more, when all of it is there."""
        raise NotImplementedError

    def write_changed(self, messages: int) -> float:
        """Write it when all of it is there with other payloads."""
        raise NotImplementedError

    def read_all(self, messages: int) -> float:
        """Read that many messages with everything that is known of them, and change nothing."""
        raise NotImplementedError

    def drain(self, messages: int) -> float:
        """Take that many out and settle them; return the seconds at the pace once all is warm."""
        raise NotImplementedError

    def watch_memory(self, messages: int) -> list[float]:
        """Do the same; return how many MB the driver had after each micro-batch."""
        raise NotImplementedError


def takes_part(contender: type[Contender], method: str) -> bool:
    """Tell whether a contender has a method."""
    return getattr(contender, method) is not getattr(Contender, method)


def timed(times: int, call: Callable[[int], object]) -> float:
    """Call with 0, 1, 2, …; return the seconds it took."""
    began = perf_counter()
    for number in range(times):
        call(number)
    return perf_counter() - began


class Tally:
    """Counts calls of a handler, on any thread, and tells when the last one came."""

    def __init__(self, expected: int, on_done: Callable[[], object] = lambda: None) -> None:
        self._expected = expected
        self._on_done = on_done
        self._calls: list[float] = []
        self._done = threading.Event()

    def count(self) -> None:
        """Note one call."""
        self._calls.append(perf_counter())
        if len(self._calls) == self._expected:
            self._done.set()
            self._on_done()

    def wait(self) -> None:
        """Wait for the last call."""
        self._done.wait()

    @property
    def seconds(self) -> float:
        """From the first call to the last, and one step more."""
        calls = len(self._calls)
        return (self._calls[-1] - self._calls[0]) * calls / (calls - 1)


def stamp() -> float:
    """The present instant in milliseconds, to be sent in a message."""
    return time() * 1000


def pause() -> float:
    """Seconds to wait before a ping, so that it finds everybody asleep."""
    return random.uniform(0.01, 0.02)


def lead_time(messages: int) -> float:
    """Seconds from now until the first of many scheduled messages, so that all are in by then."""
    return 1 + messages / 5000
