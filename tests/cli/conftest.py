"""A database for workers and tests to meet in."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from duequeue import Queue
from tests.fixtures.stores import fresh_url


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """Each database that processes can share."""
    return fresh_url(request.param, request)


@pytest.fixture
def orders(url: str) -> Iterator[Queue[Any]]:
    """The queue that workers work on."""
    with Queue[Any].open(url, "orders") as queue:
        yield queue


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    """What `wait` waits for somebody to write to."""
    path = tmp_path / "go"
    os.mkfifo(path)
    return path
