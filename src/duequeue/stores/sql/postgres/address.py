"""Where a PostgreSQL server is, without the secrets of how to get in."""

import os

from psycopg.conninfo import conninfo_to_dict, make_conninfo

_SECRETS = {"password", "sslpassword", "passfile"}


class Address:
    """Where a server is, without the secrets of how to get in."""

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
        """Name what the tables of this connection string are, in this process: schemas too."""
        return make_conninfo("", **{k: v for k, v in self._parts.items() if k not in _SECRETS})

    def clean(self, text: str) -> str:
        """Blot the password out of a driver's words."""
        password = self._parts.get("password")
        return text.replace(str(password), "***") if password else text
