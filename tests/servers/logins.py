"""A database whose tables belong to a plain owner, and logins that have one role each."""

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import LiteralString
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from duequeue import Queue
from duequeue.stores.sql.postgres.roles import roles_script
from tests.fixtures.postgres import OwnPostgresServer, PostgresServer
from tests.fixtures.servers import run_as

QUEUES = ("orders", "letters")


@dataclass
class Logins:
    """The URLs of one database, by who connects."""

    superuser: str = field(repr=False)
    names: list[str] = field(default_factory=list)

    def add(self, name: str, *grants: LiteralString) -> str:
        """Create a login, and return its URL; in the grants, {} stands for the login."""
        login, password = f"{name}_{secrets.token_hex(4)}", secrets.token_hex(8)
        with psycopg.connect(self.superuser, autocommit=True) as connection:
            create = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
            connection.execute(create.format(sql.Identifier(login), password))
            self.names.append(login)
            for grant in grants:
                connection.execute(sql.SQL(grant).format(sql.Identifier(login)))
        parts = urlsplit(self.superuser)
        place = parts.netloc.rpartition("@")[2]
        return urlunsplit(parts._replace(netloc=f"{login}:{password}@{place}"))

    def drop_all(self, server: PostgresServer) -> None:
        with psycopg.connect(server.admin_url, autocommit=True) as connection:
            for name in self.names:
                connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


@contextmanager
def owned_database(server: PostgresServer) -> Iterator[tuple[Logins, str]]:
    """Yield an empty database's logins, and the URL of the one that owns the tables in it."""
    with ExitStack() as cleanup:
        url = server.create_database()
        logins = Logins(url)
        cleanup.callback(logins.drop_all, server)
        cleanup.callback(server.drop_database, url)
        owner = logins.add("owner", "GRANT CREATE, USAGE ON SCHEMA public TO {}")
        for name in QUEUES:
            Queue.open(owner, name).close()
            Queue.open(owner, name, codec=bytes, history=True).close()
        yield logins, owner


def run_roles_script(server: PostgresServer, url: str) -> None:
    """Run the script as an administrator does, with psql if this server brought it along."""
    if not isinstance(server, OwnPostgresServer):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(roles_script().encode())
        return
    path = server.folder / "roles.sql"
    path.write_text(roles_script())
    command: list[str | Path] = [
        server.programs / "psql",
        url,
        "--quiet",
        "--set=ON_ERROR_STOP=1",
        f"--file={path}",
    ]
    run_as(server.account, command, server.folder)
