"""`duequeue doctor`: what it finds, and its exit status."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duequeue import ConfigHash, CronMessage, ManualClock, Queue
from duequeue.contract.fixtures import START
from duequeue.errors import StoreUnavailable
from duequeue.parts import QueueSettings
from duequeue.port.examining import Finding, Level, judge_clock
from duequeue.port.history_table import HistoryTable
from duequeue.port.remote import Examination
from duequeue.server import app_for
from duequeue.server.examining import examined
from duequeue.server.limits import Limits
from duequeue.server.metrics import Meter
from duequeue.server.queues import Queues
from duequeue.stores.http.connections import ClientConnections
from duequeue.stores.redis.backend import RedisBackend
from duequeue.stores.redis.connections import examining as redis
from duequeue.stores.redis_client.settings import RedisSettings
from duequeue.stores.sql.connections.examining import judge_transactions
from duequeue.stores.sql.mariadb import examining as mariadb
from duequeue.stores.sql.postgres import examining as postgres
from duequeue.stores.sql.sqlite import examining as sqlite
from tests.cli.conftest import DueQueue, Ran
from tests.fixtures.mariadb import MariaDBServer, connected
from tests.fixtures.redis_cluster import RedisCluster
from tests.fixtures.redis_server import RedisServer
from tests.server.served import served

HOUR = timedelta(hours=1)
HEALTHY = postgres.ExaminedPostgres("18.1", 0, False, "on", "on", "on", 100, 5)


def about(ran: Ran, word: str) -> dict[str, Any]:
    (found,) = [each for each in ran.json if each["about"] == word]
    return dict(found)


def test_a_healthy_store_is_well(duequeue: DueQueue, queue: Queue[Any], store: str) -> None:
    ran = duequeue("doctor", "--json")
    words = {each["about"] for each in ran.json}
    worse = {each["about"] for each in ran.json if each["level"] != "ok"}
    # The tests' own servers do not wait for their disks, which is a problem indeed.
    is_hasty = store in {"postgres", "mariadb"}
    assert (worse, ran.status) == (({"durability"}, 5) if is_hasty else (set(), 0))
    assert {"connection", "queue orders"} <= words
    expected = {
        "postgres": {"server", "clock", "schema", "autovacuum", "indexes", "poll plan"},
        "mariadb": {"server", "clock", "schema", "binary log", "session", "packets", "indexes"},
        "redis": {"server", "clock", "memory", "eviction", "append-only file", "layout"},
        "http": {"service", "clock of the service", "schema", "poll plan"},
        "sqlite": {"file", "journal", "disk", "schema", "integrity", "indexes", "poll plan"},
    }
    assert expected.get(store, set()) <= words
    text = duequeue("doctor").lines
    assert len(text) == len(ran.json) + len(worse)
    assert sum(line.startswith("ok       ") for line in text) == len(ran.json) - len(worse)
    assert len(duequeue("doctor", "-q").lines) == 2 * len(worse), "each with its advice"


def test_a_server_with_another_clock(bare: DueQueue, tmp_path: Path) -> None:
    moved = ManualClock(datetime.now(UTC) - HOUR)
    with served(app_for(f"sqlite:///{tmp_path / 'q.db'}", clock=moved)) as server:
        ran = bare("doctor", "--url", server.url, "--json")
    assert ran.status == 5
    assert "behind ours" in about(ran, "clock of the service")["text"]
    assert version("duequeue") in about(ran, "service")["text"]


def test_a_try_that_fails_is_not_a_difference_of_the_clocks(
    bare: DueQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock(START)
    monkeypatch.setattr("duequeue.cli.verbs.doctor.now", clock.now)
    post = ClientConnections.post

    def post_after_an_outage(
        connections: ClientConnections, path: str, body: bytes, *more: Any
    ) -> Any:
        if b"examine" in body and clock.now() == START:
            clock.advance(HOUR)
            raise StoreUnavailable("the server is away")
        return post(connections, path, body, *more)

    monkeypatch.setattr(ClientConnections, "post", post_after_an_outage)
    with served(app_for(f"sqlite:///{tmp_path / 'q.db'}", clock=clock)) as server:
        ran = bare("doctor", "--url", server.url, "--json")
    assert clock.now() == START + HOUR
    assert about(ran, "clock of the service")["level"] == "ok"


def test_what_a_server_does_first_is_not_a_difference_of_the_clocks(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock(datetime.now(UTC) - HOUR)
    start = Queues.start

    async def start_for_an_hour(queues: Queues) -> HistoryTable:
        clock.advance(HOUR)
        return await start(queues)

    async def found() -> Examination:
        queues = Queues(QueueSettings(redis_url, clock), Limits(), Meter(1))
        try:
            return await examined(queues)
        finally:
            await queues.close()

    monkeypatch.setattr(Queues, "start", start_for_an_hour)
    levels = {each.about: each.level for each in asyncio.run(found()).findings}
    assert levels["clock"] is not Level.PROBLEM  # which it is from a minute on


def test_late_and_buried_messages_are_worth_advice(duequeue: DueQueue, queue: Queue[Any]) -> None:
    queue.offer("a", 1, -HOUR)
    delivery = queue.try_poll()
    assert delivery is not None
    delivery.bury("enough")
    queue.offer("b", 1, -HOUR)
    ran = duequeue("doctor", "-q")
    due = "1 message due, the oldest for 1.0 h, which is longer than 5.0 min (--late)."
    assert due in ran.out
    assert "1 message buried." in ran.out
    assert "duequeue buried ls" in ran.out


def test_the_limit_of_what_is_late_is_named_and_can_be_moved(
    duequeue: DueQueue, queue: Queue[Any]
) -> None:
    queue.offer("tomorrow", 1, 24 * HOUR)
    assert about(duequeue("doctor", "--json"), "queue orders")["text"] == (
        "1 message, none of them due. None buried."
    )
    queue.offer("a", 1, -HOUR)
    found = about(duequeue("doctor", "--late", "2h", "--json"), "queue orders")
    due = "1 due, the oldest for 1.0 h and none for longer than 2.0 h (--late)"
    assert (found["level"], found["text"]) == ("ok", f"2 messages, {due}. None buried.")
    assert "1.0 h ago" in duequeue("ls", "--state", "due").out
    found = about(duequeue("doctor", "--late", "30m", "--json"), "queue orders")
    assert (found["level"], found["text"]) == (
        "advice",
        "1 message due, the oldest for 1.0 h, which is longer than 30.0 min (--late).",
    )


def test_a_cron_that_nobody_keeps_is_worth_advice(duequeue: DueQueue, queue: Queue[Any]) -> None:
    queue.cron.install_tick(ConfigHash("x"), "lost", [CronMessage(1, datetime.now(UTC) - HOUR)])
    delivery = queue.try_poll()
    assert delivery is not None
    delivery.ack()
    assert "The cron 'lost' is installed, but has no future tick." in duequeue("doctor", "-q").out


@pytest.fixture
def file(tmp_path: Path, bare: DueQueue, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "queue.db"
    url = f"sqlite:///{path}"
    Queue.open(url, "orders").close()
    monkeypatch.setenv("DUEQUEUE_URL", url)
    return path


def change(file: Path, statement: str) -> None:
    connection = sqlite3.connect(file)
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_a_missing_file(bare: DueQueue, tmp_path: Path) -> None:
    ran = bare("doctor", "--url", f"sqlite:///{tmp_path / 'missing.db'}", "--json")
    assert ran.status == 5
    assert about(ran, "file")["level"] == "problem"
    assert not (tmp_path / "missing.db").exists()


def test_an_old_schema(bare: DueQueue, file: Path) -> None:
    last = "SELECT max(number) FROM duequeue_migration"
    change(file, f"DELETE FROM duequeue_migration WHERE number = ({last})")  # noqa: S608
    ran = bare("doctor", "--json")
    assert ran.status == 5
    assert about(ran, "schema")["advice"] == "Run `duequeue migrate`."


def test_a_newer_schema(bare: DueQueue, file: Path) -> None:
    change(file, "INSERT INTO duequeue_migration (number, name, checksum) VALUES (999, 'x', 'y')")
    ran = bare("doctor", "--json")
    assert ran.status == 5
    assert "newer" in about(ran, "schema")["text"]


def test_a_file_without_tables(bare: DueQueue, tmp_path: Path) -> None:
    change(tmp_path / "empty.db", "CREATE TABLE other (id integer)")
    ran = bare("doctor", "--url", f"sqlite:///{tmp_path / 'empty.db'}", "--json")
    assert ran.status == 5
    assert about(ran, "schema")["text"] == "The database has no tables of DueQueue."


def test_a_lost_index_and_another_journal(bare: DueQueue, file: Path) -> None:
    change(file, "DROP INDEX duequeue_message_due")
    change(file, "PRAGMA journal_mode = delete")
    ran = bare("doctor", "--json")
    assert ran.status == 5
    assert about(ran, "indexes")["level"] == "problem"
    assert about(ran, "poll plan")["level"] == "problem"
    assert about(ran, "journal")["level"] == "advice"


def test_postgres_without_its_index(bare: DueQueue, postgres_url: str) -> None:
    Queue.open(postgres_url, "orders").close()
    with psycopg.connect(postgres_url) as connection:
        connection.execute("DROP INDEX duequeue_message_due")
        connection.execute("ALTER TABLE duequeue_message SET (autovacuum_enabled = off)")
    ran = bare("doctor", "--url", postgres_url, "--json")
    assert ran.status == 5
    assert about(ran, "indexes")["level"] == "problem"
    assert about(ran, "poll plan")["level"] == "problem"
    assert about(ran, "autovacuum")["level"] == "problem"


def test_a_login_that_may_not_look_is_told_so(bare: DueQueue, postgres_url: str) -> None:
    Queue.open(postgres_url, "orders").close()
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE ROLE onlooker LOGIN PASSWORD 'looking'")
        connection.execute("GRANT SELECT ON duequeue_migration, duequeue_kind TO onlooker")
    location = postgres_url.rpartition("@")[2].removeprefix("postgresql://")
    try:
        ran = bare("doctor", "--url", f"postgresql://onlooker:looking@{location}", "--json")
        assert about(ran, "poll plan")["level"] == "advice"
        assert about(ran, "queue orders")["level"] == "advice"
    finally:
        with psycopg.connect(postgres_url) as connection:
            connection.execute("DROP OWNED BY onlooker; DROP ROLE onlooker")


def test_mariadb_that_forgets_the_last_second(
    bare: DueQueue, mariadb_server: MariaDBServer, mariadb_url: str
) -> None:
    Queue.open(mariadb_url, "orders").close()
    with connected(mariadb_server.admin_url) as cursor:
        cursor.execute("SELECT @@innodb_flush_log_at_trx_commit")
        ((usual,),) = cursor.fetchall()
        cursor.execute("SET GLOBAL innodb_flush_log_at_trx_commit = 0")
        try:
            ran = bare("doctor", "--url", mariadb_url, "--json")
        finally:
            cursor.execute(f"SET GLOBAL innodb_flush_log_at_trx_commit = {usual}")
    assert ran.status == 5
    found = about(ran, "durability")
    assert found["level"] == "problem"
    assert "innodb_flush_log_at_trx_commit is 0" in found["text"]
    assert about(ran, "transactions")["text"].startswith("The oldest open transaction began")


def test_mariadb_without_its_index(bare: DueQueue, mariadb_url: str) -> None:
    Queue.open(mariadb_url, "orders").close()
    with connected(mariadb_url) as cursor:
        cursor.execute("DROP INDEX duequeue_message_due ON duequeue_message")
    ran = bare("doctor", "--url", mariadb_url, "--json")
    assert ran.status == 5
    assert "lacks duequeue_message_due" in about(ran, "indexes")["text"]


def test_mariadb_without_tables(bare: DueQueue, mariadb_url: str) -> None:
    ran = bare("doctor", "--url", mariadb_url, "--json")
    assert ran.status == 5
    assert about(ran, "schema")["text"] == "The database has no tables of DueQueue."


def test_a_login_of_mariadb_need_not_see_transactions(bare: DueQueue, ready_mariadb: str) -> None:
    ran = bare("doctor", "--url", ready_mariadb, "--json")
    found = about(ran, "transactions")
    assert (found["level"], found["text"]) == ("ok", "This login may not see open transactions.")
    assert about(ran, "purge")["level"] == "ok"


@contextmanager
def configured(server: RedisServer, **settings: str) -> Iterator[None]:
    """Change settings of a server for as long as the block lasts."""
    names = {name: name.replace("_", "-") for name in settings}
    usual = {each: server.ask("CONFIG", "GET", each)[1] for each in names.values()}
    try:
        for name, value in settings.items():
            server.ask("CONFIG", "SET", names[name], value)
        yield
    finally:
        for name, value in usual.items():
            server.ask("CONFIG", "SET", name, value)


def test_redis_that_evicts(bare: DueQueue, redis_server: RedisServer, redis_url: str) -> None:
    Queue.open(redis_url, "orders").close()
    with configured(redis_server, maxmemory="1000000000", maxmemory_policy="allkeys-lru"):
        ran = bare("doctor", "--url", redis_url, "--json")
        assert ran.status == 5
        assert about(ran, "eviction")["level"] == "problem"
        assert "allkeys-lru" in about(ran, "eviction")["text"]
        ran = bare("doctor", "--url", f"{redis_url}?eviction=allow", "--json")
        assert (ran.status, about(ran, "eviction")["level"]) == (0, "ok")


@pytest.mark.usefixtures("impatient")
def test_redis_that_does_not_do_what_the_url_demands(
    bare: DueQueue, redis_server: RedisServer, redis_url: str
) -> None:
    Queue.open(redis_url, "orders").close()
    ran = bare("doctor", "--url", f"{redis_url}?durable=replica", "--json")
    assert (ran.status, about(ran, "replicas")["level"]) == (5, "problem")
    assert about(ran, "queue orders")["level"] == "problem", "it cannot be opened"
    ran = bare("doctor", "--url", f"{redis_url}?durable=fsync", "--json")
    assert (ran.status, about(ran, "append-only file")["level"]) == (5, "problem")
    with configured(redis_server, appendfsync="always"):
        ran = bare("doctor", "--url", f"{redis_url}?durable=fsync", "--json")
        assert (ran.status, about(ran, "append-only file")["level"]) == (0, "ok")
    with configured(redis_server, appendfsync="no"):
        ran = bare("doctor", "--url", redis_url, "--json")
        assert (ran.status, about(ran, "append-only file")["level"]) == (0, "advice")
        ran = bare("doctor", "--url", f"{redis_url}?durable=fsync", "--json")
        assert (ran.status, about(ran, "append-only file")["level"]) == (5, "problem")


def test_redis_with_keys_of_another_layout(
    bare: DueQueue, redis_server: RedisServer, redis_url: str
) -> None:
    Queue.open(redis_url, "orders").close()
    redis_server.ask("HSET", "dq:kinds", "", 2, database=int(redis_url.rpartition("/")[2]))
    ran = bare("doctor", "--url", redis_url, "--json")
    assert (ran.status, about(ran, "layout")["level"]) == (5, "problem")


def test_a_user_of_redis_that_may_not_ask_is_told_so(
    bare: DueQueue, redis_server: RedisServer, redis_url: str
) -> None:
    Queue.open(redis_url, "orders").close()
    url = redis_url.replace(f":{redis_server.password}@", "onlooker:looking@")
    rights = ("on", ">looking", "~dq:*", "&dq:*", "+@all", "-config")
    redis_server.ask("ACL", "SETUSER", "onlooker", *rights)
    try:
        ran = bare("doctor", "--url", url, "--json")
        assert (ran.status, about(ran, "append-only file")["level"]) == (0, "advice")
        redis_server.ask("ACL", "SETUSER", "onlooker", "-info")
        ran = bare("doctor", "--url", url, "--json")
        assert (ran.status, about(ran, "server")["level"]) == (0, "advice")
    finally:
        redis_server.ask("ACL", "DELUSER", "onlooker")


def test_each_node_of_a_cluster_that_has_a_queue(
    bare: DueQueue, redis_cluster: RedisCluster
) -> None:
    url = f"{redis_cluster.url()}?shards=6"
    Queue.open(url, "orders").close()
    try:
        ran = bare("doctor", "--url", url, "--json")
    finally:
        redis_cluster.flush()
    assert ran.status == 0
    for node in redis_cluster.primaries:
        assert about(ran, f"cluster of 127.0.0.1:{node.port}")["level"] == "ok"
        assert about(ran, f"append-only file of 127.0.0.1:{node.port}")["level"] == "ok"


def test_redis_is_examined_in_an_event_loop_as_well(redis_url: str) -> None:
    async def examined() -> list[Finding]:
        backend = RedisBackend(redis_url)
        session = backend.async_session()
        try:
            return await session.run(lambda: backend.examine(0))
        finally:
            await session.close()

    found = {finding.about: finding.level for finding in asyncio.run(examined())}
    assert (found["append-only file"], found["clock"]) == (OK, PROBLEM)


def levels(findings: list[Finding]) -> list[Level]:
    return [finding.level for finding in findings]


OK, ADVICE, PROBLEM = Level.OK, Level.ADVICE, Level.PROBLEM


def test_a_server_is_judged() -> None:
    assert levels(postgres.judge_server(HEALTHY)) == [OK, OK]
    assert levels(postgres.judge_server(HEALTHY._replace(connections=80))) == [OK, ADVICE]
    sick = HEALTHY._replace(is_standby=True, fsync="off")
    assert levels(postgres.judge_server(sick)) == [OK, PROBLEM, PROBLEM, OK]


@pytest.mark.parametrize(
    ("skew", "level"), [(0, OK), (-999, OK), (1000, ADVICE), (-59_999, ADVICE), (60_000, PROBLEM)]
)
def test_clocks_are_compared(skew: int, level: Level) -> None:
    finding = judge_clock(skew)
    assert finding.level is level
    assert ("behind" in finding.text) == (skew < 0)


def test_dead_rows_and_old_transactions_are_judged() -> None:
    assert levels(postgres.judge_autovacuum(HEALTHY, "fillfactor=50", 100, 9_000)) == [OK]
    assert levels(postgres.judge_autovacuum(HEALTHY, "", 100, 11_000)) == [ADVICE]
    assert levels(postgres.judge_autovacuum(HEALTHY, "autovacuum_enabled=off", 1, 1)) == [PROBLEM]
    off = HEALTHY._replace(autovacuum="off")
    assert levels(postgres.judge_autovacuum(off, "", 1, 1)) == [PROBLEM]
    assert levels(judge_transactions([(3599.0,)])) == [OK]
    assert levels(judge_transactions([(3600.0,)])) == [ADVICE]


def test_swollen_indexes_are_judged() -> None:
    both = [("duequeue_message_due", 1, 1), ("duequeue_message_key", 200_000_000, 1_000_000)]
    assert levels(postgres.judge_all_indexes(both)) == [OK]
    swollen = [both[0], ("duequeue_message_key", 200_000_000, 1000)]
    assert levels(postgres.judge_all_indexes(swollen)) == [OK, ADVICE]
    assert levels(postgres.judge_all_indexes([])) == [PROBLEM]


SOUND = mariadb.ExaminedMariaDB(
    "10.11.18-MariaDB",
    is_read_only=False,
    flush_log="1",
    flush_method="O_DIRECT",
    has_binlog=True,
    binlog_format="MIXED",
    sync_binlog="1",
    isolation="READ-COMMITTED",
    has_snapshots=False,
    most_bytes=16 * 2**20,
    most_connections=100,
    connections=5,
    history=None,
)


@pytest.mark.parametrize(
    ("about", "level", "changed"),
    [
        ("server", PROBLEM, {"is_read_only": True}),
        ("durability", PROBLEM, {"flush_log": "0"}),
        ("durability", ADVICE, {"flush_log": "2"}),
        ("durability", PROBLEM, {"flush_method": "nosync"}),
        ("durability", ADVICE, {"sync_binlog": "0"}),
        ("binary log", PROBLEM, {"binlog_format": "STATEMENT"}),
        ("session", PROBLEM, {"isolation": "REPEATABLE-READ"}),
        ("session", PROBLEM, {"has_snapshots": True}),
        ("packets", ADVICE, {"most_bytes": 8 * 2**20}),
        ("connections", ADVICE, {"connections": 80}),
    ],
)
def test_mariadb_is_judged(about: str, level: Level, changed: dict[str, Any]) -> None:
    assert set(levels(mariadb.judge_server(SOUND))) == {OK}
    findings = mariadb.judge_server(SOUND._replace(**changed))
    (found,) = [each for each in findings if each.level is not OK]
    assert (found.about, found.level) == (about, level)
    assert found.advice


def test_a_binary_log_that_is_not_written_does_no_harm() -> None:
    unused = SOUND._replace(has_binlog=False, binlog_format="STATEMENT", sync_binlog="0")
    assert set(levels(mariadb.judge_server(unused))) == {OK}


def test_the_history_of_mariadb_is_judged() -> None:
    assert mariadb.judge_history(999_999).level is OK
    assert mariadb.judge_history(1_000_000).level is ADVICE


INFO = {
    "redis_version": "7.2.4",
    "role": "master",
    "server_time_usec": "0",
    "connected_clients": "5",
    "maxclients": "100",
    "used_memory": "1000",
    "maxmemory": "100000",
    "maxmemory_policy": "noeviction",
    "aof_enabled": "1",
    "appendfsync": "everysec",
    "connected_slaves": "0",
}


@pytest.mark.parametrize(
    ("about", "level", "changed"),
    [
        ("server", PROBLEM, {"redis_version": "6.0.9"}),
        ("server", PROBLEM, {"role": "slave"}),
        ("connections", ADVICE, {"connected_clients": "80"}),
        ("memory", ADVICE, {"used_memory": "80000"}),
        ("memory", PROBLEM, {"used_memory": "100000"}),
        ("memory", ADVICE, {"maxmemory": "0", "total_system_memory": "1200"}),
        ("eviction", PROBLEM, {"maxmemory_policy": "allkeys-random"}),
        ("append-only file", ADVICE, {"aof_enabled": "0"}),
        ("append-only file", ADVICE, {"appendfsync": "no"}),
        ("disk", PROBLEM, {"aof_last_write_status": "err"}),
        ("disk", PROBLEM, {"rdb_last_bgsave_status": "err"}),
        ("disk", ADVICE, {"aof_last_bgrewrite_status": "err"}),
    ],
)
def test_redis_is_judged(about: str, level: Level, changed: dict[str, str]) -> None:
    settings = RedisSettings.from_url("redis://localhost")
    assert set(levels(redis.judge_server(settings, INFO, 0))) == {OK}
    findings = redis.judge_server(settings, INFO | changed, 0)
    (found,) = [each for each in findings if each.level is not OK]
    assert (found.about, found.level) == (about, level)
    assert found.advice


def test_redis_may_forget_if_the_url_says_so() -> None:
    settings = RedisSettings.from_url("redis://localhost?persistence=none")
    assert set(levels(redis.judge_server(settings, INFO | {"aof_enabled": "0"}, 0))) == {OK}


def test_clusters_are_judged() -> None:
    assert redis.judge_cluster(b"cluster_state:ok\r\ncluster_slots_ok:16384\r\n").level is OK
    assert redis.judge_cluster(b"cluster_state:ok\r\ncluster_slots_ok:9\r\n").level is PROBLEM
    assert redis.judge_cluster(b"cluster_state:fail\r\n").level is PROBLEM
    assert redis.judge_cluster(None).level is ADVICE


def test_files_are_judged() -> None:
    assert sqlite.judge_unused(90_000_000, 100_000_000).level is OK
    assert sqlite.judge_unused(190_000_000, 200_000_000).level is ADVICE
    assert sqlite.judge_log(1).level is OK
    assert sqlite.judge_log(100_000_000).level is ADVICE
    assert sqlite.judge_space(2_000_000_000).level is OK
    assert sqlite.judge_space(500_000_000).level is ADVICE
    assert sqlite.judge_space(50_000_000).level is PROBLEM
    assert sqlite.judge_damage("ok").level is OK
    assert sqlite.judge_damage("row 1 missing from index").level is PROBLEM
