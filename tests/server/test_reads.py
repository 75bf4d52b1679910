"""Reads take turns, and neither hold up producers nor pass for an outage."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest

from duequeue import Queue, RetryPolicy, StoreBusy, StoreError, StoreUnavailable
from duequeue.contract.stage import until
from duequeue.server import Limits, app_for, queues, reads, store_watch
from duequeue.server.problems import Problem
from duequeue.server.reads import Reads
from tests.fixtures.mariadb import connected
from tests.server.served import PATIENCE, served
from tests.server.test_outage import A_MOMENT

PATH = "/v1/queues/q"
BLOCKED = """
    SELECT count(*) FROM pg_locks
    WHERE NOT granted AND relation = 'duequeue_buried'::regclass
"""
PATIENT = Limits(read_seconds=PATIENCE)
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
        turn = server.service.reads.turn("something else")
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
    async def answers() -> bool:
        return True

    async def run() -> None:
        taking_turns = Reads(Limits(reads=1, read_seconds=0.1), answers)
        monkeypatch.setattr(reads, "SLOW_SECONDS", 0.0)
        async with taking_turns.turn("slow"):
            pass
        monkeypatch.setattr(reads, "SLOW_SECONDS", 3600.0)
        async with taking_turns.turn("slow"), taking_turns.turn("quick"):
            with pytest.raises(Problem, match="other reads kept this one waiting"):
                async with taking_turns.turn("another quick one"):
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
    async def answers() -> bool:
        return True

    async def run() -> None:
        taking_turns = Reads(Limits(reads=1), answers)
        begun, may_end, results = asyncio.Event(), asyncio.Event(), iter(range(10))

        async def read() -> int:
            begun.set()
            await may_end.wait()
            return next(results)

        async with taking_turns.turn("something else"):
            waiting = [asyncio.create_task(taking_turns.shared("count", read)) for _ in range(5)]
            await asyncio.sleep(0)
        await begun.wait()
        late = asyncio.create_task(taking_turns.shared("count", read))
        await asyncio.sleep(0)
        may_end.set()
        waiting.pop().cancel()  # the others still get their result
        assert [await each for each in waiting] == [0] * 4
        assert await late == 1

    asyncio.run(run())
