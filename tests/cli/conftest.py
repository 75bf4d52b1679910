"""A database for commands, workers and tests to meet in."""

import io
import os
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
import pytest

from duequeue import Queue, RetryPolicy
from duequeue.cli import main
from tests.fixtures.stores import fresh_url


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """Two databases that processes can share; a few tests add a server of queues."""
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


class Ran(NamedTuple):
    """What a command has printed, and its exit status."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.out)

    @property
    def jsonl(self) -> list[Any]:
        return [msgspec.json.decode(line) for line in self.out.splitlines()]

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class DueQueue(Protocol):
    """Runs a command in this process."""

    def __call__(self, *words: str, stdin: bytes = b"") -> Ran: ...


@pytest.fixture
def bare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> DueQueue:
    """Run commands in an empty folder, without any defaults."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])  # a worker adds the folder to it
    for name in ("DUEQUEUE_URL", "DUEQUEUE_QUEUE", "DUEQUEUE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))

    def run(*words: str, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
        capsysbinary.readouterr()
        try:
            status = main(words)
        except SystemExit as ended:  # as argparse ends
            status = int(ended.code or 0)
        sys.stdout.flush()
        out, err = capsysbinary.readouterr()
        return Ran(status, out.decode(errors="surrogateescape"), err.decode())

    return run


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait until the server comes back."""
    policy = RetryPolicy(budget=timedelta(milliseconds=1))
    for module in ("opening", "verbs.doctor"):
        monkeypatch.setattr(f"duequeue.cli.{module}.RETRY", policy)


@pytest.fixture
def duequeue(bare: DueQueue, store_url: str, monkeypatch: pytest.MonkeyPatch) -> DueQueue:
    """Run commands on each store in turn."""
    monkeypatch.setenv("DUEQUEUE_URL", store_url)
    return bare


@pytest.fixture
def queue(duequeue: DueQueue, store_url: str) -> Iterator[Queue[Any]]:
    """The queue `orders`, open while commands run, with a history."""
    with Queue[Any].open(store_url, "orders", history=True) as queue:
        yield queue
