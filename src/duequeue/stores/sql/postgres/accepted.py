"""The drivers whose connections a queue on PostgreSQL takes."""

from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from duequeue.errors import InvalidArgument
from duequeue.stores.sql.connections.given_connection import async_refused, refused

ACCEPTED = (
    "a psycopg.Connection, an SQLAlchemy Session or Connection over psycopg, or a Django "
    "connection over psycopg or its alias"
)
ASYNC_ACCEPTED = (
    "a psycopg.AsyncConnection, an asyncpg connection, or an SQLAlchemy AsyncSession or "
    "AsyncConnection over psycopg or asyncpg"
)


def accepted(given: object) -> psycopg.Connection[Any]:
    """Return a blocking connection that has an open transaction, or raise."""
    if not isinstance(given, psycopg.Connection):
        raise refused(given, ACCEPTED)
    _refuse_autocommit(given)
    return given


def accepted_async(given: object) -> psycopg.AsyncConnection[Any]:
    """Return an awaiting connection of psycopg that has an open transaction, or raise."""
    if not isinstance(given, psycopg.AsyncConnection):
        raise async_refused(given, ASYNC_ACCEPTED)
    _refuse_autocommit(given)
    return given


def _refuse_autocommit(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """Raise unless what runs on this connection waits for the caller's commit."""
    idle = connection.pgconn.transaction_status == TransactionStatus.IDLE
    if connection.autocommit and idle:
        raise InvalidArgument(
            "connection", "has no open transaction: use it inside `with connection.transaction():`"
        )
