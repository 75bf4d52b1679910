"""Each kind of URL leads to the server that takes writes, on both faces."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from redis.exceptions import AuthenticationError, RedisError
from redis.exceptions import ConnectionError as LostConnection

from duequeue.stores.redis_client import nodes
from duequeue.stores.redis_client.cluster import ClusterConnection
from duequeue.stores.redis_client.connecting import connect, connect_async
from duequeue.stores.redis_client.nodes import Connection, connect_to_sentinel
from duequeue.stores.redis_client.settings import RedisSettings, Server, slot_of
from tests.fixtures.redis_cluster import RedisCluster
from tests.fixtures.redis_sentinel import Watched
from tests.fixtures.redis_server import RedisServer
from tests.fixtures.redis_tls import TlsServer


def ask(connection: Connection, *command: Any) -> Any:
    connection.send_command(*command)
    return connection.read_response()


def answer_of(url: str, *command: Any) -> Any:
    """Return the same answer that both kinds of connection give."""
    settings = RedisSettings.from_url(url)
    connection = connect(settings)
    try:
        answer = ask(connection, *command)
    finally:
        connection.disconnect()
    assert asyncio.run(_answer(settings, *command)) == answer
    return answer


async def _answer(settings: RedisSettings, *command: Any) -> Any:
    connection = await connect_async(settings)
    try:
        await connection.send_command(*command)
        return await connection.read_response()
    finally:
        await connection.disconnect()


def number_of(url: str) -> int:
    """Return the number of the database that a URL names."""
    return int(url.rpartition("/")[2])


@pytest.mark.parametrize("name", ["redis_server", "old_redis", "debian_redis"])
def test_a_server_by_its_host(name: str, request: pytest.FixtureRequest) -> None:
    server: RedisServer = request.getfixturevalue(name)
    here, elsewhere = server.fresh_url(), server.fresh_url()
    server.ask("SET", "where", "there", database=number_of(here))
    assert answer_of(here, "GET", "where") == b"there"
    assert answer_of(elsewhere, "GET", "where") is None


def test_a_server_by_its_socket(redis_server: RedisServer, redis_url: str) -> None:
    database = number_of(redis_url)
    redis_server.ask("SET", "where", "there", database=database)
    url = f"unix://:{redis_server.password}@{redis_server.socket_path}?db={database}"
    assert answer_of(url, "GET", "where") == b"there"


@pytest.mark.parametrize("scheme", ["rediss", "valkeys"])
def test_a_server_by_tls(tls_redis: TlsServer, scheme: str) -> None:
    assert answer_of(tls_redis.url(scheme), "PING") == b"PONG"


def test_a_server_of_an_unknown_authority_is_refused(tls_redis: TlsServer) -> None:
    with pytest.raises(LostConnection, match="certificate"):
        connect(RedisSettings.from_url(tls_redis.server.url(scheme="rediss")))


def test_a_wrong_password_is_refused_without_showing_it(redis_server: RedisServer) -> None:
    url = redis_server.url().replace(redis_server.password, "wrong-password")
    with pytest.raises(AuthenticationError) as caught:
        connect(RedisSettings.from_url(url))
    assert "wrong-password" not in str(caught.value)


def test_a_user_logs_in_by_name(redis_server: RedisServer) -> None:
    redis_server.ask("ACL", "SETUSER", "app", "on", ">p@ss", "+@all", "~*")
    url = f"redis://app:p%40ss@127.0.0.1:{redis_server.port}"
    assert answer_of(url, "ACL", "WHOAMI") == b"app"


def test_sentinel_names_the_primary_before_and_after_a_failover(watched_redis: Watched) -> None:
    url = watched_redis.url()
    port = str(watched_redis.primary.port).encode()
    assert answer_of(url, "CONFIG", "GET", "port") == [b"port", port]
    watched_redis.fail_over()
    port = str(watched_redis.replica.port).encode()
    assert answer_of(url, "CONFIG", "GET", "port") == [b"port", port]


def test_a_service_that_no_sentinel_watches_is_named(watched_redis: Watched) -> None:
    url = watched_redis.url().replace("/queues/", "/nothing/")
    with pytest.raises(LostConnection, match="does not know the service 'nothing'"):
        connect(RedisSettings.from_url(url))


def test_sentinels_that_are_away_are_passed_over(watched_redis: Watched) -> None:
    url = watched_redis.url().replace("@", "@127.0.0.1:1,")
    assert answer_of(url, "PING") == b"PONG"


def test_the_sentinel_that_answered_is_asked_first_from_then_on(
    watched_redis: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def note(settings: RedisSettings, server: Server) -> Connection:
        asked.append(server.port)
        return connect_to_sentinel(settings, server)

    monkeypatch.setattr(nodes, "connect_to_sentinel", note)
    settings = RedisSettings.from_url(watched_redis.url().replace("@", "@127.0.0.1:1,"))
    for _ in range(2):
        connect(settings).disconnect()
    port = watched_redis.sentinel.port
    assert asked == [1, port, port]


@pytest.fixture
def connection(redis_cluster: RedisCluster) -> Iterator[ClusterConnection]:
    settings = RedisSettings.from_url(redis_cluster.url())
    connection = ClusterConnection(settings)
    yield connection
    connection.disconnect()


def test_each_key_of_a_cluster_is_on_the_node_of_its_slot(
    redis_cluster: RedisCluster, connection: ClusterConnection
) -> None:
    keys = [f"key {number}" for number in range(20)]
    for key in keys:
        ask(connection, "SET", key, key)
    assert len({redis_cluster.node_of(key).port for key in keys}) == 3
    for key in keys:
        assert redis_cluster.node_of(key).ask("GET", key) == key.encode()
        assert slot_of(key) == redis_cluster.primaries[0].ask("CLUSTER", "KEYSLOT", key)


def test_a_slot_that_has_moved_is_followed(
    redis_cluster: RedisCluster, connection: ClusterConnection
) -> None:
    ask(connection, "SET", "traveller", "1")
    redis_cluster.move_slot("traveller")
    assert ask(connection, "INCR", "traveller") == 2
    assert ask(connection, "INCR", "traveller") == 3


def test_a_slot_on_the_move_is_asked_for_where_it_goes(
    redis_cluster: RedisCluster, connection: ClusterConnection
) -> None:
    ask(connection, "SET", "underway", "1")
    source = redis_cluster.node_of("underway")
    target = next(node for node in redis_cluster.primaries if node is not source)
    with redis_cluster.slot_in_flight("underway", source, target):
        assert ask(connection, "INCR", "underway") == 2
    assert ask(connection, "INCR", "underway") == 3
    assert target.ask("GET", "underway") == b"3"


def test_what_has_no_key_goes_where_the_command_before_it_went(
    redis_cluster: RedisCluster, connection: ClusterConnection
) -> None:
    ask(connection, "SET", "followed", "1")
    target = redis_cluster.move_slot("followed")
    connection.send_command("INCR", "followed")
    connection.send_command("INFO", "server")
    assert connection.read_response() == 2
    assert b"tcp_port:%d\r\n" % target.port in connection.read_response()


def keys_on_two_nodes(cluster: RedisCluster) -> tuple[str, str, RedisServer, RedisServer]:
    """Return a key, one on another node, and these nodes."""
    first, *others = (f"key {number}" for number in range(100))
    source = cluster.node_of(first)
    second = next(key for key in others if cluster.node_of(key) is not source)
    return first, second, source, cluster.node_of(second)


def test_an_answer_on_the_way_is_not_taken_for_that_of_a_slot_that_has_moved(
    redis_cluster: RedisCluster, connection: ClusterConnection
) -> None:
    moved, stayed, source, target = keys_on_two_nodes(redis_cluster)
    for key in (moved, stayed):
        ask(connection, "SET", key, key)
    with redis_cluster.slot_in_flight(moved, source, target):
        pass
    for key in (moved, stayed, moved, stayed):
        connection.send_command("GET", key)
    answers = [connection.read_response() for _ in range(4)]
    assert answers == [moved.encode(), stayed.encode(), moved.encode(), stayed.encode()]


def test_an_answer_on_the_way_is_not_taken_for_that_of_a_slot_on_the_move(
    redis_cluster: RedisCluster, connection: ClusterConnection
) -> None:
    moving, stayed, source, target = keys_on_two_nodes(redis_cluster)
    for key in (moving, stayed):
        ask(connection, "SET", key, key)
    with redis_cluster.slot_in_flight(moving, source, target):
        connection.send_command("GET", moving)
        connection.send_command("GET", stayed, "too many words")
        connection.send_command("GET", stayed)
        assert connection.read_response() == moving.encode()
        with pytest.raises(RedisError, match="wrong number of arguments"):
            connection.read_response()
        assert connection.read_response() == stayed.encode()


def test_an_error_is_raised_and_leaves_the_connection_usable(
    connection: ClusterConnection,
) -> None:
    with pytest.raises(RedisError, match="wrong number of arguments"):
        ask(connection, "GET", "one", "two")
    assert ask(connection, "SET", "fine", "1") == b"OK"


def test_another_node_takes_over(frail_cluster: RedisCluster) -> None:
    settings = RedisSettings.from_url(frail_cluster.url())
    connection = connect(settings)
    key = next(
        key
        for key in (f"key {number}" for number in range(100))
        if frail_cluster.node_of(key) is frail_cluster.mortal
    )
    ask(connection, "SET", key, "1")
    assert ask(connection, "WAIT", 1, 5_000) == 1
    frail_cluster.fail_over()
    with pytest.raises(LostConnection):
        ask(connection, "GET", key)
    connection.disconnect()
    connection = connect(settings)
    assert ask(connection, "GET", key) == b"1"
    connection.disconnect()


def test_of_the_nodes_of_a_url_one_is_enough(redis_cluster: RedisCluster) -> None:
    node, *_ = redis_cluster.primaries
    url = f"redis+cluster://:{node.password}@127.0.0.1:1,127.0.0.1:{node.port}"
    settings = RedisSettings.from_url(url)
    connection = connect(settings)
    with pytest.raises(LostConnection):
        ask(connection, "GET", "anything")
    assert ask(connection, "GET", "anything") is None
    connection.disconnect()
