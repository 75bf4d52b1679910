"""How a request waits for a queue that does not exist yet, and that it must not make itself."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from time import monotonic

from duequeue.errors import StoreUnavailable
from duequeue.server.departures import ClientGone
from duequeue.server.exchange import Exchange


class _Waiter:
    """Somebody who looks again when a queue was made, and can be made to stop waiting."""

    def __init__(self) -> None:
        self.stopped = False
        self.event = asyncio.Event()

    def stop(self) -> None:
        self.stopped = True
        self.event.set()

    async def wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self.event.wait(), seconds)


async def wait_for_queue(
    exchange: Exchange, name: str, type_name: str, wait: timedelta
) -> timedelta:
    """Wait until an offer has made a queue, and return the time left.

    A queue that another process makes is noticed after the poll interval.
    """
    queues = exchange.service.queues
    interval = queues.settings.poll_interval.total_seconds()
    ends_at = monotonic() + wait.total_seconds()
    waiter = _Waiter()
    gone = asyncio.ensure_future(exchange.receive())
    gone.add_done_callback(lambda _: waiter.stop())
    try:
        with exchange.service.live.waiting(waiter, exchange.grant), queues.informing(waiter.event):
            while not waiter.stopped and (left := ends_at - monotonic()) > 0:
                waiter.event.clear()
                with suppress(StoreUnavailable):  # who waits outlives an outage
                    if await queues.knows(name, type_name):
                        break
                await waiter.wait(min(left, interval))
        if gone.done():
            raise ClientGone
    finally:
        gone.cancel()
    exchange.check_token_again()
    return timedelta(seconds=0 if waiter.stopped else max(0.0, ends_at - monotonic()))
