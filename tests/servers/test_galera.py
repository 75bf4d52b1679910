"""A Galera cluster: conflicts between its nodes, and a node that dies under load."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from duequeue import Message, OfferOutcome, Queue, SchemaError, WrongDatabase
from duequeue.contract.faces import Face, SyncFace
from duequeue.contract.stage import until
from duequeue.stores.sql.mariadb.connections import MariadbConnection
from duequeue.stores.sql.mariadb.replies import ServerReply
from tests.fixtures.connections import connect_mariadb
from tests.fixtures.galera import GaleraCluster
from tests.fixtures.mariadb import OwnMariaDBServer, connected
from tests.race.together import PATIENCE, together
from tests.servers.load import Damage, under_load

HOT_KEYS = 5
ROUNDS = 30


@pytest.fixture
def database(galera: GaleraCluster) -> Iterator[str]:
    """An empty database of the cluster, which all nodes know."""
    name = galera.create_database()
    for node in galera.nodes:
        wait_for_others(node)
    yield name
    galera.nodes[0].drop_database(galera.nodes[0].url(name))


@contextmanager
def queue_on_two_nodes(
    galera: GaleraCluster, database: str
) -> Iterator[tuple[Queue[Any], Queue[Any]]]:
    with (
        Queue.open(galera.nodes[0].url(database), "orders") as first,
        Queue.open(galera.nodes[1].url(database), "orders") as second,
    ):
        yield first, second


def test_what_two_nodes_claim_at_once_is_delivered_once(
    galera: GaleraCluster, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The locks of one node do not exist on the other, so the later commit fails instead."""
    delivered: list[str] = []
    send = MariadbConnection.send

    def send_after_the_other(
        connection: MariadbConnection, statements: Sequence[str]
    ) -> list[ServerReply]:
        """Let the second node claim between the two packets of the first node's claim."""
        if not delivered and any(text.startswith("UPDATE duequeue_m") for text in statements):
            delivered.append("")
            delivered[:] = [each.key for each in second.try_poll_many(2)]
        return send(connection, statements)

    with queue_on_two_nodes(galera, database) as (first, second):
        first.offer_batch(Message(key, 1) for key in "abc")
        until_it_has(second, 3)
        before = galera.conflicts()
        monkeypatch.setattr(MariadbConnection, "send", send_after_the_other)
        gives_up_at = monotonic() + PATIENCE
        while len(delivered) < len("abc") and monotonic() < gives_up_at:
            delivered += [each.key for each in first.try_poll_many(2)]
    assert Counter(delivered) == Counter("abc")
    assert galera.conflicts() > before


def test_offers_of_the_same_keys_on_two_nodes(galera: GaleraCluster, database: str) -> None:
    def offer_again_and_again(queue: Queue[Any], name: str) -> int:
        for number in range(ROUNDS):
            queue.offer_batch(Message(f"k{key}", f"{name}{number}") for key in range(HOT_KEYS))
        return ROUNDS

    with queue_on_two_nodes(galera, database) as (first, second):
        before, gives_up_at = galera.conflicts(), monotonic() + PATIENCE
        while galera.conflicts() == before:
            assert monotonic() < gives_up_at, "they have never met"
            together(
                partial(offer_again_and_again, first, "a"),
                partial(offer_again_and_again, second, "b"),
            )
    stored = [messages_on(node, database) for node in galera.nodes]
    assert len(stored[0]) == HOT_KEYS
    assert {payload for _, payload in stored[0]} <= {b'"a29"', b'"b29"'}
    assert stored[1:] == stored[:1] * 2


def test_within_on_a_connection_to_another_node(galera: GaleraCluster, database: str) -> None:
    """All nodes have the same tables, so a queue of one node may use a transaction of another."""
    with Queue.open(galera.nodes[0].url(database), "orders") as queue, ExitStack() as opened:
        wait_for_others(galera.nodes[1])
        connection, elsewhere = (
            opened.enter_context(connect_mariadb(SyncFace(), galera.nodes[1].url(name)))
            for name in (database, "mysql")
        )
        assert queue.within(connection).offer("a", 1) is OfferOutcome.CREATED
        connection.rollback()
        assert queue.within(connection).offer("b", 1) is OfferOutcome.CREATED
        connection.commit()
        until_it_has(queue, 1)
        assert queue.contains("b")
        with pytest.raises(SchemaError, match="duequeue migrate"):
            queue.within(elsewhere).offer("c", 1)


def test_within_on_a_server_outside_the_cluster(
    galera: GaleraCluster, database: str, mariadb_url: str
) -> None:
    with (
        Queue.open(galera.nodes[0].url(database), "orders") as queue,
        Queue.open(mariadb_url, "orders"),
        connect_mariadb(SyncFace(), mariadb_url) as elsewhere,
        pytest.raises(WrongDatabase, match="another database"),
    ):
        queue.within(elsewhere).offer("a", 1)


def test_a_node_that_is_killed_under_load(
    galera: GaleraCluster, database: str, tmp_path: Path
) -> None:
    """Clients that know all hosts go on, and nothing that was acknowledged is lost or back."""
    killed, *others = galera.nodes
    with galera.watchful():
        try:
            with under_load(galera.url(database), tmp_path) as load:
                killed.kill()
                load.go_on()
            for node in others:
                wait_for_others(node)
                assert load.damage(node.url(database)) == Damage(set(), set())
        finally:
            galera.join(killed)


def test_a_node_that_is_cut_off_from_the_others(
    galera: GaleraCluster, database: str, face: Face
) -> None:
    """It refuses all statements, so calls leave it for a node of the rest of the cluster."""
    with face.open(galera.url(database), "orders") as queue:
        queue.offer("a", 1)
        with galera.watchful(), isolated(galera.nodes[0]):
            assert queue.offer("b", 1) is OfferOutcome.CREATED
            assert [each.key for each in queue.try_poll_many(9)] == ["a", "b"]


@contextmanager
def isolated(node: OwnMariaDBServer) -> Iterator[None]:
    """Cut a node off from the others, until it knows that it must not answer."""
    with connected(node.admin_url) as cursor:

        def is_ready() -> bool:
            cursor.execute("SHOW STATUS LIKE 'wsrep_ready'")
            return cursor.fetchall() == (("wsrep_ready", "ON"),)

        cursor.execute("SET GLOBAL wsrep_provider_options = 'gmcast.isolate=1'")
        try:
            until(lambda: not is_ready())
            yield
        finally:
            cursor.execute("SET GLOBAL wsrep_provider_options = 'gmcast.isolate=0'")
            until(is_ready)


def until_it_has(queue: Queue[Any], messages: int) -> None:
    """Wait until a node has what another one has committed."""
    gives_up_at = monotonic() + PATIENCE
    while queue.stats().total < messages:
        assert monotonic() < gives_up_at, "it has not come"


def messages_on(node: OwnMariaDBServer, database: str) -> list[tuple[bytes, bytes]]:
    wait_for_others(node)
    with connected(node.url(database)) as cursor:
        cursor.execute("SELECT `key`, payload FROM duequeue_message ORDER BY `key`")
        return list(cursor.fetchall())


def wait_for_others(node: OwnMariaDBServer) -> None:
    """Return once a node has applied everything that was committed on any of them."""
    with connected(node.admin_url) as cursor:
        cursor.execute("SET SESSION wsrep_sync_wait = 1")
        cursor.execute("SELECT COUNT(*) FROM mysql.global_priv")
