"""The PostgreSQL fixture keeps its promises: isolation, secrecy, and data across an outage."""

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.fixtures.postgres import PostgresServer
from tests.fixtures.servers import missing_server


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
