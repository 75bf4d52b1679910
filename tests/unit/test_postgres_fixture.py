"""The PostgreSQL fixture keeps its promises: isolation, secrecy, and data across an outage."""

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from duequeue import Queue
from tests.fixtures.postgres import PostgresServer
from tests.fixtures.servers import missing_server
from tests.fixtures.stores import PassedOnDatabase

CUT = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s"


def test_databases_are_empty_and_apart(postgres_server: PostgresServer, postgres_url: str) -> None:
    other = postgres_server.create_database()
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE here (id int)")
    with psycopg.connect(other) as connection:
        assert connection.execute("SELECT to_regclass('here')").fetchone() == (None,)
    postgres_server.drop_database(other)
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(other)


def test_password_is_demanded_and_hidden(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(make_conninfo(postgres_url, password="wrong"))
    assert len(postgres_server.password) >= 16
    assert postgres_server.password not in repr(postgres_server)


def test_missing_server_fails_in_continuous_integration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no server"):
        missing_server("no server")
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match="no server"):
        missing_server("no server")


def test_a_database_keeps_its_name_only_if_nobody_is_left(
    passed_on_database: PassedOnDatabase,
) -> None:
    url = passed_on_database.emptied(failures=0)
    with Queue[int].open(url, "orders") as queue:
        queue.offer("a", 1)
    assert passed_on_database.emptied(failures=0) == url
    with Queue[int].open(url, "orders") as left:
        assert not left.contains("a")
        names = [url, passed_on_database.emptied(failures=0)]
    names.append(passed_on_database.emptied(failures=1))
    names.append(passed_on_database.pass_on())
    names.append(passed_on_database.emptied(failures=1))
    assert len(set(names)) == 5


def test_a_test_may_cut_the_connection_that_watches_over_a_database(
    passed_on_database: PassedOnDatabase, postgres_server: PostgresServer
) -> None:
    url = passed_on_database.emptied(failures=0)
    assert passed_on_database.emptied(failures=0) == url
    with psycopg.connect(postgres_server.admin_url) as connection:
        connection.execute(CUT, [url.rpartition("/")[2]])
    assert passed_on_database.emptied(failures=0) != url
