"""The rules by which the statements are safe and fast on MariaDB: plans, locks, marks, retries."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from time import monotonic, sleep
from typing import Any

import pymysql
import pytest
from pymysql.cursors import Cursor

import duequeue.bulk.mariadb  # noqa: F401 - it adds the queries of whole batches
from duequeue import Message, OfferOutcome, Outcome, Queue, RetryPolicy
from duequeue.contract.faces import Face
from duequeue.contract.fixtures import START
from duequeue.contract.phrases import PATIENCE, in_background, snapshot
from duequeue.contract.stage import until
from duequeue.drive.steps import drive
from duequeue.errors import PayloadTooLarge
from duequeue.port.store import Steps
from duequeue.stores.sql.commands import Query, QueryEach
from duequeue.stores.sql.connections.watchdog import PROBE_EVERY, WatchedPlace
from duequeue.stores.sql.mariadb import conversation
from duequeue.stores.sql.mariadb.accepted import explained
from duequeue.stores.sql.mariadb.connections import (
    MARIADB_SETTINGS,
    SETTINGS,
    MariadbConnection,
    connect,
    send,
)
from duequeue.stores.sql.mariadb.connections_async import AsyncMariadbConnection
from duequeue.stores.sql.mariadb.conversation import MANY_OFFERED, Conversation
from duequeue.stores.sql.mariadb.replies import ServerReply
from duequeue.stores.sql.mariadb.server import MariadbServer, ServerFacts
from duequeue.stores.sql.mariadb.session import MariadbSession
from duequeue.stores.sql.mariadb.session_async import AsyncMariadbSession
from duequeue.stores.sql.mariadb.settings import Host, HostAddress, MariadbSettings
from duequeue.stores.sql.mariadb.statements import (
    MOST_AT_ONCE,
    literals,
    prepared,
    rendered,
    rendered_each,
)
from duequeue.stores.sql.watermark import BEGINNING
from tests.fixtures.mariadb import MariaDBServer, connected

DUE = 1_000
ROWS = 120
FACTS = ServerFacts(is_mysql=False, most_bytes=16 * 2**20, lock_seconds=8)
BY_INDEX = {"const", "eq_ref", "ref", "range"}
LOCKED_ROWS = """
    SELECT trx_rows_locked FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = %s
"""
WAITING = """
    SELECT COUNT(*) FROM information_schema.innodb_trx
    INNER JOIN information_schema.processlist ON id = trx_mysql_thread_id
    WHERE trx_state = 'LOCK WAIT' AND db = %s
"""

MANY_CHANGES = "UPDATE duequeue_message SET attempt = 1 WHERE lease_token = 7"


@pytest.fixture
def queue(ready_mariadb: str) -> Iterator[Queue[Any]]:
    with Queue.open(ready_mariadb, "orders", retry=RetryPolicy.never()) as opened:
        yield opened


@pytest.fixture
def cursor(ready_mariadb: str, queue: Queue[Any]) -> Iterator[Cursor]:
    """A connection with the settings of ours, on a table of a few rows due at one instant."""
    with connected(ready_mariadb) as cursor:
        for statement in (*SETTINGS, *MARIADB_SETTINGS):
            cursor.execute(statement)
        fill(cursor, kind_of(cursor), ROWS)
        yield cursor


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that our connections send."""
    statements: list[str] = []

    def listen_to(kind: Any) -> None:
        send = kind.send

        def listen(connection: Any, texts: Sequence[str]) -> Any:
            statements.extend(texts)
            return send(connection, texts)

        monkeypatch.setattr(kind, "send", listen)

    listen_to(MariadbConnection)
    listen_to(AsyncMariadbConnection)
    return statements


def kind_of(cursor: Cursor) -> int:
    cursor.execute("SELECT id FROM duequeue_kind WHERE kind = 'orders|json'")
    row: Any = cursor.fetchone()
    return int(row[0])


def fill(cursor: Cursor, kind: int, many: int) -> None:
    rows = ", ".join(f"({kind}, 'k{n:06}', '1', {DUE}, {DUE}, 0, 7)" for n in range(many))
    columns = "kind_id, `key`, payload, due_at, asked_at, created_at, lease_token"
    cursor.execute(f"INSERT INTO duequeue_message ({columns}) VALUES {rows}")  # noqa: S608


def ids(cursor: Cursor) -> list[int]:
    cursor.execute("SELECT id FROM duequeue_message ORDER BY id")
    return [row[0] for row in cursor.fetchall()]


def first_packet(command: object) -> list[str]:
    """What is sent first for a command, without the beginning and end of the transaction."""
    packet = next(iter(Conversation(FACTS).perform(command)))
    return [text for text in packet if text not in {"BEGIN", "COMMIT"}]


def claim(kind: int, after: tuple[int, int], now: int = DUE, limit: int = 10) -> Query:
    until = {"until": now + 1, "token": 5, "limit": limit}
    mark = {"after_due": after[0], "after_id": after[1]}
    return Query("claim_messages", {"kind_id": kind, "now": now, **until, **mark})


def handler_reads(cursor: Cursor) -> int:
    cursor.execute("SHOW SESSION STATUS LIKE 'Handler_read_%'")
    return sum(int(value) for name, value in cursor.fetchall() if "rnd_deleted" not in name)


@pytest.mark.parametrize("now", [DUE, DUE + 1], ids=["at its instant", "later"])
def test_a_claim_reads_what_it_takes_and_not_what_lies_before_its_mark(
    cursor: Cursor, now: int
) -> None:
    kind = kind_of(cursor)
    (select,) = first_packet(claim(kind, (DUE, ids(cursor)[ROWS // 2]), now))
    cursor.execute("BEGIN")
    before = handler_reads(cursor)
    cursor.execute(select)
    assert len(cursor.fetchall()) == 10
    # An entry of the index, its row, and a look for an old response for each of them.
    assert handler_reads(cursor) - before < 40
    cursor.execute("ROLLBACK")


@pytest.mark.parametrize("history", [False, True])
def test_an_offer_of_many_is_judged_by_what_the_server_counts(
    ready_mariadb: str, face: Face, history: bool
) -> None:
    """As many updates as ignored offers touch as many rows as if all were new."""
    old = [Message(f"k{n}", n, START) for n in range(2 * MANY_OFFERED)]
    created, updated, ignored = OfferOutcome.CREATED, OfferOutcome.UPDATED, OfferOutcome.IGNORED
    with face.open(ready_mariadb, "orders", history=history) as queue:
        assert queue.offer_batch(old) == [created] * len(old)
        assert queue.offer_batch(old) == [ignored] * len(old)
        half = [replace(message, payload=-1) for message in old[::2]]
        mixed = [*half, *old[1::2]]
        assert queue.offer_batch(mixed) == [updated] * len(half) + [ignored] * len(half)
        one_old = [Message("new", 1), *(Message(f"n{n}", n) for n in range(700)), old[1]]
        assert queue.offer_batch(one_old) == [created] * 701 + [ignored]
        twice = [Message(f"t{n}", 1, START) for n in range(MANY_OFFERED)] * 2
        assert queue.offer_batch(twice) == [created] * MANY_OFFERED + [ignored] * MANY_OFFERED
        replaced = [row for row in queue.history(limit=1000) if row.outcome is Outcome.REPLACED]
        assert len(replaced) == (len(half) if history else 0)


def test_an_offer_of_many_is_fast_on_a_server_that_speaks_german(
    mariadb_server: MariaDBServer, ready_mariadb: str, sent: list[str]
) -> None:
    with in_german(mariadb_server.admin_url), Queue.open(ready_mariadb, "orders") as queue:
        outcomes = queue.offer_batch([Message(f"k{n}", n) for n in range(MANY_OFFERED)])
    assert outcomes == [OfferOutcome.CREATED] * MANY_OFFERED
    assert not [text for text in sent if text.startswith("SELECT `key`")]


@contextmanager
def in_german(admin_url: str) -> Iterator[None]:
    """Let the server answer new connections in German."""
    with connected(admin_url) as admin:
        admin.execute("SELECT @@GLOBAL.lc_messages")
        before = admin.fetchone()
        admin.execute("SET GLOBAL lc_messages = 'de_DE'")
        try:
            yield
        finally:
            admin.execute("SET GLOBAL lc_messages = %s", before)


def test_ids_of_many_leases_come_back_whole(ready_mariadb: str, face: Face) -> None:
    with face.open(ready_mariadb, "orders") as queue:
        queue.offer_batch([Message(str(n), n) for n in range(1200)])
        held = queue.try_poll_many(1000) + queue.try_poll_many(200)
        assert queue.ack_many(held[1:]) == 1199
        assert queue.ack_many(held) == 1
        assert queue.ack_many(held) == 0


def test_ids_of_many_leases_come_back_whole_on_a_borrowed_connection(
    ready_mariadb: str, queue: Queue[Any]
) -> None:
    queue.offer_batch([Message(str(n), n) for n in range(400)])
    held = queue.try_poll_many(400)
    with connected(ready_mariadb) as cursor:
        cursor.execute("SET SESSION group_concat_max_len = 1024")
        cursor.execute("BEGIN")
        assert queue.within(cursor.connection).ack_many(held) == 400
        cursor.execute("COMMIT")
    assert queue.stats().total == 0


@pytest.mark.parametrize("now", [DUE, DUE + 1], ids=["at its instant", "later"])
def test_a_claim_locks_what_it_takes_and_nothing_else(
    mariadb_server: MariaDBServer, ready_mariadb: str, cursor: Cursor, now: int
) -> None:
    kind, all_ids = kind_of(cursor), ids(cursor)
    (select,) = first_packet(claim(kind, (DUE, all_ids[9]), now))
    cursor.execute("BEGIN")
    cursor.execute(select)
    taken = {row[1] for row in cursor.fetchall()}
    with connected(mariadb_server.admin_url) as admin:
        until(lambda: locked_by(admin, cursor) == 2 * len(taken))  # entries of the index, and rows
    with connected(ready_mariadb) as other:
        other.execute("SELECT id FROM duequeue_message FOR UPDATE SKIP LOCKED")
        assert set(all_ids) - {row[0] for row in other.fetchall()} == taken
    cursor.execute("ROLLBACK")


def test_a_claim_from_the_beginning_does_not_lock_the_leases_that_it_passes(
    ready_mariadb: str, cursor: Cursor
) -> None:
    """Their holders can settle them, while MariaDB would keep the locks of all rows on the way."""
    all_ids, free = ids(cursor), set[int]()
    leased = all_ids[: ROWS // 2]
    lease = "UPDATE duequeue_message SET leased_until = %s WHERE id <= %s"
    cursor.execute(lease, (2 * DUE, leased[-1]))
    with connected(ready_mariadb) as other:

        def send_and_look(texts: Sequence[str]) -> list[ServerReply]:
            replies = send(cursor.connection, texts)
            if any("SKIP LOCKED" in text for text in texts):
                other.execute("SELECT id FROM duequeue_message FOR UPDATE SKIP LOCKED")
                free.update(row[0] for row in other.fetchall())
            return replies

        claiming = Conversation(FACTS).perform(claim(kind_of(cursor), BEGINNING))
        rows: Any = drive(claiming, send_and_look)
    taken = [row[1] for row in rows]
    assert taken == all_ids[ROWS // 2 :][:10]
    assert set(all_ids) - free == set(taken)


def locked_by(admin: Cursor, cursor: Cursor) -> int | None:
    """How many locks a connection holds.

    The server refreshes this table only if nobody has read it for a tenth of a second.
    """
    sleep(0.15)
    cursor.execute("SELECT CONNECTION_ID()")
    admin.execute(LOCKED_ROWS, cursor.fetchone())
    found: Any = admin.fetchone()
    return found and int(found[0])


def test_no_producer_waits_for_a_claimer(queue: Queue[Any], cursor: Cursor) -> None:
    (select,) = first_packet(claim(kind_of(cursor), (DUE - 1, 0)))
    cursor.execute("BEGIN")
    cursor.execute(select)
    assert len(cursor.fetchall()) == 10
    offers = [Message(f"k000003{end}", 1) for end in "abc"]  # their keys lie between taken ones
    offering = in_background(partial(queue.offer_batch, offers))
    assert offering.result(PATIENCE) == [OfferOutcome.CREATED] * 3
    cursor.execute("ROLLBACK")


@pytest.mark.parametrize("many", [1, 100, 1500])
@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("remove_messages", ()),
        ("remove_messages_with_history", ("delivered_at", "handler_ms")),
        ("release_messages", ("due_at",)),
        ("remove_expired", ()),
        ("remove_with_outcome", ("delivered_at", "handler_ms", "attempts")),
        ("give_back_messages", ()),
        ("extend_leases", ()),
        ("park_messages", ("key", "attempts", "reason")),
    ],
)
def test_settling_looks_each_lease_up(
    cursor: Cursor, name: str, columns: Sequence[str], many: int
) -> None:
    some = [number + 1 for number in range(many)]
    each = [(number, 7 + number % 2, *(number for _ in columns)) for number in some]
    common = {"now": 1, "until": 2, "outcome": "expired"}
    packet = first_packet(QueryEach(name, common, ("id", "token", *columns), each))
    for text in packet:
        assert plan_of(cursor, text) <= BY_INDEX, text


def test_a_list_of_leases_is_no_join_on_a_borrowed_connection_either(cursor: Cursor) -> None:
    cursor.execute("SET SESSION in_predicate_conversion_threshold = DEFAULT")
    each = [(number, 7 + number % 2) for number in range(MOST_AT_ONCE)]
    for text in first_packet(QueryEach("remove_messages", {}, ("id", "token"), each)):
        cursor.execute(f"EXPLAIN {text}")
        assert [row[1] for row in cursor.fetchall()] == ["SIMPLE"], text


def test_an_offer_looks_each_key_up(cursor: Cursor) -> None:
    name = "offer_messages_with_history"
    each = [(f"k{n:06}", b"1", DUE, None, True, None) for n in range(100)]
    columns = ("key", "payload", "due_at", "headers", "replace", "expires_at")
    common = {"kind_id": kind_of(cursor), "now": 1, "note": None, "lock_timeout": None}
    for text in first_packet(QueryEach(name, common, columns, each)):
        if "VALUES" not in text:
            assert plan_of(cursor, text) <= BY_INDEX, text


FEW_ROWS = {
    "duequeue_buried": """
        INSERT INTO duequeue_buried (kind_id, `key`, payload, asked_at, attempts, reason, buried_at)
        VALUES (1, %s, '', 0, 1, '', 0)
    """,
    "duequeue_response": """
        INSERT INTO duequeue_response (kind_id, `key`, payload, responded_at, expires_at)
        VALUES (1, %s, '', 0, 0)
    """,
    "duequeue_history": """
        INSERT INTO duequeue_history (kind_id, `key`, asked_at, settled_at, attempts, outcome)
        VALUES (1, %s, 0, -1, 1, 'acked')
    """,
}


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("forget_burials", "duequeue_buried"),
        ("delete_old_burials", "duequeue_buried"),
        ("sweep_responses", "duequeue_response"),
        ("delete_old_history", "duequeue_history"),
    ],
)
def test_most_rows_of_a_small_table_are_deleted_by_their_ids(
    cursor: Cursor, name: str, table: str
) -> None:
    """Otherwise the statement would wait for the other rows, which may be locked."""
    cursor.executemany(FEW_ROWS[table], [(f"k{n}",) for n in range(10)])
    cursor.execute(f"SELECT id FROM {table}")  # noqa: S608
    some = [str(row[0]) for row in cursor.fetchall()][:9]
    query = prepared(name, is_mysql=False)
    if query.then:
        values = {"found": ", ".join(some), "kind_id": "1", "before": "1", "now": "1", "limit": "9"}
        (delete,) = rendered(query.then, values)
    else:
        (delete,) = rendered_each(query.first, {}, ("id",), [(int(number),) for number in some])
    assert plan_of(cursor, delete) == {"range"}


TEN_ROWS = {
    "duequeue_tick (kind_id, prefix, config_hash, tick_at, `key`)": "({kind}, 'p', 'h', {n}, 'k')",
    "duequeue_buried (kind_id, `key`, payload, asked_at, attempts, reason, buried_at)": (
        "({kind}, 'k{n}', '', 0, 1, '', {n})"
    ),
    "duequeue_response (kind_id, `key`, responded_at, expires_at)": "({kind}, 'k{n}', 0, {n})",
    "duequeue_stream_commit (kind_id, app, batch, committed_at)": "({kind}, 'a{n}', 1, 1)",
    "duequeue_stage (writer, batch, part, position, due_at, `replace`, `key`, payload)": (
        "(7, 1, {n}, 0, 1, TRUE, 'k', '')"
    ),
    """duequeue_stream_batch (
        kind_id, consumer, sequence, slice, leased_at, leased_until, last_due_at,
        longest_payload, ids
    )""": "({kind}, 'c', {n}, 0, 1, 1, 1, 1, '[]')",
}
NINE = range(9)
NINE_KEYS = ("key",), [(f"k{n:06}",) for n in NINE]


@pytest.mark.parametrize(
    ("name", "columns", "each"),
    [
        ("drop_message", *NINE_KEYS),
        ("drop_message_with_history", *NINE_KEYS),
        ("remove_tick_messages", *NINE_KEYS),
        ("remove_tick_messages_with_history", *NINE_KEYS),
        ("remove_ticks", ("config_hash", "tick_at"), [("h", n) for n in NINE]),
        ("discard_staged", ("part",), [(n,) for n in NINE]),
        ("forget_ticks", (), []),
        ("drop_messages", (), []),
        ("purge_buried", (), []),
        ("forget_all_responses", (), []),
        ("forget_commit", (), []),
        ("forget_stream_batch", (), []),
        ("empty_stage", (), []),
    ],
)
def test_a_delete_by_an_index_of_several_columns_reads_no_more_than_it_finds_there(
    cursor: Cursor, name: str, columns: Sequence[str], each: Sequence[Any]
) -> None:
    """It needs no condition on another column, even if it deletes most rows of a small table."""
    kind, query = kind_of(cursor), prepared(name, is_mysql=False)
    for place, row in TEN_ROWS.items():
        rows = ", ".join(row.format(kind=kind, n=n) for n in range(10))
        cursor.execute(f"INSERT INTO {place} VALUES {rows}")  # noqa: S608
    given = {"kind_id": kind, "prefix": "p", "config_hash": "h", "before": 9, "app": "a0"}
    given |= {"consumer": "c", "sequence": 0, "writer": 7, "batch": 1, "now": 1, "keep": 0}
    given |= {"token": 0}
    common = {**literals(given, query), "found": ", ".join(map(str, NINE)), "limit": "9"}
    texts = [*rendered_each(query.first, common, columns, each), *rendered(query.then, common)]
    (delete,) = [text for text in texts if text.startswith("DELETE")]
    assert plan_of(cursor, delete) <= BY_INDEX


def plan_of(cursor: Cursor, statement: str) -> set[str]:
    """How the server reads our tables for a statement."""
    cursor.execute(f"EXPLAIN {statement}")
    plan: list[Any] = list(cursor.fetchall())
    assert plan
    return {row[3] for row in plan if row[2] and not row[2].startswith("<") and row[3]}


def test_offers_say_what_became_of_each(queue: Queue[Any]) -> None:
    queue.offer_batch([Message("same", 1, replace=True), Message("other", 1), Message("kept", 1)])
    same = queue.read("same")
    assert same is not None
    outcomes = queue.offer_batch(
        [
            Message("same", 1, same.due_at),
            Message("other", 2),
            Message("kept", 2, replace=False),
            Message("new", 1),
            Message("SAME", 1),
            Message("same ", 1),
        ]
    )
    assert [outcome.value for outcome in outcomes] == [
        *["ignored", "updated", "ignored"],
        *["created"] * 3,
    ]


def test_after_a_deadlock_an_offer_locks_its_rows_first(
    mariadb_server: MariaDBServer,
    ready_mariadb: str,
    queue: Queue[Any],
    sent: list[str],
) -> None:
    queue.offer_batch([Message(key, 1) for key in [*"ab", *(f"other {n}" for n in range(50))]])
    with connected(ready_mariadb) as rival:
        rival.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        rival.execute("BEGIN")
        # The server rolls back the transaction that has changed less.
        rival.execute("UPDATE duequeue_message SET attempt = 1 WHERE `key` LIKE 'other %'")
        rival.execute("UPDATE duequeue_message SET attempt = 1 WHERE `key` = 'b'")
        # The third message has the key of the first, so it takes a statement of its own.
        batch = [Message("a", 2), Message("b", 2), Message("a", 3)]
        offering = in_background(partial(queue.offer_batch, batch))
        wait_for_lock(mariadb_server.admin_url, ready_mariadb)
        rival.execute("UPDATE duequeue_message SET attempt = 1 WHERE `key` = 'a'")
        rival.execute("COMMIT")
    assert offering.result(10) == [OfferOutcome.UPDATED] * 3
    assert [text for text in sent if "AS wanted" in text]


@pytest.mark.parametrize("history", [False, True])
@pytest.mark.parametrize("many", [MANY_OFFERED + 1, 600])
def test_after_a_deadlock_an_offer_of_many_is_repeated_as_a_whole(
    mariadb_server: MariaDBServer,
    ready_mariadb: str,
    face: Face,
    sent: list[str],
    many: int,
    history: bool,
) -> None:
    created, updated, ignored = OfferOutcome.CREATED, OfferOutcome.UPDATED, OfferOutcome.IGNORED
    # The deadlock is between the first and the last message, which is in the last statement. While
    # the rival still takes its locks, there may be a second one, after which the offer is retried.
    expected = [updated, *([created, ignored, updated] * many)[: many - 2], updated]
    keys = ["first", *(f"k{n}" for n in range(many - 2)), "last"]
    offers = list(zip(keys, expected, strict=True))
    old = [Message(key, 1, START) for key, outcome in offers if outcome is not created]
    batch = [Message(key, 1 if outcome is ignored else 2, START) for key, outcome in offers]
    with (
        face.open(ready_mariadb, "orders", history=history) as queue,
        rival_of(ready_mariadb) as rival,
    ):
        queue.offer_batch(old)
        rival.execute("BEGIN")
        rival.execute(MANY_CHANGES)
        rival.execute("UPDATE duequeue_message SET attempt = 1 WHERE `key` = 'last'")
        offering = in_background(partial(queue.offer_batch, batch))
        wait_for_lock(mariadb_server.admin_url, ready_mariadb)
        rival.execute("UPDATE duequeue_message SET attempt = 1 WHERE `key` = 'first'")
        rival.execute("COMMIT")
        assert offering.result(10) == expected
        assert [text for text in sent if "AS wanted" in text]
        replaced = [row.key for row in queue.history(limit=1000) if row.outcome is Outcome.REPLACED]
        changed = [key for key, outcome in offers if outcome is updated]
        assert sorted(replaced) == (sorted(changed) if history else [])
        rival.execute("SELECT `key`, payload FROM duequeue_message WHERE lease_token != 7")
        stored = {key.decode(): int(payload) for key, payload in rival.fetchall()}
        assert stored == {message.key: message.payload for message in batch}


@pytest.mark.parametrize("history", [False, True])
def test_after_a_deadlock_a_single_offer_is_repeated(
    mariadb_server: MariaDBServer, ready_mariadb: str, face: Face, sent: list[str], history: bool
) -> None:
    """An offer locks the entry of its key before the row; an ack does it the other way round."""
    with (
        face.open(ready_mariadb, "orders", history=history, retry=RetryPolicy.never()) as queue,
        rival_of(ready_mariadb) as rival,
    ):
        queue.offer("a", 1, START)
        rival.execute("SELECT id FROM duequeue_message WHERE `key` = 'a'")
        (found,) = rival.fetchall()
        rival.execute("BEGIN")
        rival.execute(MANY_CHANGES)
        rival.execute("SELECT 1 FROM duequeue_message WHERE id = %s FOR UPDATE", found)
        offering = in_background(partial(queue.offer, "a", 2, START))
        wait_for_lock(mariadb_server.admin_url, ready_mariadb)
        rival.execute("DELETE FROM duequeue_message WHERE id = %s", found)
        rival.execute("COMMIT")
        assert offering.result(10) is OfferOutcome.CREATED
        assert [text for text in sent if "AS wanted" in text]
        assert snapshot(queue, "a").payload == 2
        assert queue.history() == []


@contextmanager
def rival_of(url: str) -> Iterator[Cursor]:
    """Connect, and add rows to change: the server ends the transaction with fewer changes."""
    with connected(url) as rival:
        rival.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        rival.execute("INSERT INTO duequeue_kind (kind) VALUES ('others|json')")
        fill(rival, rival.lastrowid, 2000)
        yield rival


def wait_for_lock(admin_url: str, url: str) -> None:
    """Return once somebody waits for a lock in a database; see `locked_by` for the pause."""
    with connected(admin_url) as admin:

        def one_waits() -> bool:
            sleep(0.15)
            admin.execute(WAITING, (url.rpartition("/")[2],))
            return admin.fetchall() == ((1,),)

        until(one_waits)


def test_our_connections_read_what_is_committed(ready_mariadb: str) -> None:
    with connected(ready_mariadb) as cursor:
        cursor.execute("SELECT @@tx_isolation")
        assert cursor.fetchall() == (("REPEATABLE-READ",),)
    look = "SELECT @@tx_isolation, @@sql_mode, @@in_predicate_conversion_threshold"
    settings = MariadbSettings.from_url(ready_mariadb)
    connection = connect(WatchedPlace(MariadbServer(settings)), settings)
    shown = connection.send([look])[0].rows
    connection.finish()
    assert shown == [("READ-COMMITTED", "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION", 0)]


def offer_of(*payloads: bytes) -> QueryEach:
    each = [(f"k{n}", payload, 1, None, True, None) for n, payload in enumerate(payloads)]
    columns = ("key", "payload", "due_at", "headers", "replace", "expires_at")
    common = {"kind_id": 1, "now": 1, "note": None, "lock_timeout": None}
    return QueryEach("offer_messages", common, columns, each)


@pytest.mark.parametrize("name", ["offer_messages", "offer_messages_with_history"])
def test_a_statement_that_fits_no_packet_is_refused_before_anything_is_sent(name: str) -> None:
    small = ServerFacts(is_mysql=False, most_bytes=2**17, lock_seconds=8)
    offer = offer_of(*[b"x"] * MOST_AT_ONCE, b"x" * 2**17)
    talk = Conversation(small, ends_at=monotonic() + 3)
    with pytest.raises(PayloadTooLarge, match="max_allowed_packet"):
        next(iter(talk.perform(offer._replace(name=name))))
    assert talk.lock_seconds == 8  # the connection still has the limit that it had


def test_rows_that_exceed_a_packet_together_are_divided_among_statements(cursor: Cursor) -> None:
    packet, wanted = 2**17, {number: f"{number}".encode() * 1000 for number in ids(cursor)}
    small = ServerFacts(is_mysql=False, most_bytes=packet, lock_seconds=8)
    columns = ("id", "token", "payload", "reason", "expires_at")
    each = [(number, 7, payload, None, number) for number, payload in wanted.items()]
    sizes: list[int] = []

    def send_and_note(texts: Sequence[str]) -> list[ServerReply]:
        sizes.append(sum(map(len, texts)))
        return send(cursor.connection, texts)

    writing = Conversation(small).perform(QueryEach("write_responses", {"now": 1}, columns, each))
    rows: Any = drive(writing, send_and_note)
    assert [row[0] for row in rows] == list(wanted)
    assert packet / 2 < max(sizes) <= packet
    cursor.execute("SELECT expires_at, payload FROM duequeue_response")
    assert dict(cursor.fetchall()) == wanted


@pytest.mark.parametrize(
    ("left", "wait"),
    [(0.1, 1), (1.0, 1), (1.9, 1), (2.0, 2), (3.2, 3), (5.0, 4), (9.0, 7), (60.0, 8)],
)
@pytest.mark.parametrize("do", ["offer", "claim", "ack"])
def test_a_call_waits_for_locks_no_longer_than_it_lasts(
    cursor: Cursor, left: float, wait: int, do: str
) -> None:
    """Otherwise the server could carry a call out after it was given up; 1 is the least.

    An ack that is made again would then find nothing, and return that it had lost.
    """
    ack = QueryEach("remove_messages", {}, ("id", "token"), [(1, 7)])
    command = {"offer": offer_of(b"1"), "claim": claim(1, (0, 0)), "ack": ack}[do]
    assert limit_of_a_call(cursor, command, left, 0) == wait


@pytest.mark.parametrize(("before", "wait"), [(5, 4), (4, 4), (3, 3), (2, 2), (1, 4), (0, 4)])
def test_a_limit_that_is_a_little_lower_stays(cursor: Cursor, before: int, wait: int) -> None:
    """It takes a statement to change it."""
    counts = [questions(cursor)]
    for limit in (before, wait):
        assert limit_of_a_call(cursor, offer_of(b"1"), 5.0, limit) == wait
        counts.append(questions(cursor))
    first, second = (after - before for before, after in pairwise(counts))
    assert first - second == (before != wait)


def limit_of_a_call(cursor: Cursor, command: object, left: float, before: int) -> int:
    """Return how long a call waits for locks at the server, whose limit was another before."""
    cursor.execute(f"SET SESSION innodb_lock_wait_timeout = {before}")
    limits: list[int] = []

    def send_and_look(texts: Sequence[str]) -> list[ServerReply]:
        """Also ask for the limit, before the statement that may wait."""
        first, limit, *others = send(
            cursor.connection, [texts[0], "SELECT @@innodb_lock_wait_timeout", *texts[1:]]
        )
        ((seconds,),) = limit.rows or []
        limits.append(int(seconds))
        return [first, *others]

    talk = Conversation(FACTS, ends_at=left, lock_seconds=before, clock=lambda: 0.0)
    drive(talk.perform(command), send_and_look)
    assert set(limits) == {talk.lock_seconds}
    return limits[0]


def questions(cursor: Cursor) -> int:
    """Return how many statements the connection has sent."""
    cursor.execute("SHOW SESSION STATUS LIKE 'Questions'")
    row: Any = cursor.fetchone()
    return int(row[1])


def test_what_an_operation_has_locked_is_unlocked_even_if_it_fails() -> None:
    talk = Conversation(FACTS)
    locking = talk.perform(Query("lock_migrations"))
    assert drive(locking, lambda texts: [ServerReply([(1,)], 0)] * len(texts)) == [(1,)]
    assert list(talk.give_up()) == [["ROLLBACK", "DO RELEASE_ALL_LOCKS()"]]
    assert list(talk.give_up()) == [["ROLLBACK"]]


def list_kinds() -> Steps[object]:
    return (yield Query("list_kinds"))


async def list_kinds_async(settings: MariadbSettings) -> None:
    session = AsyncMariadbSession(settings)
    await session.run(list_kinds)
    await session.close()


def test_a_long_operation_waits_for_locks_as_long_at_its_end_as_at_its_beginning(
    ready_mariadb: str, monkeypatch: pytest.MonkeyPatch, sent: list[str]
) -> None:
    """It has no deadline, although the watchdog looks after it now and then."""
    later = monotonic() + PROBE_EVERY
    monkeypatch.setattr(conversation, "monotonic", lambda: later)
    settings = MariadbSettings.from_url(ready_mariadb)
    session = MariadbSession(settings)
    session.run(list_kinds)
    session.close()
    asyncio.run(list_kinds_async(settings))
    limits = [text for text in sent if "innodb_lock_wait_timeout =" in text]
    assert limits == ["SET SESSION innodb_lock_wait_timeout = 8"] * 2  # as each connects


def test_an_older_snapshot_is_explained() -> None:
    address = HostAddress((Host("h", 3306),), None, "db")
    error = pymysql.err.OperationalError(1020, "Record has changed since last read")
    assert "READ COMMITTED" in str(explained(error, address))


def test_hosts_are_tried_in_turn(ready_mariadb: str) -> None:
    login, _, place = ready_mariadb.partition("@")
    with Queue.open(f"{login}@127.0.0.1:1,{place}", "orders") as queue:
        assert queue.offer("a", 1) is OfferOutcome.CREATED


def test_an_open_poll_of_one_queue_hides_the_first_message_of_the_next(ready_mariadb: str) -> None:
    """The server also locks the index entry behind those that it reads, and the guide says so."""
    with (
        Queue.open(ready_mariadb, "first") as first,
        Queue.open(ready_mariadb, "second") as second,
        connected(ready_mariadb) as cursor,
    ):
        for queue in (first, second):
            queue.offer("a", 1)
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        cursor.execute("BEGIN")
        assert len(first.within(cursor.connection).try_poll_many(2)) == 1
        assert second.try_poll() is None
        cursor.execute("ROLLBACK")
        assert second.try_poll() is not None
