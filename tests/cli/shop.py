"""A module with handlers of several queues, as a user would write it."""

import os
from dataclasses import dataclass
from typing import Any

from duequeue import AsyncDelivery, AsyncQueue, Delivery, Queue
from tests.cli.handlers import say

# Without a test that sets it, the module can still be imported.
URL = os.environ.get("SHOP_URL", "memory:shop")


@dataclass
class Order:
    """The payload of orders."""

    total: int


orders = Queue.open(URL, "typed-orders", codec=Order)
mails = Queue.open(URL, "mails")
notices = AsyncQueue.open(URL, "notices", codec=str)


@orders.handler(concurrency=1, max_attempts=1)
def charge(delivery: Delivery[Order]) -> None:
    """Fail without money."""
    if not delivery.payload.total:
        raise LookupError("no money")
    say("charged", delivery.key, delivery.payload.total)


@mails.handler
def send(delivery: Delivery[Any]) -> None:
    """Send nothing."""
    say("sent", delivery.key, delivery.payload)


@notices.handler(batch=1)
async def notify(delivery: AsyncDelivery[Any]) -> None:
    """Notify nobody."""
    say("notified", delivery.key, delivery.payload)


def plain(delivery: Delivery[Any]) -> None:
    """Belong to no queue."""
    say("plain", delivery.key, repr(delivery.payload))
