"""Large results of PostgreSQL in chunks."""

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from duequeue.bulk.postgres_snapshots import chunks
from duequeue.stores.sql.postgres.errors import is_transient
from tests.race.deaf_proxy import deaf_proxy

NUMBERS = b"SELECT generate_series(1, %(last)s), 'x'"
FAILING = b"SELECT 1 / (5000 - number) FROM generate_series(1, %(last)s) AS number"


@pytest.fixture
def connection(ready_database: str) -> Iterator[psycopg.Connection]:
    with closing(psycopg.connect(ready_database, autocommit=True)) as connection:
        yield connection


@pytest.mark.parametrize("chunked", [True, False], ids=["chunked", "one by one"])
def test_every_row_once(
    connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch, *, chunked: bool
) -> None:
    """Older versions of libpq send rows one by one."""
    monkeypatch.setattr(psycopg.capabilities, "has_stream_chunked", lambda: chunked)
    read = list(chunks(connection, NUMBERS, {"last": 10}, 4))
    assert [len(chunk) for chunk in read] == [4, 4, 2]
    rows = [row for chunk in read for row in chunk]
    assert rows == [(number, "x") for number in range(1, 11)]
    assert list(chunks(connection, NUMBERS, {"last": 0}, 4)) == []


def test_an_error_on_the_way(connection: psycopg.Connection) -> None:
    read = chunks(connection, FAILING, {"last": 9000}, 10)
    assert len(next(read)) == 10
    with pytest.raises(psycopg.errors.DivisionByZero):
        list(read)


def test_a_server_that_is_gone_without_a_word(ready_database: str) -> None:
    """As after a crash: what was being read may be read again."""
    with deaf_proxy(ready_database) as proxy, closing(psycopg.connect(proxy.url)) as connection:
        read = chunks(connection, NUMBERS, {"last": 1_000_000}, 10)
        next(read)
        proxy.close()
        with pytest.raises(psycopg.OperationalError) as raised:
            list(read)
    assert is_transient(raised.value)
