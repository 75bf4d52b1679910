"""Finds the driver's connection behind the object that a caller gives to `within`.

This module does not import SQLAlchemy, Django or the drivers, because a caller who passes one of
their objects has imported them already.

The connection is looked up for each operation. An SQLAlchemy session may have another one after its
commit, and Django has one for each thread.
"""

import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from duequeue.errors import InvalidArgument

C = TypeVar("C")

# Returns an object as a driver's connection, or raises if it cannot be used as one.
Check: TypeAlias = Callable[[object], C]
IsClosed: TypeAlias = Callable[[C], bool]

_ALIAS = re.compile(r"[\w-]+")

_DJANGO = {
    "django.db.backends.base.base": ("BaseDatabaseWrapper",),
    "django.utils.connection": ("ConnectionProxy",),
}
_SESSIONS = {"sqlalchemy.orm": ("Session", "scoped_session")}
_CONNECTIONS = {"sqlalchemy.engine": ("Connection",)}
_ASYNC_SESSIONS = {"sqlalchemy.ext.asyncio": ("AsyncSession", "async_scoped_session")}
_ASYNC_CONNECTIONS = {"sqlalchemy.ext.asyncio": ("AsyncConnection",)}
ASYNCPG = {"asyncpg.connection": ("Connection",), "asyncpg.pool": ("PoolConnectionProxy",)}
AIOSQLITE = {"aiosqlite": ("Connection",)}
MYSQLCLIENT = {"MySQLdb.connections": ("Connection",)}

_BLOCKING = {
    **_DJANGO,
    **_SESSIONS,
    **_CONNECTIONS,
    **MYSQLCLIENT,
    "psycopg": ("Connection",),
    "pymysql.connections": ("Connection",),
}
_AWAITING = {
    "sqlalchemy.ext.asyncio": ("AsyncSession", "async_scoped_session", "AsyncConnection"),
    "psycopg": ("AsyncConnection",),
    **ASYNCPG,
    **AIOSQLITE,
    "asyncmy.connection": ("Connection",),
}


def finder(given: object, check: Check[C], is_closed: IsClosed[C]) -> Callable[[], C]:
    """Return a function that finds the driver's connection for one blocking operation.

    It finds it once at first, and raises if it is closed.
    """
    find = _finder(given, check)
    if is_closed(find()):
        raise InvalidArgument("connection", "is closed")
    return find


def _finder(given: object, check: Check[C]) -> Callable[[], C]:
    # SQLAlchemy's and Django's own types are not known here.
    outer: Any = _of_django_alias(given) if isinstance(given, str) else given
    if is_a(outer, _DJANGO):
        return lambda: check(_of_django(outer))
    if is_a(outer, _SESSIONS):
        return lambda: check(outer.connection().connection.driver_connection)
    if is_a(outer, _CONNECTIONS):
        return lambda: _of_sqlalchemy(outer, check)
    return lambda: check(outer)


def async_finder(
    given: object, check: Check[C], is_closed: IsClosed[C]
) -> Callable[[], Awaitable[C]]:
    """Return a function that finds the driver's connection for one awaiting operation.

    It looks at the connection itself at once, and raises if it is closed.
    """
    outer: Any = given
    if is_a(outer, _ASYNC_SESSIONS):
        return lambda: _of_async_session(outer, check)
    if is_a(outer, _ASYNC_CONNECTIONS):
        return lambda: _of_async_sqlalchemy(outer, check)
    if is_closed(check(outer)):
        raise InvalidArgument("connection", "is closed")

    async def find() -> C:
        return check(outer)

    return find


def is_a(value: object, kinds: Mapping[str, Sequence[str]]) -> bool:
    """Return whether a value is an instance of classes whose modules may not be imported."""
    return any(
        isinstance(value, getattr(sys.modules[module], name, ()))
        for module, names in kinds.items()
        if module in sys.modules
        for name in names
    )


def refused(given: object, accepted: str) -> TypeError:
    """Return the error for what a blocking queue cannot use."""
    hint = "; use AsyncQueue for it" if is_a(given, _AWAITING) else ""
    return TypeError(f"connection must be {accepted}, not {_name_of(given)}{hint}")


def async_refused(given: object, accepted: str) -> TypeError:
    """Return the error for what an awaiting queue cannot use."""
    outer = _of_django_alias(given) if isinstance(given, str) else given
    hint = "; use Queue for it" if is_a(outer, _BLOCKING) else ""
    return TypeError(f"connection must be {accepted}, not {_name_of(given)}{hint}")


def _name_of(given: object) -> str:
    if isinstance(given, str):
        # A URL may hold a password, and no alias looks like one.
        return f"the str {given!r}" if _ALIAS.fullmatch(given) else "a str"
    kind = type(given)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _of_django_alias(alias: str) -> object:
    """Return Django's connection of this name, or the name itself if Django does not know it."""
    conf, db = sys.modules.get("django.conf"), sys.modules.get("django.db")
    if conf is None or db is None or not conf.settings.configured:
        return alias
    proxy = sys.modules["django.utils.connection"].ConnectionProxy
    return proxy(db.connections, alias) if alias in db.connections else alias


def _of_django(connection: Any) -> object:
    if connection.get_autocommit():
        raise InvalidArgument(
            "connection", "has no open transaction: use it inside `with transaction.atomic():`"
        )
    return connection.connection


def _of_sqlalchemy(connection: Any, check: Check[C]) -> C:
    """Begin a transaction, as `execute` does, or else SQLAlchemy's `commit` would do nothing."""
    begun = None if connection.in_transaction() else connection.begin()
    try:
        return check(connection.connection.driver_connection)
    except BaseException:
        if begun is not None:
            begun.close()
        raise


async def _of_async_session(session: Any, check: Check[C]) -> C:
    return await _of_async_sqlalchemy(await session.connection(), check)


async def _of_async_sqlalchemy(connection: Any, check: Check[C]) -> C:
    begun = None if connection.in_transaction() else await connection.begin()
    try:
        driver = (await connection.get_raw_connection()).driver_connection
        if is_a(driver, ASYNCPG) and not driver.is_in_transaction():
            # On asyncpg, SQLAlchemy delays BEGIN until it runs a statement.
            await connection.exec_driver_sql("SELECT 1")
        return check(driver)
    except BaseException:
        if begun is not None:
            await begun.close()
        raise
