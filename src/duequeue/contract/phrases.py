"""The few phrases in which the contract is written."""

import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import timedelta
from threading import Thread
from typing import Any, TypeVar

from duequeue import BuriedMessage, QueueStats, Snapshot
from duequeue.contract.faces import DeliveryFace, QueueFace

T = TypeVar("T")

MILLISECOND = timedelta(milliseconds=1)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
DEFAULT_LEASE = 5 * MINUTE
CONSUMER_LEASE = MINUTE
DEFAULT_POLL_INTERVAL = 3 * SECOND
PATIENCE = 30.0  # seconds of real time after which a call that should have ended is stuck

ANOTHER_PROCESS = """
import datetime, sys
from duequeue import Queue

url, key = sys.argv[1:]
with Queue.open(url, "orders") as queue:
    queue.offer(key, 1, datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC))
"""


@dataclass(frozen=True)
class PickyCodec:
    """Text that cannot be decoded when it begins with `rotten`."""

    type_name: str = "picky"

    def encode(self, value: str, /) -> bytes:
        return value.encode()

    def decode(self, data: bytes, /) -> str:
        if data.startswith(b"rotten"):
            raise LookupError("rotten to the core")
        return data.decode()


def claim(queue: QueueFace) -> DeliveryFace:
    """Poll a delivery that must be there."""
    delivery = queue.try_poll()
    assert delivery is not None, "nothing was claimable"
    return delivery


def snapshot(queue: QueueFace, key: str) -> Snapshot[Any]:
    """Read a message that must be there."""
    found = queue.read(key)
    assert found is not None, f"{key!r} is not there"
    return found


def keys_of(found: Iterable[DeliveryFace | BuriedMessage[Any]]) -> list[str]:
    return [one.key for one in found]


def attempts_to_settle(delivery: DeliveryFace) -> list[bool]:
    """Try everything a holder can do, the gentlest first."""
    return [delivery.extend(), delivery.release(), delivery.bury("no longer mine"), delivery.ack()]


def everything_in(
    queue: QueueFace, *keys: str
) -> tuple[QueueStats, list[Snapshot[Any] | None], list[BuriedMessage[Any]]]:
    """All that can be seen of a queue, to be compared before and after."""
    return queue.stats(), [queue.read(key) for key in keys], queue.buried(100)


def in_background(call: Callable[[], T]) -> "Future[T]":
    """Run a call in a thread of its own."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - the thread that waits raises it
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future


def offer_from_another_process(url: str, key: str) -> None:
    """Offer a message that was due long ago, without a wake-up for this process."""
    command = [sys.executable, "-c", ANOTHER_PROCESS, url, key]
    subprocess.run(command, check=True, timeout=PATIENCE)
