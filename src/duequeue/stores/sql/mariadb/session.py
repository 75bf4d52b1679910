# Made from session_async.py: change that file, and run `make made`.
"""Blocking sessions on the shared pool of connections."""

from contextlib import suppress
from functools import cached_property, partial
from math import inf
from typing import TypeVar

from duequeue.drive.steps import drive
from duequeue.port.store import Operation
from duequeue.stores.sql.connections.home import Home
from duequeue.stores.sql.connections.pool import shared_pool
from duequeue.stores.sql.connections.watchdog import WatchedPlace
from duequeue.stores.sql.mariadb.connections import MariadbConnection, connect
from duequeue.stores.sql.mariadb.conversation import Conversation
from duequeue.stores.sql.mariadb.errors import (
    DEADLOCK,
    DRIVER_ERRORS,
    failure,
    leaves_it_usable,
    number_of,
)
from duequeue.stores.sql.mariadb.identity import identify
from duequeue.stores.sql.mariadb.server import MariadbServer
from duequeue.stores.sql.mariadb.settings import MariadbSettings

T = TypeVar("T")


class MariadbSession:
    """Runs each operation on a connection of the pool that this process shares."""

    conversation = Conversation

    def __init__(self, settings: MariadbSettings) -> None:
        self._settings = settings
        self._pool = shared_pool(MariadbServer(settings))
        self._pool.join()
        self._closed = False

    @cached_property
    def home(self) -> Home:
        """The database that this session leads to."""
        return Home(self, "database", self._settings.address, identify)

    def run(self, operation: Operation[T], seconds: float = inf, *, consumes: bool = False) -> T:
        """Run one operation; after a deadlock, run it again, and first lock its rows in order."""
        place = self._pool.take(seconds, consumes=consumes)
        at_rest = False
        try:
            try:
                result = self._try(operation, place)
            except DRIVER_ERRORS as error:
                if number_of(error) != DEADLOCK:
                    raise
                result = self._try(operation, place, locks_first=True)
            at_rest = True
        except BaseException as error:
            at_rest = leaves_it_usable(error)
            if (translated := failure(error, place, self._settings.address)) is not None:
                raise translated from error
            raise
        finally:
            connection = place.connection
            self._pool.give(place, reusable=at_rest and connection is not None and connection.open)
        return result

    def close(self) -> None:
        """Leave the pool, which closes with its last user."""
        if not self._closed:
            self._closed = True
            self._pool.leave()

    def _try(self, operation: Operation[T], place: WatchedPlace, *, locks_first: bool = False) -> T:
        connection: MariadbConnection = place.connection or connect(place, self._settings)
        talk = self.conversation(
            connection.facts,
            ends_at=place.ends_at,
            locks_first=locks_first,
            lock_seconds=connection.lock_seconds,
        )
        try:
            result = drive(operation(), partial(_perform, connection, talk))
            if talk.in_transaction or talk.left_behind:
                drive(talk.finish(), connection.send)
        except BaseException as error:
            if leaves_it_usable(error) and connection.open:
                with suppress(*DRIVER_ERRORS):  # the first error is the one to raise
                    drive(talk.give_up(), connection.send)
            raise
        finally:
            connection.lock_seconds = talk.lock_seconds
        return result


def _perform(connection: MariadbConnection, talk: Conversation, command: object) -> object:
    return drive(talk.perform(command), connection.send)
