"""Which errors of a database are tried again: those that may pass."""

import errno
import sqlite3
import traceback
from collections.abc import Iterator
from time import monotonic
from typing import LiteralString
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import errors as codes
from psycopg import sql

from duequeue import ManualClock, StoreError, StoreUnavailable
from duequeue.contract.faces import Face, QueueFace
from duequeue.stores.sql.postgres.errors import translate
from duequeue.stores.sql.postgres.settings import Address
from duequeue.stores.sql.sqlite.errors import translate as translate_sqlite
from tests.fixtures.postgres import PostgresServer

ADDRESS = Address("postgresql://somebody:hunter2@db.example:6543/orders")

TRANSIENT = {
    "08000": "connection_exception",
    "08001": "sqlclient_unable_to_establish_sqlconnection",
    "08003": "connection_does_not_exist",
    "08004": "sqlserver_rejected_establishment_of_sqlconnection",
    "08006": "connection_failure",
    "08007": "transaction_resolution_unknown",
    "25006": "read_only_sql_transaction",
    "25P03": "idle_in_transaction_session_timeout",
    "40001": "serialization_failure",
    "40P01": "deadlock_detected",
    "53300": "too_many_connections",
    "55P03": "lock_not_available",
    "57014": "query_canceled",
    "57P01": "admin_shutdown",
    "57P02": "crash_shutdown",
    "57P03": "cannot_connect_now",
    "57P05": "idle_session_timeout",
}
PERMANENT = {
    "0A000": "feature_not_supported",
    "22001": "string_data_right_truncation",
    "22021": "character_not_in_repertoire",
    "23505": "unique_violation",
    "23514": "check_violation",
    "28000": "invalid_authorization_specification",
    "28P01": "invalid_password",
    "3D000": "invalid_catalog_name",
    "42501": "insufficient_privilege",
    "42601": "syntax_error",
    "42703": "undefined_column",
    "42P01": "undefined_table",
    "53100": "disk_full",
    "XX001": "data_corrupted",
}


@pytest.mark.parametrize("code", TRANSIENT, ids=TRANSIENT.values())
def test_postgres_errors_that_may_pass(code: str) -> None:
    assert type(translate(codes.lookup(code)("words"), ADDRESS)) is StoreUnavailable


@pytest.mark.parametrize("code", PERMANENT, ids=PERMANENT.values())
def test_postgres_errors_that_stay(code: str) -> None:
    assert type(translate(codes.lookup(code)("words"), ADDRESS)) is StoreError


@pytest.mark.parametrize(
    "error",
    [
        psycopg.OperationalError("consuming input failed: server closed the connection"),
        psycopg.OperationalError("connection failed: Connection refused"),
        psycopg.OperationalError("FATAL:  sorry, too many clients already"),
        psycopg.OperationalError("FATAL:  the database system is starting up"),
        psycopg.InterfaceError("the connection is closed"),
        OSError(errno.EMFILE, "Too many open files"),
    ],
    ids=str,
)
def test_postgres_connections_that_may_come_back(error: psycopg.Error | OSError) -> None:
    assert type(translate(error, ADDRESS)) is StoreUnavailable


def test_an_error_names_the_server_and_blots_out_the_password() -> None:
    said = str(translate(psycopg.OperationalError("who is hunter2?"), ADDRESS))
    assert said == "PostgreSQL at db.example:6543/orders: who is ***?"


SQLITE_TRANSIENT = [
    "SQLITE_BUSY",
    "SQLITE_BUSY_RECOVERY",
    "SQLITE_BUSY_SNAPSHOT",
    "SQLITE_BUSY_TIMEOUT",
    "SQLITE_LOCKED",
    "SQLITE_LOCKED_SHAREDCACHE",
    "SQLITE_PROTOCOL",
]
SQLITE_PERMANENT = [
    "SQLITE_CANTOPEN",
    "SQLITE_CONSTRAINT_UNIQUE",
    "SQLITE_CORRUPT",
    "SQLITE_ERROR",
    "SQLITE_FULL",
    "SQLITE_IOERR",
    "SQLITE_NOTADB",
    "SQLITE_READONLY",
    "SQLITE_TOOBIG",
]


def sqlite_error(name: str) -> sqlite3.Error:
    error = sqlite3.OperationalError("words")
    error.sqlite_errorname, error.sqlite_errorcode = name, getattr(sqlite3, name)
    return error


@pytest.mark.parametrize("name", SQLITE_TRANSIENT)
def test_sqlite_errors_that_may_pass(name: str) -> None:
    assert type(translate_sqlite(sqlite_error(name), "a.db")) is StoreUnavailable


@pytest.mark.parametrize("name", SQLITE_PERMANENT)
def test_sqlite_errors_that_stay(name: str) -> None:
    translated = translate_sqlite(sqlite_error(name), "a.db")
    assert type(translated) is StoreError
    assert "a.db" in str(translated)


def test_an_sqlite_error_without_a_code_stays() -> None:
    assert type(translate_sqlite(sqlite3.ProgrammingError("misuse"), "a.db")) is StoreError


@pytest.fixture
def roles(postgres_server: PostgresServer, postgres_url: str) -> Iterator[None]:
    """One role that may not log in, and one that may not enter the database."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        database = sql.Identifier(connection.info.dbname)
        connection.execute("CREATE ROLE locked_out NOLOGIN PASSWORD 'hunter2'")
        connection.execute("CREATE ROLE outsider LOGIN PASSWORD 'hunter2'")
        connection.execute(sql.SQL("REVOKE CONNECT ON DATABASE {} FROM PUBLIC").format(database))
        yield
        connection.execute("DROP ROLE locked_out, outsider")


@pytest.mark.parametrize(
    ("login", "database", "reason"),
    [
        ("postgres:wrong-one", None, "password authentication failed"),
        ("nobody-we-know:hunter2", None, "password authentication failed"),
        ("locked_out:hunter2", None, "not permitted to log in"),
        ("outsider:hunter2", None, "permission denied for database"),
        (None, "/no-such-database", "does not exist"),
    ],
)
def test_a_login_that_is_refused_is_not_tried_again(
    postgres_url: str, face: Face, roles: None, login: str | None, database: str | None, reason: str
) -> None:
    parts = urlsplit(postgres_url)
    given, _, host = parts.netloc.rpartition("@")
    url = parts._replace(netloc=f"{login or given}@{host}", path=database or parts.path)
    began = monotonic()
    with pytest.raises(StoreError, match=reason) as raised:
        face.open(urlunsplit(url), "orders")
    assert monotonic() - began < 5  # of a budget of thirty
    assert type(raised.value) is StoreError
    assert host in str(raised.value)
    password = (login or given).partition(":")[2]
    assert password not in "".join(traceback.format_exception(raised.value))


REFUSALS = {
    "a constraint": "ALTER TABLE duequeue_message ADD CONSTRAINT enough CHECK (key <> 'refused')",
    "a trigger": """
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN RAISE EXCEPTION 'enough' USING ERRCODE = 'check_violation'; END
        $$;
        CREATE TRIGGER refuse BEFORE INSERT ON duequeue_message
            FOR EACH ROW WHEN (NEW.key = 'refused') EXECUTE FUNCTION refuse()
    """,
    "a table without a partition": """
        CREATE TABLE enough (key text) PARTITION BY LIST (key);
        CREATE FUNCTION copy_key() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN INSERT INTO enough VALUES (NEW.key); RETURN NEW; END
        $$;
        CREATE TRIGGER copy_key BEFORE INSERT ON duequeue_message
            FOR EACH ROW WHEN (NEW.key = 'refused') EXECUTE FUNCTION copy_key()
    """,
    "a constraint on the history": """
        ALTER TABLE duequeue_history ADD CONSTRAINT enough CHECK (key <> 'refused')
    """,
}


def offer_and_drop(queue: QueueFace, key: str) -> None:
    queue.offer(key, 1)
    queue.drop(key)


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
def test_a_check_of_the_users_own_is_not_tried_again(
    postgres_url: str, face: Face, clock: ManualClock, refusal: LiteralString
) -> None:
    with face.open(postgres_url, "orders", clock=clock, history=True) as queue:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(refusal)
        began = monotonic()
        with pytest.raises(StoreError, match="enough") as raised:
            offer_and_drop(queue, "refused")
        assert monotonic() - began < 5  # of a budget of thirty
        assert type(raised.value) is StoreError
        offer_and_drop(queue, "welcome")
