"""The file of an SQLite store: its pragmas, its plans, and what may be wrong with it."""

import os
import re
import resource
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from duequeue import Queue, RetryPolicy, StoreError, StoreUnavailable
from duequeue.contract.faces import Face
from duequeue.contract.phrases import MILLISECOND
from duequeue.port.store import Steps
from duequeue.process.permits import Permit
from duequeue.stores.sql.catalogue import load_queries
from duequeue.stores.sql.commands import Query
from duequeue.stores.sql.sqlite import file_connection
from duequeue.stores.sql.sqlite.session import Durability, SqliteSession
from tests.fixtures.forks import fork
from tests.sql.test_catalogues import parameters

QUERIES = load_queries("sqlite")

AT_ONCE = 5.0  # seconds, of a budget of thirty


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "queue.db"


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[sqlite3.Connection]:
    """Every connection that is opened from now on."""
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def connect_and_remember(*arguments: Any, **options: Any) -> sqlite3.Connection:
        opened.append(connect(*arguments, **options))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", connect_and_remember)
    return opened


def test_a_file_stays_the_same_when_the_process_goes_elsewhere(
    tmp_path: Path, face: Face, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    monkeypatch.chdir(first)
    with face.open("sqlite:///queue.db", "orders") as queue:
        monkeypatch.chdir(second)
        assert queue.poll(MILLISECOND) is None  # which has the file watched
        assert str(first / "queue.db") in repr(queue)
    assert list(second.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "synchronous"), [("", 2), ("?synchronous=full", 2), ("?synchronous=normal", 1)]
)
def test_pragmas_are_applied(
    path: Path, face: Face, connections: list[sqlite3.Connection], option: str, synchronous: int
) -> None:
    with face.open(f"sqlite:///{path}{option}", "orders"):
        (connection,) = connections
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (synchronous,)


@pytest.mark.parametrize(("option", "usual"), [("full", 2), ("normal", 1)])
def test_all_but_a_claim_waits_for_the_disk(
    path: Path, face: Face, connections: list[sqlite3.Connection], option: str, usual: int
) -> None:
    def level() -> int:
        (found,) = connections[0].execute("PRAGMA synchronous").fetchone()
        return int(found)

    with face.open(f"sqlite:///{path}?synchronous={option}", "orders") as queue:
        queue.offer("a", 1)
        assert level() == usual
        delivery = queue.try_poll()
        assert delivery is not None
        assert level() == 1
        assert delivery.ack()
        assert level() == usual


def test_what_began_in_a_transaction_waits_for_the_disk(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        durability = Durability(connection, "full")
        connection.execute("BEGIN")
        durability.prepare("claim_messages")
        connection.execute("COMMIT")
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


def has_migrations() -> Steps[object]:
    return (yield Query("has_migrations", {}))


def test_a_refused_pragma_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    session = SqliteSession(":memory:", "full")  # where there can be no write-ahead log
    with pytest.raises(StoreError, match=r"journal_mode = wal.*'memory'"):
        session.run(has_migrations)
    session.close()


@pytest.mark.parametrize("url", ["sqlite:///{}?synchronous=off", "sqlite:///{}?cache=shared"])
def test_unknown_options_are_refused(path: Path, face: Face, url: str) -> None:
    with pytest.raises(ValueError, match="synchronous"):
        face.open(url.format(path), "orders")
    assert not path.exists()


def refused(face: Face, path: Path) -> str:
    """Fail to open a file, at once; return the reason."""
    began = monotonic()
    with pytest.raises(StoreError) as raised:
        face.open(f"sqlite:///{path}", "orders")
    assert monotonic() - began < AT_ONCE
    assert not isinstance(raised.value, StoreUnavailable)
    assert isinstance(raised.value.__cause__, sqlite3.Error)
    return str(raised.value)


@pytest.mark.parametrize("content", [b"once upon a time", b"SQLite format 3\0" + b"x" * 4096])
def test_a_file_that_is_not_a_database(path: Path, face: Face, content: bytes) -> None:
    path.write_bytes(content)
    assert str(path) in refused(face, path)
    assert path.read_bytes() == content


def test_a_folder_that_does_not_exist(tmp_path: Path, face: Face) -> None:
    path = tmp_path / "nowhere" / "queue.db"
    assert f"{path} cannot be opened" in refused(face, path)
    assert not path.parent.exists()


def test_a_folder_in_place_of_the_file(tmp_path: Path, face: Face) -> None:
    assert f"{tmp_path} cannot be opened" in refused(face, tmp_path)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(("option", "mode"), [("", 0o600), ("?mode=660", 0o660)])
def test_who_may_read_a_new_file(path: Path, face: Face, option: str, mode: int) -> None:
    with face.open(f"sqlite:///{path}{option}", "orders") as queue:
        queue.offer("a", 1)
        assert mode_of(path) == mode
        assert mode_of(path.with_name("queue.db-wal")) == mode


def test_the_mode_of_an_existing_file_is_left_alone(path: Path, face: Face) -> None:
    path.touch(0o640)
    with face.open(f"sqlite:///{path}", "orders"):
        assert mode_of(path) == 0o640


@pytest.mark.parametrize("mode", ["rw", "0", "1600", "680", "060", ""])
def test_a_mode_is_octal_and_lets_the_owner_write(path: Path, face: Face, mode: str) -> None:
    with pytest.raises(ValueError, match="mode must be the permissions"):
        face.open(f"sqlite:///{path}?mode={mode}", "orders")
    assert not path.exists()


def delete(path: Path) -> None:
    path.unlink()


def move(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def replace(path: Path) -> None:
    copy = path.with_name("copy.db")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)


@pytest.mark.parametrize("lose", [delete, move, replace])
def test_a_lost_file_is_noticed(path: Path, face: Face, lose: Callable[[Path], None]) -> None:
    with face.open(f"sqlite:///{path}", "orders") as queue:
        queue.offer("a", 1)
        lose(path)
        for call in (lambda: queue.offer("b", 1), lambda: queue.contains("a"), queue.try_poll):
            with pytest.raises(
                StoreError, match=f"{path}: the file was deleted, moved or replaced"
            ):
                call()
    assert lose is replace or not path.exists()


def test_a_file_that_is_put_back_is_used_again(path: Path, face: Face) -> None:
    with face.open(f"sqlite:///{path}", "orders") as queue:
        queue.offer("a", 1)
        move(path)
        with pytest.raises(StoreError, match="put it back"):
            queue.offer("b", 1)
        path.with_name("elsewhere.db").rename(path)
        queue.offer("b", 1)
        assert queue.stats().total == 2


def test_a_file_that_was_deleted_is_not_created_again_after_a_fork(path: Path) -> None:
    session = SqliteSession(str(path), "full")
    session.run(has_migrations)
    fork()
    delete(path)
    with pytest.raises(StoreError, match="deleted"):
        session.run(has_migrations)
    assert not path.exists()
    session.close()


def test_an_interrupted_call_does_not_keep_its_queue_from_closing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_connection, "CLOSE_WITHIN", 0.01)

    def strike(_: Permit) -> None:
        raise KeyboardInterrupt  # as if a signal had come right before

    def interrupted() -> None:
        with (
            Queue.open(f"sqlite:///{path}", "orders") as queue,
            monkeypatch.context() as signalled,  # which ends before the queue is closed
        ):
            signalled.setattr(Permit, "give_back", strike)
            queue.offer("a", 1)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with Queue.open(f"sqlite:///{path}", "orders") as queue:
        assert queue.contains("a")


def test_a_process_that_may_open_no_more_files(path: Path) -> None:
    Queue.open(f"sqlite:///{path}", "orders").close()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        with suppress(OSError):
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        with pytest.raises(StoreUnavailable, match="ulimit -n"):
            Queue.open(f"sqlite:///{path}", "orders", retry=RetryPolicy.never())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for file in held:
            os.close(file)


@pytest.fixture(params=["no statistics", "statistics of an empty table", "fresh statistics"])
def filled(request: pytest.FixtureRequest, path: Path) -> Iterator[sqlite3.Connection]:
    """A table of messages, of which SQLite knows more or less."""
    Queue.open(f"sqlite:///{path}", "orders").close()
    with closing(sqlite3.connect(path)) as connection:
        if request.param == "statistics of an empty table":
            connection.execute("ANALYZE")
        connection.executemany(
            "INSERT INTO duequeue_message (due_at, asked_at, created_at, kind_id, key, payload)"
            "VALUES (:due_at, :due_at, 0, 1, :due_at, x'31')",
            [{"due_at": due_at} for due_at in range(5000)],
        )
        if request.param == "fresh statistics":
            connection.execute("ANALYZE")
        yield connection


@pytest.mark.parametrize(
    ("name", "path_taken"),
    [
        ("claim_messages", "duequeue_message_due (kind_id=? AND due_at"),
        ("next_due", "duequeue_message_due (kind_id=? AND due_at>?)"),
        ("find_message", "duequeue_message_key (kind_id=? AND key=?)"),
        ("drop_message", "duequeue_message_key (kind_id=? AND key=?)"),
        ("remove_messages", "INTEGER PRIMARY KEY (rowid=?)"),
        ("remove_expired", "INTEGER PRIMARY KEY (rowid=?)"),
        ("extend_leases", "INTEGER PRIMARY KEY (rowid=?)"),
        ("release_messages", "INTEGER PRIMARY KEY (rowid=?)"),
        ("park_messages", "INTEGER PRIMARY KEY (rowid=?)"),
        ("list_messages", "duequeue_message_due (kind_id=? AND due_at"),
        ("count_keys", "COVERING INDEX duequeue_message_key (kind_id=? AND key>? AND key<?)"),
        ("reschedule_message", "duequeue_message_key (kind_id=? AND key=?)"),
        ("list_buried", "duequeue_buried_time (kind_id=? AND buried_at>? AND buried_at<?)"),
        ("last_burial", "duequeue_buried_time (kind_id=?)"),
        ("lock_burials", "duequeue_buried_time (kind_id=? AND buried_at>? AND buried_at<?)"),
        ("lock_burials", "duequeue_buried_key (kind_id=? AND key=? AND id>?)"),
        ("revive_burials", "INTEGER PRIMARY KEY (rowid=?)"),
        ("forget_burials", "INTEGER PRIMARY KEY (rowid=?)"),
        ("delete_buried", "INTEGER PRIMARY KEY (rowid=?)"),
        ("lock_buried", "duequeue_buried_key (kind_id=? AND key=?)"),
        ("remove_messages_with_history", "INTEGER PRIMARY KEY (rowid=?)"),
        ("remove_with_outcome", "INTEGER PRIMARY KEY (rowid=?)"),
        ("drop_message_with_history", "duequeue_message_key (kind_id=? AND key=?)"),
        ("remove_tick_messages_with_history", "duequeue_message_key (kind_id=? AND key=?)"),
        ("list_history", "duequeue_history_time (kind_id=?)"),
        (
            "bound_history_day",
            "duequeue_history_time (kind_id=? AND settled_at>? AND settled_at<?)",
        ),
        (
            "remove_history_day",
            "duequeue_history_time (kind_id=? AND settled_at>? AND settled_at<?)",
        ),
        ("read_history_day", "INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
    ],
    ids=lambda value: value.partition(" ")[0],
)
def test_queries_walk_an_index(filled: sqlite3.Connection, name: str, path_taken: str) -> None:
    unbound = dict.fromkeys(parameters(QUERIES[name]))
    plan = filled.execute(f"EXPLAIN QUERY PLAN {QUERIES[name]}", unbound).fetchall()
    steps = [detail for *_, detail in plan]
    assert any(path_taken in step for step in steps), steps
    # What an update of the view found by index is kept aside, and read from there.
    walks = "SCAN duequeue_(?!settling$)|TEMP B-TREE"
    assert not [step for step in steps if re.search(walks, step)], steps


def test_few_keys_with_a_prefix_are_looked_up_and_only_their_places_are_sorted(
    filled: sqlite3.Connection,
) -> None:
    query = QUERIES["list_messages_by_key"]
    plan = filled.execute(f"EXPLAIN QUERY PLAN {query}", dict.fromkeys(parameters(query)))
    steps = [detail for *_, detail in plan]
    by_key = (
        "SEARCH duequeue_message USING INDEX duequeue_message_key (kind_id=? AND key>? AND key<?)"
    )
    assert by_key in steps, steps
    assert not [step for step in steps if "SCAN duequeue_" in step], steps
