"""What workers under test hand messages to. They tell what they do on standard output."""

import asyncio
import functools
import os
import sys
import threading
from pathlib import Path
from typing import Any, NoReturn

from duequeue import AsyncDelivery, Delivery
from duequeue.consumer.bound_handler import BoundHandler

nothing_to_call = 7


def tell(delivery: Delivery[Any]) -> None:
    """Handle at once."""
    say("handled", delivery.key, repr(delivery.payload))


async def tell_async(delivery: AsyncDelivery[Any]) -> None:
    """Handle at once, awaited."""
    await asyncio.sleep(0)
    say("handled", delivery.key, repr(delivery.payload))


def wait(delivery: Delivery[Any]) -> None:
    """Handle until somebody writes to the pipe that the payload names."""
    say("begun", delivery.key, os.getpid())
    Path(delivery.payload).read_text()
    say("ended", delivery.key, os.getpid())


async def wait_async(delivery: AsyncDelivery[Any]) -> None:
    """The same, awaited."""
    say("begun", delivery.key, os.getpid())
    await asyncio.to_thread(Path(delivery.payload).read_text)
    say("ended", delivery.key, os.getpid())


def hang(delivery: Delivery[Any]) -> None:
    """Never end."""
    say("begun", delivery.key, os.getpid())
    threading.Event().wait()


def die_of_one(delivery: Delivery[Any]) -> None:
    """End the process if this is the deadly message."""
    say("begun", delivery.key, os.getpid())
    if delivery.key == "deadly":
        os._exit(137)


async def hang_async(delivery: AsyncDelivery[Any]) -> None:
    """Never end, but let oneself be cancelled."""
    say("begun", delivery.key, os.getpid())
    await asyncio.Event().wait()


async def block_the_loop(delivery: AsyncDelivery[Any]) -> None:
    """Never end, and let nobody else on the loop do anything."""
    say("begun", delivery.key, os.getpid())
    threading.Event().wait()


def fail(delivery: Delivery[Any]) -> NoReturn:
    """Always fail."""
    raise LookupError(delivery.key)


def say(*words: object) -> None:
    """Print a line at once, so that two processes do not print into each other's."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


@functools.wraps(tell)
def decorated(delivery: Delivery[Any]) -> None:
    """What a decorator of the user's own returns."""
    say("decorated", delivery.key)
    tell(delivery)


bound: BoundHandler[Delivery[Any], None, None] = BoundHandler(decorated, lambda: None)
