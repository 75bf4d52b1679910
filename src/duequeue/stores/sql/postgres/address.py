"""The address of a PostgreSQL server, without the secrets of its connection string."""

import os

from psycopg.conninfo import conninfo_to_dict, make_conninfo

_SECRETS = {"password", "sslpassword", "passfile"}


class Address:
    """The host, port and database of a server, which are safe to show."""

    def __init__(self, conninfo: str) -> None:
        self._parts = conninfo_to_dict(conninfo)

    def __str__(self) -> str:
        parts, given = self._parts, os.environ.get
        host = parts.get("host") or parts.get("hostaddr") or given("PGHOST") or "localhost"
        port = parts.get("port") or given("PGPORT") or 5432
        database = parts.get("dbname") or given("PGDATABASE") or parts.get("user") or ""
        return f"{host}:{port}/{database}"

    @property
    def place(self) -> str:
        """A name that is equal in this process for connection strings that mean the same tables."""
        return make_conninfo("", **{k: v for k, v in self._parts.items() if k not in _SECRETS})

    def clean(self, text: str) -> str:
        """Replace the password in a driver's message by asterisks."""
        password = self._parts.get("password")
        return text.replace(str(password), "***") if password else text
