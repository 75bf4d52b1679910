"""The server goes away or loses its scripts: calls wait for it, and nothing is stranded."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
from redis.exceptions import ConnectionError as LostConnection

from duequeue import AsyncQueue, Message, OfferOutcome, RetryPolicy, StoreUnavailable
from duequeue.contract.faces import AsyncFace, Blocking, Face, LoopThread
from duequeue.contract.phrases import PATIENCE, SECOND, claim, in_background
from duequeue.contract.stage import until
from tests.fixtures.redis_server import RedisServer
from tests.race.test_outage import everything_said
from tests.redis.structure import check_structure

CREATED = OfferOutcome.CREATED
A_MOMENT = 0.3  # seconds in which a call that has to wait does not end
BUDGET = SECOND
KIND = "orders|json"


@pytest.fixture
def frail_url(frail_redis: RedisServer) -> Iterator[str]:
    """A database on the server that may be stopped."""
    url = frail_redis.fresh_url()
    yield url
    frail_redis.ask("FLUSHALL")


def database_of(url: str) -> int:
    return int(url.rpartition("/")[2])


def killed(server: RedisServer) -> None:
    server.kill()
    server.start()


RESTARTS: list[Callable[[RedisServer], None]] = [RedisServer.restart, killed]


@pytest.mark.parametrize("restart", RESTARTS, ids=["stopped", "killed"])
def test_a_queue_outlives_a_restart(
    frail_redis: RedisServer, frail_url: str, face: Face, restart: Callable[[RedisServer], None]
) -> None:
    with face.open(frail_url, "orders") as queue:
        queue.offer("before", 1)
        delivery = claim(queue)
        restart(frail_redis)
        assert queue.offer("after", 1) is CREATED
        assert delivery.ack()
        assert [each.key for each in queue.try_poll_many(10)] == ["after"]


def test_a_call_waits_for_the_server(frail_redis: RedisServer, frail_url: str, face: Face) -> None:
    with face.open(frail_url, "orders") as queue:
        with frail_redis.stopped():
            offering = in_background(partial(queue.offer, "a", 1))
            with pytest.raises(TimeoutError):
                offering.result(A_MOMENT)
        assert offering.result(PATIENCE) is CREATED


def test_a_waiting_poll_outlives_a_restart(
    frail_redis: RedisServer, frail_url: str, face: Face
) -> None:
    with face.open(frail_url, "orders", poll_interval=SECOND / 10) as queue:
        polling = in_background(queue.poll)
        with pytest.raises(TimeoutError):
            polling.result(A_MOMENT)
        frail_redis.restart()
        queue.offer("a", 1)
        delivery = polling.result(PATIENCE)
        assert delivery is not None
        assert delivery.ack()


def test_a_server_that_is_gone_is_named_and_its_password_is_not(
    frail_redis: RedisServer, frail_url: str, face: Face, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    options: dict[str, Any] = {"retry": RetryPolicy(budget=BUDGET)}
    with face.open(frail_url, "orders", **options) as queue:
        queue.offer("a", 1)
        with frail_redis.stopped():
            with pytest.raises(StoreUnavailable) as of_a_call:
                queue.offer("b", 1)
            with pytest.raises(StoreUnavailable) as of_opening:
                face.open(frail_url, "orders", **options)
        for raised in (of_a_call, of_opening):
            assert f"127.0.0.1:{frail_redis.port}" in str(raised.value)
            assert isinstance(raised.value.__cause__, LostConnection)
            assert frail_redis.password not in everything_said(raised.value, queue)
    assert frail_redis.password not in caplog.text


def test_a_server_that_forgot_its_scripts_gets_them_again(
    redis_server: RedisServer, redis_url: str, face: Face
) -> None:
    with face.open(redis_url, "orders") as queue:
        for number in range(3):
            redis_server.ask("SCRIPT", "FLUSH")
            assert queue.offer(f"key-{number}", 1) is CREATED
            redis_server.ask("SCRIPT", "FLUSH")
            assert claim(queue).ack()


def test_connections_lost_while_idle(redis_server: RedisServer, redis_url: str, face: Face) -> None:
    with face.open(redis_url, "orders") as queue:
        for number in range(3):
            queue.offer(f"key-{number}", 1)
            redis_server.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        assert queue.stats().total == 3


def test_a_server_that_only_reads_is_retried(
    frail_redis: RedisServer, frail_url: str, face: Face
) -> None:
    with face.open(frail_url, "orders") as queue:
        queue.offer("a", 1)
        frail_redis.ask("REPLICAOF", "127.0.0.1", "1")
        try:
            impatient = pytest.raises(StoreUnavailable, match="is a replica")
            with impatient, face.open(frail_url, "orders", retry=RetryPolicy.never()):
                pass
            offering = in_background(partial(queue.offer, "b", 1))
            with pytest.raises(TimeoutError):
                offering.result(A_MOMENT)
        finally:
            frail_redis.ask("REPLICAOF", "NO", "ONE")
        assert offering.result(PATIENCE) is CREATED


@pytest.mark.parametrize("restart", RESTARTS, ids=["stopped", "killed"])
def test_busy_consumers_outlive_a_restart(
    frail_redis: RedisServer,
    frail_url: str,
    face: Face,
    loop_thread: LoopThread,
    restart: Callable[[RedisServer], None],
) -> None:
    handled: set[str] = set()
    keys = [f"{number:05}" for number in range(4000)]
    later = [f"later-{number:05}" for number in range(400)]

    async def awaited(delivery: Any) -> None:
        handled.add(delivery.key)

    # What is claimed when the connection is lost, without the claimer's knowledge, waits out its
    # lease; so the lease is short, and passes in real time.
    options: dict[str, Any] = {"lease": 2 * SECOND, "poll_interval": SECOND / 2}
    with ExitStack() as working:
        queue = working.enter_context(face.open(frail_url, "orders", history=True, **options))
        queue.offer_batch([Message(key, 1) for key in keys])
        for _ in range(4):
            opened: Any = working.enter_context(
                face.open(frail_url, "orders", history=True, **options)
            )
            if isinstance(face, AsyncFace):
                consumer: Any = Blocking(opened.consume(awaited), loop_thread)
            else:
                consumer = opened.consume(lambda each: handled.add(each.key))
            working.enter_context(consumer)
        until(lambda: len(handled) >= 400)
        restart(frail_redis)
        queue.offer_batch([Message(key, 1) for key in later])
        until(lambda: queue.stats().total == 0)
        assert {each.key for each in queue.history(10_000)} == {*keys, *later}
    assert handled == {*keys, *later}
    with frail_redis.client(database_of(frail_url)) as client:
        assert check_structure(client, KIND) == 0


def test_tasks_that_share_a_connection_fail_together_and_go_on(
    frail_redis: RedisServer, frail_url: str
) -> None:
    async def scenario() -> None:
        async with AsyncQueue.open(frail_url, "orders") as queue:
            await queue.offer("first", 1)
            offers = [asyncio.create_task(queue.offer(f"key-{n}", n)) for n in range(200)]
            await asyncio.sleep(0)
            await asyncio.to_thread(frail_redis.restart)
            outcomes = await asyncio.gather(*offers)
            assert {outcome.value for outcome in outcomes} <= {"created", "ignored"}
            assert (await queue.stats()).total == 201

    asyncio.run(scenario())
