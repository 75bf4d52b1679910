"""How to reach a PostgreSQL server."""

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import unquote

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Conninfo

from duequeue.defaults import POOL_SIZE
from duequeue.errors import InvalidArgument
from duequeue.stores.url_parts import (
    refuse_unencoded_credentials,
    refuse_unknown_options,
    split_options,
)

_SECRETS = {"password", "sslpassword", "passfile"}

# These hold unless the URL says otherwise. With these keepalives, in seconds, an idle connection to
# a server that is gone is lost after a minute; with the system's defaults, after two hours. There
# are no keepalives while data waits to be acknowledged; tcp_user_timeout, in milliseconds, is for
# that.
DEFAULTS = {
    "application_name": "duequeue",
    "connect_timeout": 5,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}

OWN_OPTIONS = {"alerts", "pool_size", "pooler", "role"}
# In a URL, libpq also takes ssl=true for sslmode=require.
LIBPQ_OPTIONS = {"ssl", *(option.keyword.decode() for option in Conninfo.get_defaults())}

# A queue's table swings between empty and full faster than its statistics follow. So these settings
# force the plans that are right at every size: they walk the index in due order instead of sorting,
# look rows up instead of hashing the table, and are kept. Every statement relies on seeing what was
# committed before it began, whatever the database's default isolation is.
BEGIN_STATEMENT = "BEGIN ISOLATION LEVEL READ COMMITTED"  # needed where nothing may be set
READ_SETTINGS = "SET statement_timeout = {milliseconds}; SET max_parallel_workers_per_gather = 0"
SESSION_SETTINGS = """
    SET default_transaction_isolation = 'read committed';
    SET enable_seqscan = off; SET enable_sort = off;
    SET enable_incremental_sort = off; SET enable_hashjoin = off;
    SET enable_mergejoin = off; SET jit = off; SET plan_cache_mode = force_generic_plan;
    SET duequeue.claim_commit = 'off'
"""


# A server does not notice that a client has given up waiting for a lock. Without a limit, each try
# of a call that needs a locked row would leave one more process on the server. An offer sets its
# own limit, which fits its try.
LOCK_TIMEOUT = "8s"
LIMIT_LOCK_WAITS = """
    SELECT current_setting('lock_timeout'), set_config('lock_timeout', coalesce(
        nullif(current_setting('lock_timeout'), '0'), '{}'
    ), false)
"""


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


@dataclass(frozen=True)
class PostgresSettings:
    """A checked connection string, whose password is never shown."""

    conninfo: str = field(repr=False)
    pool_size: int = POOL_SIZE
    # Behind a pooler that lends a server connection for each transaction, a connection must be left
    # as it was, without settings and prepared statements.
    pooled_by_transaction: bool = False
    # The login may only offer, through functions of the owner of the tables.
    for_producer: bool = False
    # The URL of a Redis through which processes wake each other, with its password.
    alerts: str | None = field(default=None, repr=False)
    # Connections for reads only, each of which the server ends after this many seconds.
    read_seconds: float | None = None

    def __post_init__(self) -> None:
        try:
            parts = conninfo_to_dict(self.conninfo)
        except psycopg.ProgrammingError:
            # The driver's message may quote the whole string, password included.
            raise InvalidArgument(
                "url",
                "is not a PostgreSQL connection string; write it as "
                "postgresql://user:password@host/database, with special characters as %.. and "
                "with libpq's options",
            ) from None
        ports = [port for port in str(parts.get("port") or "").split(",") if port]
        if not all(port.isdecimal() and 0 < int(port) < 2**16 for port in ports):
            # The port is not shown, because in a URL without a host it is the password.
            raise InvalidArgument("url", "has a port that is not a whole number from 1 to 65535")
        if self.pool_size < 1:
            raise InvalidArgument("url", text=f"pool_size must be at least 1, not {self.pool_size}")

    @classmethod
    def from_url(cls, url: str) -> "PostgresSettings":
        """Parse a URL: our own options are taken out of it, and libpq reads the rest."""
        refuse_unencoded_credentials(url)
        location, options = split_options(url)
        refuse_unknown_options(options, OWN_OPTIONS | LIBPQ_OPTIONS)
        pool_size = options.pop("pool_size", str(POOL_SIZE))
        if not pool_size.isdecimal():
            raise InvalidArgument(
                "url", text=f"pool_size in the url must be a whole number, not {pool_size!r}"
            )
        pooler = options.pop("pooler", "session")
        if pooler not in {"session", "transaction"}:
            raise InvalidArgument(
                "url", text=f"pooler in the url must be session or transaction, not {pooler!r}"
            )
        role = options.pop("role", "any")
        if role not in {"any", "producer"}:
            raise InvalidArgument(
                "url", text=f"role in the url must be 'any' or 'producer', not {role!r}"
            )
        alerts = options.pop("alerts", None)
        scheme, _, rest_of_location = location.partition(":")
        # libpq takes neither another case nor the driver that a URL of SQLAlchemy names.
        location = f"{scheme.lower().partition('+')[0]}:{rest_of_location}"
        rest = "&".join(f"{name}={value}" for name, value in options.items())
        return cls(
            f"{location}?{rest}",
            int(pool_size),
            pooler == "transaction",
            role == "producer",
            None if alerts is None else unquote(alerts),
        )

    @cached_property
    def address(self) -> Address:
        """Where the server is."""
        return Address(self.conninfo)

    @cached_property
    def connection_arguments(self) -> dict[str, Any]:
        """The arguments with which every connection of ours is opened."""
        given = conninfo_to_dict(self.conninfo)
        arguments: dict[str, Any] = {
            "autocommit": True,
            "client_encoding": "UTF8",  # also if the database's own encoding is SQL_ASCII
            **{name: value for name, value in DEFAULTS.items() if name not in given},
        }
        if self.pooled_by_transaction:
            arguments["prepare_threshold"] = None
        return arguments

    @property
    def first_statements(self) -> str:
        """The statements for every new connection; the last returns lock_timeout as it was."""
        if self.pooled_by_transaction:
            return "SHOW lock_timeout"
        settings = SESSION_SETTINGS
        if self.read_seconds is not None:
            limit = READ_SETTINGS.format(milliseconds=int(self.read_seconds * 1000))
            settings = f"{settings}; {limit}"
        return f"{settings}; {LIMIT_LOCK_WAITS.format(LOCK_TIMEOUT)}"
