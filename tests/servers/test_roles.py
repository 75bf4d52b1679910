"""Logins with the roles of the script can do what they must, and nothing that they must not."""

import secrets
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import psycopg
import pytest

from duequeue import (
    ManualClock,
    Message,
    NotAnswered,
    OfferOutcome,
    Outcome,
    Queue,
    StoreError,
    queues,
)
from duequeue.contract.faces import Face
from duequeue.contract.phrases import DAY, MINUTE, claim, keys_of, snapshot
from tests.fixtures.connections import connect_postgres
from tests.fixtures.postgres import PostgresServer
from tests.fixtures.stores import EMPTY_EVERYTHING
from tests.servers.logins import Logins, owned_database, run_roles_script

CREATED, UPDATED, IGNORED = OfferOutcome.CREATED, OfferOutcome.UPDATED, OfferOutcome.IGNORED
DENIED = "permission denied"


class Urls(NamedTuple):
    """One database, as each login reaches it."""

    owner: str
    producer: str
    consumer: str
    admin: str


@pytest.fixture(scope="module")
def logins(postgres_server: PostgresServer) -> Iterator[tuple[Logins, str]]:
    with owned_database(postgres_server) as (logins, owner):
        for _ in range(2):  # a second run changes nothing
            run_roles_script(postgres_server, logins.superuser)
        yield logins, owner


@pytest.fixture(scope="module")
def urls(logins: tuple[Logins, str]) -> Urls:
    made, owner = logins
    producer, consumer, admin = (
        made.add(role, f"GRANT duequeue_{role} TO {{}}")
        for role in ("producer", "consumer", "admin")
    )
    return Urls(owner, f"{producer}?role=producer", consumer, admin)


@pytest.fixture(autouse=True)
def _empty(logins: tuple[Logins, str]) -> None:
    with psycopg.connect(logins[0].superuser) as connection:
        for statement in EMPTY_EVERYTHING:
            if "duequeue_kind" not in statement:  # only the owner and an administrator add queues
                connection.execute(statement)


def plain(url: str) -> str:
    """Return the URL without DueQueue's own option."""
    return url.removesuffix("?role=producer")


def assert_denied(url: str, statement: str) -> None:
    """Connect, which works, and run a statement, which does not."""
    with psycopg.connect(url) as connection:
        connection.execute("SELECT count(*) FROM duequeue_kind")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement.encode())


def test_a_producer_gets_responses(urls: Urls, face: Face, clock: ManualClock) -> None:
    options = {"clock": clock, "migrate": False}
    with (
        face.open(urls.producer, "orders", **options) as producer,
        face.open(urls.consumer, "orders", **options) as consumer,
    ):
        for number in range(3):  # the second one makes the first response void
            producer.offer("a", number)
            assert producer.response("a", 0) is None
            assert claim(consumer).ack(response=number)
            found = producer.response("a", 0)
            assert found is not None
            assert found.value == number
        producer.offer("b", 1)
        assert claim(consumer).bury("bad")
        with pytest.raises(NotAnswered, match="bad"):
            producer.response("b", 0)
        with pytest.raises(StoreError, match=DENIED):
            producer.forget_response("a")
    assert_denied(plain(urls.producer), "SELECT payload FROM duequeue_response")


def test_a_producer_offers(urls: Urls, face: Face, clock: ManualClock) -> None:
    options = {"clock": clock, "migrate": False}
    with (
        face.open(urls.producer, "orders", **options) as producer,
        face.open(urls.owner, "orders", **options) as owner,
    ):
        assert producer.offer("a", 1, headers={"trace": "1"}) is CREATED
        assert producer.offer("a", 1) is IGNORED
        assert producer.offer("a", 2, replace=False) is IGNORED
        assert producer.offer("a", 2, headers={"trace": "2"}) is UPDATED
        batch = [Message("b", 1), Message("b", 2), Message("b", 3, replace=False)]
        assert producer.offer_batch(batch) == [CREATED, UPDATED, IGNORED]
        assert keys_of(owner.try_poll_many(9)) == ["a", "b"]
        found = snapshot(owner, "a")
        assert (found.payload, found.headers) == (2, {"trace": "2"})


def test_a_producer_wakes_a_waiting_consumer(urls: Urls) -> None:
    with (
        Queue.open(urls.consumer, "orders", migrate=False, poll_interval=DAY) as consumer,
        Queue.open(urls.producer, "orders", migrate=False) as producer,
    ):
        assert consumer.poll(MINUTE / 600) is None  # it listens from now on
        producer.offer("a", 1)
        delivery = consumer.poll(MINUTE)
        assert delivery is not None
        assert delivery.ack()


def test_a_producer_leaves_history(urls: Urls, face: Face) -> None:
    with (
        face.open(urls.producer, "orders", migrate=False, history=True) as producer,
        face.open(urls.owner, "orders", migrate=False) as owner,
    ):
        producer.offer("a", 1)
        producer.offer("a", 2)
        assert [(row.key, row.outcome) for row in owner.history()] == [("a", Outcome.REPLACED)]


def test_a_producer_offers_within_its_transaction(urls: Urls, face: Face) -> None:
    with (
        face.open(urls.producer, "orders", migrate=False) as producer,
        face.open(urls.owner, "orders", migrate=False) as owner,
    ):
        with connect_postgres(face, plain(urls.producer)) as connection:
            assert producer.within(connection).offer("a", 1) is CREATED
            assert not owner.contains("a")
        assert owner.contains("a")


def test_a_producer_does_nothing_else(urls: Urls, face: Face) -> None:
    with face.open(urls.producer, "orders", migrate=False) as producer:
        producer.offer("a", 1)
        for call in (
            producer.try_poll,
            producer.stats,
            lambda: producer.read("a"),
            lambda: producer.drop("a"),
            lambda: producer.drop_all("orders"),
            lambda: producer.buried(1),
            lambda: producer.revive("a"),
            producer.history,
            lambda: producer.cron.pause("daily"),
        ):
            with pytest.raises(StoreError, match=DENIED):
                call()


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT payload FROM duequeue_message",
        "SELECT key FROM duequeue_message",
        "SELECT count(*) FROM duequeue_message",
        "SELECT payload FROM duequeue_buried",
        "SELECT key FROM duequeue_history",
        "TABLE duequeue_stage",
        "COPY duequeue_message TO STDOUT",
        "DELETE FROM duequeue_message",
        "TRUNCATE duequeue_message",
        "UPDATE duequeue_message SET payload = ''",
        "LOCK TABLE duequeue_message",
        "INSERT INTO duequeue_kind (kind) VALUES ('mine')",
        """INSERT INTO duequeue_message (kind_id, key, payload, due_at, asked_at, created_at)
           VALUES (1, 'a', '', 0, 0, 0)
           ON CONFLICT (kind_id, key) DO UPDATE SET due_at = 0 RETURNING payload""",
        "ALTER FUNCTION duequeue_offer_messages SECURITY INVOKER",
        "DROP TABLE duequeue_message",
        "SET ROLE duequeue_admin",
    ],
)
def test_a_producers_login_can_neither_read_nor_delete(urls: Urls, statement: str) -> None:
    assert_denied(plain(urls.producer), statement)


def test_a_producer_cannot_act_for_the_owner(urls: Urls) -> None:
    """A temporary table with a trigger, found before the real one, would run code as the owner."""
    trap = """
        CREATE TEMPORARY TABLE duequeue_message (
            id bigint, kind_id integer, key text, payload bytea, headers text, due_at bigint,
            asked_at bigint, created_at bigint, updated_at bigint, attempt integer,
            leased_until bigint, lease_token bigint, UNIQUE (kind_id, key)
        );
        CREATE FUNCTION pg_temp.run_as_owner() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN RAISE EXCEPTION 'it runs as %', current_user; END $$;
        CREATE TRIGGER trap BEFORE INSERT ON duequeue_message
        EXECUTE FUNCTION pg_temp.run_as_owner();
        GRANT ALL ON duequeue_message TO PUBLIC;
    """
    with (
        psycopg.connect(plain(urls.producer)) as connection,
        Queue.open(urls.producer, "orders", migrate=False) as producer,
        Queue.open(urls.owner, "orders", migrate=False) as owner,
    ):
        # From here on, the connection is known to lead to the right tables.
        producer.within(connection).offer("first", 1)
        connection.execute(trap)
        producer.within(connection).offer("a", 1)
        connection.commit()
        assert owner.contains("a")


def test_a_producer_needs_the_option(urls: Urls, face: Face) -> None:
    with (
        face.open(plain(urls.producer), "orders", migrate=False) as producer,
        pytest.raises(StoreError, match=f"{DENIED} for .* duequeue_message"),
    ):
        producer.offer("a", 1)


@pytest.mark.parametrize("login", ["producer", "consumer"])
def test_only_an_administrator_adds_a_queue(urls: Urls, face: Face, login: str) -> None:
    url, name = getattr(urls, login), secrets.token_hex(4)
    with pytest.raises(StoreError, match=f"{DENIED} for table duequeue_kind"):
        face.open(url, name, migrate=False)
    face.open(urls.admin, name, migrate=False).close()
    face.open(url, name, migrate=False).close()


@pytest.mark.parametrize("history", [False, True])
def test_a_consumer_polls_and_settles(
    urls: Urls, face: Face, clock: ManualClock, history: bool
) -> None:
    options = {"clock": clock, "migrate": False, "history": history}
    with (
        face.open(urls.consumer, "orders", max_attempts=1, **options) as consumer,
        face.open(urls.owner, "orders", **options) as owner,
    ):
        owner.offer_batch([Message(key, 1) for key in ("a", "b", "c", "d", "e")])
        a, b, c, d, e = consumer.try_poll_many(9)
        assert a.extend()
        assert a.ack()
        assert b.release()
        assert c.bury("too odd")
        assert consumer.ack_many([d, e]) == 2
        assert consumer.try_poll() is None  # it was buried instead of being delivered again
        assert keys_of(owner.buried(9)) == ["c", "b"]
        assert consumer.stats().buried == 2
        outcomes = Counter(row.outcome for row in owner.history())
        assert outcomes == ({Outcome.ACKED: 3, Outcome.BURIED: 2} if history else {})


def test_a_consumer_with_a_handler(urls: Urls) -> None:
    handled = []
    with (
        Queue.open(urls.owner, "orders", migrate=False) as owner,
        Queue.open(urls.consumer, "orders", migrate=False) as queue,
    ):
        owner.offer("a", 1)
        with queue.consume(lambda delivery: handled.append(delivery.key)):
            while owner.contains("a"):
                pass
    assert handled == ["a"]


def test_a_consumer_does_nothing_else(urls: Urls, face: Face) -> None:
    with face.open(urls.consumer, "orders", migrate=False) as consumer:
        for call in (
            lambda: consumer.offer("a", 1),
            lambda: consumer.buried(1),
            lambda: consumer.run_now("a"),
            lambda: consumer.cron.pause("daily"),
        ):
            with pytest.raises(StoreError, match=DENIED):
                call()
    assert_denied(urls.consumer, "UPDATE duequeue_message SET payload = ''")


def test_an_administrator_does_everything_but_migrate(
    urls: Urls, face: Face, clock: ManualClock
) -> None:
    options = {"clock": clock, "migrate": False, "history": True}
    with face.open(urls.admin, "orders", **options) as admin:
        admin.offer_batch([Message("a", 1), Message("b", 1)])
        assert claim(admin).bury("too odd")
        assert keys_of(admin.buried(9)) == ["a"]
        assert admin.revive("a")
        assert admin.run_now("b")
        assert [one.key for one in admin.list().messages] == ["b", "a"]
        assert ("orders", "json") in queues(urls.admin)
        admin.cron.install_periodic_tick("reports", MINUTE, "hello").close()
        assert admin.cron.pause("reports")
        assert admin.drop("a")
        assert admin.stats().total == 1
        assert admin.drop_all("orders") == 1
        assert admin.purge_buried(clock.now()) == 0
        assert len(admin.history()) == 7
    assert_denied(urls.admin, "ALTER TABLE duequeue_message ADD COLUMN mine text")


def test_the_functions_belong_to_the_owner_of_the_tables(urls: Urls) -> None:
    """A superuser ran the script, and the functions must not act for a superuser."""
    with psycopg.connect(urls.owner) as connection:
        rows = connection.execute(
            "SELECT DISTINCT pg_get_userbyid(proowner) FROM pg_proc WHERE proname LIKE 'duequeue%'"
        ).fetchall()
        assert rows == [(connection.info.user,)]


def test_a_producer_of_an_older_version_goes_on_after_the_script(
    postgres_server: PostgresServer, logins: tuple[Logins, str], urls: Urls
) -> None:
    superuser = logins[0].superuser
    older = "duequeue_offer_messages(text[])"
    with psycopg.connect(superuser, autocommit=True) as connection:
        connection.execute(f"CREATE FUNCTION {older} RETURNS int LANGUAGE sql AS 'SELECT 7'")
        connection.execute(f"GRANT EXECUTE ON FUNCTION {older} TO duequeue_producer")
        try:
            run_roles_script(postgres_server, superuser)
            with psycopg.connect(plain(urls.producer)) as producer:
                found = producer.execute("SELECT duequeue_offer_messages(ARRAY['a'])").fetchone()
                assert found == (7,)
        finally:
            connection.execute(f"DROP FUNCTION IF EXISTS {older}")
