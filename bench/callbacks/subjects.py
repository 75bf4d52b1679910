"""What is measured: the bare client, and the push process, each in a process of its own."""

import asyncio
import json
import secrets
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import aiohttp
import uvloop

from duequeue import AsyncQueue, Message, SystemClock
from duequeue.callbacks.answer import CallAnswer
from duequeue.callbacks.endpoint import ENDPOINT_HEADER, Endpoint
from duequeue.callbacks.posting import Poster
from duequeue.callbacks.pushing import Push
from duequeue.callbacks.records import QUEUE, Records
from duequeue.callbacks.signing import new_keys, new_secret
from duequeue.instants import from_millis
from duequeue.parts import QueueSettings
from duequeue.payloads.stored_bytes import StoredBytes
from duequeue.process.garbage import collect_seldom

CONCURRENCY = 64
MINUTE = timedelta(minutes=1)
# An order with two lines, 127 bytes as JSON.
ORDER = {
    "customer": "c-10482",
    "lines": [{"sku": "A-1", "count": 2}, {"sku": "B-77", "count": 1}],
    "note": "leave it at the door",
    "total": "41.90",
}
BODY = json.dumps(ORDER, separators=(",", ":"), sort_keys=True).encode()
LEAD_SECONDS = 3.0

# Calls that go before the clock starts, until all connections are open and all code is loaded.
WARM_UP = 500

Result = dict[str, float]


class Count:
    """Counts calls, and notes the time from the end of the warm-up on."""

    def __init__(self, calls: int, warm_up: int = WARM_UP) -> None:
        self._warm_up, self._total = warm_up, warm_up + calls
        self._begun = self._ended = 0
        self._began = self._used = 0.0
        self.reached = asyncio.Event()

    def begin(self) -> bool:
        """Return whether another call is to be made."""
        self._begun += 1
        return self._begun <= self._total

    def end(self) -> None:
        """Note that a call has ended."""
        self._ended += 1
        if self._ended == self._warm_up:
            self._began, self._used = time.perf_counter(), time.process_time()
        elif self._ended == self._total:
            self.reached.set()

    def result(self) -> Result:
        """Return what the calls took until now."""
        seconds = time.perf_counter() - self._began
        return {"seconds": seconds, "cpu": time.process_time() - self._used}


class CountingPoster(Poster):
    """A poster that counts."""

    def __init__(self, count: Count) -> None:
        super().__init__()
        self._count = count

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], timeout: timedelta | float
    ) -> CallAnswer:
        """Post, and count."""
        answer = await super().post(url, body, headers, timeout)
        self._count.end()
        return answer


async def bare(receiver: str, calls: int) -> Result:
    """Post bodies with the bare client, without a queue and without a signature."""
    headers = {"content-type": "application/json"}
    count = Count(calls)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:

        async def work() -> None:
            while count.begin():
                async with client.post(receiver, data=BODY, headers=headers) as response:
                    await response.read()
                count.end()

        await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
        return count.result()


async def push(receiver: str, calls: int, url: str) -> Result:
    """Push due messages, of which all are in the queue before the first call."""
    count = Count(calls)
    async with prepared(url, receiver, 1, count) as (queue, start):
        await queue.offer_batch([Message(f"order-{n}", ORDER) for n in range(WARM_UP + calls)])
        async with start(CONCURRENCY):
            await count.reached.wait()
            await settled(queue)
            return count.result()


async def lateness(receiver: str, calls: int, url: str, per_second: float) -> Result:
    """Push messages that fall due evenly; the body is the instant at which one is due."""
    count = Count(calls)
    async with prepared(url, receiver, 1, count) as (queue, start), start(CONCURRENCY):
        await queue.offer_batch(Message(f"first-{n}", ORDER) for n in range(WARM_UP))
        await settled(queue)
        first = int((time.time() + LEAD_SECONDS) * 1000)
        instants = [first + int(n / per_second * 1000) for n in range(calls)]
        await queue.offer_batch(
            Message(f"order-{at}-{n}", at, from_millis(at)) for n, at in enumerate(instants)
        )
        used = time.process_time()
        await count.reached.wait()
        return {"cpu": time.process_time() - used}


async def slow(receiver: str, calls: int, url: str, endpoints: int, at_a_time: int) -> Result:
    """Push messages to many endpoints that take their time."""
    count = Count(calls, warm_up=0)
    async with prepared(url, receiver, endpoints, count) as (queue, start):
        await queue.offer_batch(
            Message(f"order-{n}", ORDER, headers={ENDPOINT_HEADER: f"e{n % endpoints}"})
            for n in range(calls)
        )
        used = time.process_time()
        async with start(at_a_time):
            await count.reached.wait()
            return {"cpu": time.process_time() - used}


Start = Callable[[int], Any]


@asynccontextmanager
async def prepared(
    url: str, receiver: str, endpoints: int, count: Count
) -> AsyncIterator[tuple[AsyncQueue[Any], Start]]:
    """Open a store with endpoints; yield a queue and what starts a push."""
    name = f"orders-{secrets.token_hex(4)}"
    settings = QueueSettings(url, SystemClock(), history=False)
    opened = await settings.open(QUEUE, StoredBytes("json"))
    records = Records(opened.queue, opened.context)
    for number in range(endpoints):
        endpoint = Endpoint(
            id=f"e{number}", queue=name, url=f"{receiver}/e{number}", concurrency=CONCURRENCY
        )
        await records.put(endpoint, new_keys(new_secret()))

    @asynccontextmanager
    async def start(calls: int) -> AsyncIterator[None]:
        async with CountingPoster(count) as poster, await Push.start(settings, poster, calls):
            collect_seldom()  # as `duequeue push` does
            yield

    async with await AsyncQueue.open(url, name) as queue:
        yield queue, start
    for number in range(endpoints):
        await records.remove(f"e{number}")
    await opened.close()


async def settled(queue: AsyncQueue[Any]) -> None:
    """Wait until a queue is empty."""
    while (await queue.list(limit=1)).messages:  # noqa: ASYNC110 - other processes may settle
        await asyncio.sleep(0.02)


SUBJECTS: dict[str, Callable[..., Awaitable[Result]]] = {
    "bare": bare,
    "push": push,
    "lateness": lateness,
    "slow": slow,
}


async def _main() -> None:
    subject, *arguments = json.loads(sys.argv[1])
    print(json.dumps(await SUBJECTS[subject](*arguments)), flush=True)


if __name__ == "__main__":
    uvloop.run(_main())
