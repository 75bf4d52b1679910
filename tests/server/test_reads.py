"""Reads take turns, and neither hold up producers nor pass for an outage."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress

import psycopg
import pytest

from duequeue import Queue, RetryPolicy, StoreBusy, StoreError, StoreUnavailable
from duequeue.contract.stage import until
from duequeue.server import Limits, Service, app_for, queues, reads, store_watch
from duequeue.server.problems import Problem
from duequeue.server.reads import Reads
from duequeue.server.turns import Turns
from tests.fixtures.mariadb import connected
from tests.server.attacks import connect
from tests.server.served import PATIENCE, served
from tests.server.test_outage import A_MOMENT

PATH = "/v1/queues/q"
BLOCKED = """
    SELECT count(*) FROM pg_locks
    WHERE NOT granted AND relation = 'duequeue_buried'::regclass
"""
PATIENT = Limits(read_seconds=PATIENCE)
# Longer than a test waits, so that nothing but the departure of the client ends the read.
ENDLESS = Limits(reads=1, read_seconds=600.0)
IMPATIENT = Limits(read_seconds=0.3)


@pytest.fixture(params=["postgres", "mariadb"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_url"))


@contextmanager
def counts_hang(url: str) -> Iterator[None]:
    """Lock the table of burials, which counts read and offers do not touch."""
    if url.startswith("postgres"):
        with psycopg.connect(url) as holder:
            holder.execute("LOCK TABLE duequeue_buried IN ACCESS EXCLUSIVE MODE")
            yield
    else:
        with connected(url) as cursor:
            cursor.execute("LOCK TABLES duequeue_buried WRITE")
            yield


def test_reads_that_hang_leave_the_connections_to_the_offers(postgres_url: str) -> None:
    with (
        served(app_for(f"{postgres_url}?pool_size=3", limits=PATIENT)) as server,
        server.client() as http,
        psycopg.connect(postgres_url, autocommit=True) as watching,
        ThreadPoolExecutor(16) as pool,
    ):
        http.put(f"{PATH}/messages/first")
        with counts_hang(postgres_url):
            hanging = [pool.submit(http.get, PATH) for _ in range(16)]
            until(lambda: watching.execute(BLOCKED).fetchall() == [(PATIENT.reads,)])
            for number in range(20):
                assert http.put(f"{PATH}/messages/k{number}").status_code == 200
            assert not any(each.done() for each in hanging)
        assert {each.result().status_code for each in hanging} == {200}


def test_a_read_that_takes_too_long_ends_and_is_not_an_outage(
    url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_watch, "SECONDS", PATIENCE)  # a busy machine is no outage either
    with (
        served(app_for(url, limits=IMPATIENT)) as server,
        server.client() as http,
        Queue.open(server.url, "q") as queue,
    ):
        queue.offer("key", 1)
        with counts_hang(url):
            refused = http.get(PATH)
            with pytest.raises(StoreError, match=r"took longer than 0\.3 seconds") as raised:
                queue.stats()
            assert http.get("/readyz").status_code == 200
            assert http.put(f"{PATH}/messages/other").status_code == 200
        assert refused.status_code == 503
        assert refused.json()["type"] == "urn:duequeue:read-too-long"
        assert not isinstance(raised.value, StoreUnavailable)
        until(lambda: http.get(PATH).status_code == 200)
    assert "is unavailable" not in caplog.text


def test_a_statement_that_took_too_long_ends_in_the_database(postgres_url: str) -> None:
    with (
        served(app_for(postgres_url, limits=IMPATIENT)) as server,
        server.client() as http,
        psycopg.connect(postgres_url, autocommit=True) as watching,
    ):
        http.put(f"{PATH}/messages/key")
        with counts_hang(postgres_url):
            assert http.get(PATH).status_code == 503
            until(lambda: watching.execute(BLOCKED).fetchall() == [(0,)])


def test_a_read_that_gets_no_turn_is_told_so() -> None:
    with (
        served(app_for("memory:turns", limits=Limits(reads=1, read_seconds=0.1))) as server,
        server.client() as http,
    ):
        http.put(f"{PATH}/messages/key")
        turn = server.service.reads.turn("something else", "")
        server.call(turn.__aenter__)
        refused = http.get(PATH)
        assert refused.status_code == 429
        assert refused.json()["type"] == "urn:duequeue:too-many-reads"
        assert refused.headers["retry-after"] == "1"
        with (
            Queue.open(server.url, "q", retry=RetryPolicy.never()) as queue,
            pytest.raises(StoreBusy, match="kept this one waiting"),
        ):
            queue.stats()
        server.call(turn.__aexit__, None, None, None)
        until(lambda: http.get(PATH).status_code == 200)


def test_slow_reads_have_a_line_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        taking_turns = Reads(Limits(reads=1, read_seconds=0.1), answers)
        monkeypatch.setattr(reads, "SLOW_SECONDS", 0.0)
        async with taking_turns.turn("slow", ""):
            pass
        monkeypatch.setattr(reads, "SLOW_SECONDS", 3600.0)
        async with taking_turns.turn("slow", ""), taking_turns.turn("quick", ""):
            with pytest.raises(Problem, match="other reads kept this one waiting"):
                async with taking_turns.turn("another quick one", ""):
                    pass

    asyncio.run(run())


def test_a_call_without_a_free_connection_is_not_an_outage(
    postgres_url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "RETRY", A_MOMENT)
    with (
        served(app_for(f"{postgres_url}?pool_size=2")) as server,
        server.client() as http,
        Queue.open(server.url, "q", retry=RetryPolicy.never()) as queue,
    ):
        queue.offer("key", 1)
        opened = next(each for each in server.service.queues.opened if each.name == "q")
        pool = opened.session._pool  # type: ignore[attr-defined]  # noqa: SLF001 - a call that hangs
        place = server.call(lambda: pool.take(PATIENCE, consumes=False))
        refused = http.put(f"{PATH}/messages/other")
        assert refused.status_code == 503
        assert refused.json()["type"] == "urn:duequeue:busy"
        assert "use all connections of the server" in refused.json()["detail"]
        with pytest.raises(StoreBusy, match="other calls use all 1"):
            queue.offer("other", 1)
        server.call(lambda: pool.give(place, reusable=True))
        assert http.put(f"{PATH}/messages/other").status_code == 200
    assert "is unavailable" not in caplog.text


def test_those_who_wait_for_the_same_read_share_it() -> None:
    async def run() -> None:
        taking_turns = Reads(Limits(reads=1), answers)
        begun, may_end, results = asyncio.Event(), asyncio.Event(), iter(range(10))

        async def read() -> int:
            begun.set()
            await may_end.wait()
            return next(results)

        async with taking_turns.turn("something else", ""):
            waiting = [
                asyncio.create_task(taking_turns.shared("count", "", read)) for _ in range(5)
            ]
            await asyncio.sleep(0)
        await begun.wait()
        late = asyncio.create_task(taking_turns.shared("count", "", read))
        await asyncio.sleep(0)
        may_end.set()
        waiting.pop().cancel()  # the others still get their result
        assert [await each for each in waiting] == [0] * 4
        assert await late == 1

    asyncio.run(run())


@pytest.mark.parametrize("door", ["http", "python"])
def test_a_count_that_was_asked_for_before_the_queue_was_made_is_not_shared(door: str) -> None:
    service = app_for("memory:", limits=Limits(reads=1, read_seconds=PATIENCE))
    with (
        served(service) as server,
        server.client() as http,
        Queue.open(server.url, "q") as queue,
        ThreadPoolExecutor(2) as pool,
    ):

        def total() -> object:
            return http.get(PATH).json()["total"] if door == "http" else queue.stats().total

        turn = service.reads.turn("something else", "")
        server.call(turn.__aenter__)
        before = pool.submit(total)
        until(lambda: in_line(service) == 1)
        http.put(f"{PATH}/messages/key")
        after = pool.submit(total)
        until(lambda: in_line(service) == 2)
        server.call(turn.__aexit__, None, None, None)
        assert (before.result(), after.result()) == (0, 1)


async def answers() -> bool:
    return True


def test_tokens_take_turns() -> None:
    async def run() -> list[str]:
        taking_turns = Reads(Limits(reads=1), answers)
        order: list[str] = []

        def asks(token: str) -> "asyncio.Task[None]":
            async def read() -> None:
                order.append(token)

            return asyncio.create_task(taking_turns.alone(object(), token, read))

        async with taking_turns.turn("something else", ""):
            waiting = [asks("many") for _ in range(4)] + [asks("one"), asks("two"), asks("two")]
            await asyncio.sleep(0)
        await asyncio.gather(*waiting)
        return order

    assert asyncio.run(run()) == ["many", "one", "two", "many", "two", "many", "many"]


def test_a_shared_read_waits_with_the_tokens_of_all_who_ask() -> None:
    async def run() -> list[str]:
        taking_turns = Reads(Limits(reads=1), answers)
        order: list[str] = []

        def read(what: str) -> Callable[[], Awaitable[None]]:
            async def note() -> None:
                order.append(what)

            return note

        async with taking_turns.turn("something else", ""):
            waiting = [
                asyncio.create_task(each)
                for each in (
                    *(taking_turns.alone(object(), "many", read("list")) for _ in range(3)),
                    taking_turns.shared("count", "many", read("count")),
                    taking_turns.shared("count", "one", read("count")),
                )
            ]
            await asyncio.sleep(0)
        await asyncio.gather(*waiting)
        return order

    assert asyncio.run(run()) == ["list", "count", "list", "list"]


def test_a_shared_read_ends_when_all_who_asked_have_gone() -> None:
    async def run() -> None:
        taking_turns = Reads(Limits(reads=1), answers)
        begun, never = asyncio.Event(), asyncio.Event()
        ended: list[str] = []

        async def read() -> None:
            begun.set()
            try:
                await never.wait()
            finally:
                ended.append("begun")

        async def read_later() -> None:
            ended.append("never begun")

        asking = [asyncio.create_task(taking_turns.shared("a", "", read)) for _ in range(2)]
        await begun.wait()
        waiting = asyncio.create_task(taking_turns.shared("b", "", read_later))
        await asyncio.sleep(0)
        waiting.cancel()
        asking[0].cancel()
        await asyncio.wait([waiting, asking[0]])
        assert not ended
        asking[1].cancel()
        await asyncio.wait(asking)
        async with taking_turns.turn("something else", ""):
            assert ended == ["begun"]

    asyncio.run(run())


@pytest.mark.parametrize(("before", "after"), [(0.0, 3600.0), (3600.0, 0.0)], ids=str)
def test_a_cancelled_read_never_makes_a_slow_one_quick(
    before: float, after: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But one that took long before it was cancelled makes a quick one slow."""

    async def run() -> None:
        taking_turns = Reads(Limits(reads=1, read_seconds=0.1), answers)
        monkeypatch.setattr(reads, "SLOW_SECONDS", before)
        async with taking_turns.turn("slow", ""):
            pass
        monkeypatch.setattr(reads, "SLOW_SECONDS", after)
        with suppress(asyncio.CancelledError):
            async with taking_turns.turn("slow", ""):
                raise asyncio.CancelledError
        monkeypatch.setattr(reads, "SLOW_SECONDS", 3600.0)
        async with taking_turns.turn("slow", ""), taking_turns.turn("quick", ""):
            pass

    asyncio.run(run())


def test_a_token_whose_reads_have_gone_keeps_its_turn() -> None:
    async def run() -> str:
        turns, loop = Turns(1), asyncio.get_running_loop()
        turns.join("", loop.create_future())
        gone, many, one = (loop.create_future() for _ in range(3))
        turns.join("one", gone)
        turns.join("many", many)
        turns.join("one", one)
        gone.cancel()
        turns.leave()
        return "one" if one.done() else "many"

    assert asyncio.run(run()) == "one"


def test_a_new_token_comes_before_the_one_that_was_served_last() -> None:
    async def run() -> bool:
        turns, loop = Turns(1), asyncio.get_running_loop()
        running, later, later_still, new = (loop.create_future() for _ in range(4))
        for turn in (running, later, later_still):
            turns.join("many", turn)
        turns.leave()
        assert later.done()
        turns.join("new", new)
        turns.leave()
        return new.done() and not later_still.done()

    assert asyncio.run(run())


@pytest.mark.parametrize(
    "path", ["/messages?limit=1000", "/history", "/buried", "/forecast", ""], ids=str
)
def test_a_read_whose_client_has_gone_leaves_its_line(path: str) -> None:
    service = app_for("memory:gone", limits=ENDLESS)
    with served(service) as server, server.client() as http:
        http.put(f"{PATH}/messages/key")
        turn = service.reads.turn("something else", "")
        server.call(turn.__aenter__)
        with ExitStack() as stack:
            for _ in range(20):
                connection = stack.enter_context(connect(server.port))
                connection.sendall(f"GET {PATH}{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            until(lambda: in_line(service) == 1 if not path else in_line(service) == 20)
        until(lambda: in_line(service) == 0)
        assert not service.reads._quick._waiting  # noqa: SLF001 - what it keeps is not seen
        server.call(turn.__aexit__, None, None, None)
        assert http.get(f"{PATH}{path}").status_code == 200


def test_a_read_that_has_begun_ends_with_its_client(postgres_url: str) -> None:
    with (
        served(app_for(postgres_url, limits=ENDLESS)) as server,
        server.client() as http,
        psycopg.connect(postgres_url, autocommit=True) as watching,
    ):
        http.put(f"{PATH}/messages/key")
        with counts_hang(postgres_url):
            with connect(server.port) as connection:
                connection.sendall(f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                until(lambda: watching.execute(BLOCKED).fetchall() == [(1,)])
            until(lambda: watching.execute(BLOCKED).fetchall() == [(0,)])
        until(lambda: http.get(PATH).status_code == 200)


def in_line(service: Service) -> int:
    """How many turns are kept for reads."""
    turns = service.reads._quick._waiting.values()  # noqa: SLF001 - nobody else sees it
    assert all(turns), "a token without turns is kept"
    return sum(map(len, turns))
