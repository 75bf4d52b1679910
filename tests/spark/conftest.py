"""Databases that Spark can reach, and ordinary queues on them."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Protocol

import pytest

from duequeue import Queue
from tests.fixtures.stores import fresh_url


class OpenPlain(Protocol):
    """Opens ordinary queues on the database under test."""

    def __call__(self, name: str = "orders", **options: Any) -> Queue[Any]: ...


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """An empty database of each kind that Spark can reach."""
    return fresh_url(request.param, request)


@pytest.fixture
def open_plain(url: str) -> Iterator[OpenPlain]:
    """A factory of ordinary queues on that database."""
    with ExitStack() as opened:

        def open_one(name: str = "orders", **options: Any) -> Queue[Any]:
            return opened.enter_context(Queue.open(url, name, **options))

        yield open_one


@pytest.fixture
def queue(open_plain: OpenPlain) -> Queue[Any]:
    """An ordinary queue with every default."""
    return open_plain()
