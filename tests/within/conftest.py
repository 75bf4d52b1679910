"""Connections of the application's own, which close by themselves when their test ends."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from duequeue.contract.faces import Face
from tests.fixtures.connections import close, connect_in_transaction
from tests.fixtures.postgres import PostgresServer

# Opens a connection of the application's own.
Connect = Callable[[], Any]


@pytest.fixture
def connect(store: str, store_url: str, face: Face) -> Iterator[Connect]:
    """A factory of the application's own connections to the store, each in an open transaction."""
    with ExitStack() as opened:

        def connect_one() -> Any:
            connection = connect_in_transaction(store, face, store_url)
            opened.callback(close, connection)
            return connection

        yield connect_one


@pytest.fixture
def other_url(request: pytest.FixtureRequest, store: str, tmp_path: Path) -> Iterator[str]:
    """A second database, which is still empty."""
    if store == "sqlite":
        yield f"sqlite:///{tmp_path / 'other.db'}"
        return
    server: PostgresServer = request.getfixturevalue(f"{store}_server")
    url = server.create_database()
    yield url
    server.drop_database(url)
