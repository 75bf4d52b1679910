"""The peer beanstalkd, with the client greenstalk."""

import json
import random
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from greenstalk import Client, Job

from bench.contender import Contender, pause, stamp, timed


class Beanstalkd(Contender):
    """A server written in C, whose log is flushed at every write."""

    notes = "in memory, with a log; delays in whole seconds; no unique keys"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        parts = urlsplit(url)
        self._client = Client((str(parts.hostname), int(parts.port or 0)))

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def load(self, messages: int) -> None:
        """Put messages."""
        self.offer_one(messages)

    def offer_one(self, messages: int) -> float:
        """Put messages."""
        return timed(messages, lambda _: self._client.put(self.payload))

    def poll_ack_one(self, messages: int) -> float:
        """Reserve and delete one at a time."""
        return timed(messages, lambda _: self._client.delete(self._client.reserve()))

    def consume(self, messages: int) -> float:
        """Reserve and delete one at a time, because it has nothing for many."""
        return self.poll_ack_one(messages)

    def receive(self, messages: int, ready: Callable[[], None]) -> list[float]:
        """Reserve and delete one at a time."""
        ready()
        return [self._age(self._client.reserve()) for _ in range(messages)]

    def ping(self, messages: int) -> None:
        """Put messages."""
        for _ in range(messages):
            time.sleep(pause())
            self._client.put(json.dumps(stamp()))

    def keep_time(self, messages: int, seconds: float) -> list[float]:
        """Put messages for later, and reserve them."""
        for _ in range(messages):
            delay = random.randint(1, round(seconds))
            self._client.put(json.dumps(stamp() + delay * 1000), delay=delay)
        return self.receive(messages, lambda: None)

    def _age(self, job: Job) -> float:
        age = stamp() - float(json.loads(job.body))
        self._client.delete(job)
        return age
