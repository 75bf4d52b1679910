"""When the last poll of a process ends, however it ends, messages wake other processes again."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from queue import SimpleQueue
from time import monotonic
from typing import Any

import pytest

from duequeue import AsyncQueue, Queue
from duequeue.backends import backend_for
from duequeue.contract.phrases import MILLISECOND, MINUTE, PATIENCE, in_background
from duequeue.contract.stage import until
from duequeue.instants import LATEST
from duequeue.port.alerts import Alert
from duequeue.port.store import Steps, Store
from duequeue.process.line import Line
from duequeue.stores import mailbox
from duequeue.stores.mailbox import open_line
from tests.fixtures.redis_server import RedisServer
from tests.race.crew import Hand
from tests.redis.waiting import KIND, LISTENERS, offer_in_silence, opened_store, poll_once


class Interrupted(Exception):
    """What ends a poll in these tests."""


class FailingClock:
    """The machine's clock, until it fails."""

    fails = False

    def now(self) -> datetime:
        if self.fails:
            raise Interrupted
        return datetime.now(UTC)


@pytest.fixture
def client(redis_server: RedisServer, redis_url: str) -> Iterator[Any]:
    with redis_server.client(int(redis_url.rpartition("/")[2])) as client:
        yield client


@pytest.fixture
def other(redis_url: str, client: Any) -> Iterator[Hand]:
    """Another process that waits for a message."""
    hand = Hand()
    hand.start(partial(poll_once, redis_url))
    until(lambda: client.scard(LISTENERS) == 1)
    yield hand
    hand.end()


def both_wait(client: Any) -> bool:
    """Return whether both processes are entered, and hear what is published to them."""
    channels = client.smembers(LISTENERS)
    return len(channels) == 2 and all(heard == 1 for _, heard in client.pubsub_numsub(*channels))


def let_it_time_out(queue: Queue[int], clock: FailingClock, client: Any) -> None:
    def has_waited_too() -> bool:
        assert queue.poll(50 * MILLISECOND) is None  # the first one opens the line
        return both_wait(client)

    until(has_waited_too)


def stop_the_consumer(queue: Queue[int], clock: FailingClock, client: Any) -> None:
    with queue.consume(print):
        until(partial(both_wait, client))


def let_it_fail(queue: Queue[int], clock: FailingClock, client: Any) -> None:
    polling = in_background(queue.poll)
    until(partial(both_wait, client))
    clock.fails = True
    redis_wakes_all(client)
    with pytest.raises(Interrupted):
        polling.result(PATIENCE)
    clock.fails = False


def redis_wakes_all(client: Any) -> None:
    """Wake each process without taking it out."""
    for channel in client.smembers(LISTENERS):
        client.publish(channel, f"0 {KIND}")


@pytest.mark.parametrize("end_a_wait", [let_it_time_out, stop_the_consumer, let_it_fail])
def test_an_offer_after_the_last_poll_wakes_another_process(
    redis_url: str,
    client: Any,
    other: Hand,
    end_a_wait: Callable[[Queue[int], FailingClock, Any], None],
) -> None:
    clock = FailingClock()
    with Queue[int].open(redis_url, "orders", poll_interval=10 * MINUTE, clock=clock) as queue:
        end_a_wait(queue, clock, client)
        queue.offer("a", 1)
        assert other.outcome().value == "a"


async def until_both_wait(client: Any) -> None:
    await asyncio.to_thread(until, partial(both_wait, client))


async def let_it_time_out_there(queue: AsyncQueue[int], client: Any) -> None:
    gives_up_at = monotonic() + PATIENCE
    while not both_wait(client):
        assert monotonic() < gives_up_at, "they never both wait"
        assert await queue.poll(50 * MILLISECOND) is None


async def stop_the_consumer_there(queue: AsyncQueue[int], client: Any) -> None:
    async def handle(delivery: object) -> None:
        pytest.fail(f"{delivery} was not for this process")

    async with queue.consume(handle):
        await until_both_wait(client)


async def cancel_it(queue: AsyncQueue[int], client: Any) -> None:
    polling = asyncio.create_task(queue.poll())
    await until_both_wait(client)
    polling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await polling


async def cut_it_off(queue: AsyncQueue[int], client: Any) -> None:
    limit = asyncio.timeout(None)

    async def poll_until_the_limit() -> None:
        async with limit:
            await queue.poll(MINUTE)

    polling = asyncio.create_task(poll_until_the_limit())
    await until_both_wait(client)
    limit.reschedule(asyncio.get_running_loop().time())
    with pytest.raises(TimeoutError):
        await polling


@pytest.mark.parametrize(
    "end_a_wait", [let_it_time_out_there, stop_the_consumer_there, cancel_it, cut_it_off]
)
def test_an_offer_after_the_last_awaiting_poll_wakes_another_process(
    redis_url: str,
    client: Any,
    other: Hand,
    end_a_wait: Callable[[AsyncQueue[int], Any], Awaitable[None]],
) -> None:
    async def run() -> str:
        opening = AsyncQueue[int].open(redis_url, "orders", poll_interval=10 * MINUTE)
        async with opening as queue:
            await end_a_wait(queue, client)
            await queue.offer("a", 1)
            value: str = (await asyncio.to_thread(other.outcome)).value
            return value

    assert asyncio.run(run()) == "a"


def test_one_poll_leaves_while_another_still_waits(redis_url: str, client: Any) -> None:
    with Queue[int].open(redis_url, "orders", poll_interval=10 * MINUTE) as queue:
        polling = in_background(queue.poll)
        until(lambda: client.scard(LISTENERS) == 1)
        assert queue.poll(50 * MILLISECOND) is None
        client.sadd(LISTENERS, "dq:wake:elsewhere")
        with client.pubsub() as elsewhere:
            elsewhere.subscribe("dq:wake:elsewhere")
            until(lambda: client.pubsub_numsub("dq:wake:elsewhere")[0][1] == 1)
            queue.offer("a", 1)
            delivery = polling.result(PATIENCE)
            assert delivery is not None
            assert delivery.key == "a"
            assert client.smembers(LISTENERS) == {b"dq:wake:elsewhere"}


class Woken:
    """A process in which one poll waits and can be woken."""

    def __init__(self, url: str, client: Any) -> None:
        self._client = client
        self.rings: SimpleQueue[Alert] = SimpleQueue()
        known = {*client.pubsub_channels("dq:wake:*")}
        self.alerts = backend_for(url).alerts(None, KIND, self.rings.put)
        assert self.alerts.waiting is not None
        self.poll = self.alerts.waiting()
        self.poll.__enter__()
        self.alerts.listen(PATIENCE)
        self.await_ring()  # the line is open
        (self.channel,) = {*client.pubsub_channels("dq:wake:*")} - known

    def await_ring(self) -> Alert:
        return self.rings.get(timeout=PATIENCE)

    def wake(self, due_at: int = 0) -> None:
        self._client.publish(self.channel, f"{due_at} {KIND}")
        assert self.await_ring() == due_at

    def leave(self) -> None:
        self.poll.__exit__(None, None, None)


@pytest.fixture
def woken(redis_url: str, client: Any, other: Hand) -> Iterator[Woken]:
    """This process, besides another one that waits."""
    woken = Woken(redis_url, client)
    yield woken
    woken.alerts.close()


def test_a_wake_up_for_which_nobody_has_looked_is_passed_on(
    redis_url: str, woken: Woken, other: Hand
) -> None:
    offer_in_silence(redis_url, "a")
    woken.wake()
    woken.leave()
    assert other.outcome().value == "a"


def test_a_wake_up_for_later_is_passed_on_to_a_process_that_goes_on_waiting(
    redis_url: str, woken: Woken, other: Hand, client: Any
) -> None:
    (others,) = client.smembers(LISTENERS)
    with client.pubsub() as overheard:
        overheard.subscribe(others)
        until(lambda: client.pubsub_numsub(others)[0][1] == 2)
        woken.wake(LATEST)
        woken.leave()
        until(lambda: overheard.get_message(ignore_subscribe_messages=True) is not None)
    until(lambda: client.scard(LISTENERS) == 1)
    with Queue[int].open(redis_url, "orders") as queue:
        queue.offer("a", 1)
    assert other.outcome().value == "a"


def test_a_wake_up_is_passed_on_when_the_queue_is_closed(
    redis_url: str, client: Any, other: Hand
) -> None:
    woken = Woken(redis_url, client)
    offer_in_silence(redis_url, "a")
    woken.wake()
    woken.alerts.close()
    woken.leave()
    assert other.outcome().value == "a"


def test_a_wake_up_for_a_queue_that_was_closed_is_passed_on(
    redis_url: str, client: Any, other: Hand
) -> None:
    (others,) = client.smembers(LISTENERS)
    with Queue[int].open(redis_url, "bills", poll_interval=10 * MINUTE):  # keeps the line open
        with Queue[int].open(redis_url, "orders", poll_interval=10 * MINUTE) as queue:
            let_it_time_out(queue, FailingClock(), client)
        (ours,) = client.smembers(LISTENERS) - {others}
        offer_in_silence(redis_url, "a")
        assert client.publish(ours, f"0 {KIND}") == 1
        assert other.outcome().value == "a"


def begin_to_claim(store: Store) -> Steps[object]:
    return store.claim(1, 0, 1, 10)


def begin_to_look(store: Store) -> Steps[object]:
    return store.earliest_due(0)


@pytest.mark.parametrize("begin", [begin_to_claim, begin_to_look])
def test_a_wake_up_is_passed_on_when_the_look_fails(
    redis_url: str, woken: Woken, other: Hand, begin: Callable[[Store], Steps[object]]
) -> None:
    offer_in_silence(redis_url, "a")
    woken.wake()
    with opened_store(redis_url) as (store, _):
        look = begin(store)
    next(look)
    with pytest.raises(ConnectionResetError):
        look.throw(ConnectionResetError())
    woken.leave()
    assert other.outcome().value == "a"


def test_a_line_that_opens_at_once_rings_once(
    redis_url: str, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_at_once(*given: Any) -> Line[Any]:
        line = open_line(*given)
        until(lambda: line.is_working)
        return line

    monkeypatch.setattr(mailbox, "open_line", open_at_once)
    woken = Woken(redis_url, client)
    woken.wake(1)
    woken.leave()
    woken.alerts.close()


def test_a_wake_up_rings_once_however_often_the_queue_is_open(redis_url: str, client: Any) -> None:
    woken = Woken(redis_url, client)
    again = backend_for(redis_url).alerts(None, KIND, woken.rings.put)
    try:
        woken.wake(1)
        woken.wake(2)
    finally:
        woken.leave()
        again.close()
        woken.alerts.close()
