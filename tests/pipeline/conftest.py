"""A database with a history, and a folder for what becomes of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from duequeue import ManualClock, Queue
from tests.fixtures.stores import fresh_url


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """An empty database of each kind that Spark can reach."""
    return fresh_url(request.param, request)


@pytest.fixture
def queue(url: str, clock: ManualClock) -> Iterator[Queue[Any]]:
    """A queue that keeps its history."""
    with Queue.open(url, "orders", clock=clock, history=True) as queue:
        yield queue


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the archive will be."""
    return tmp_path / "archive"
