"""What a client and the log learn when something fails that nobody has foreseen."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial

import httpx
import pytest

from duequeue import Queue, RetryPolicy, SystemClock
from duequeue.contract.parts import open_parts
from duequeue.errors import InvalidArgument, PayloadTooLarge, StoreError
from duequeue.message import MAX_PAYLOAD_BYTES
from duequeue.port.store import Record
from duequeue.server import app_for
from duequeue.server.failures import traceback_of
from tests.server.served import Served, served

SECRET = "a secret of a bug"
FAILED = 500
NOW = 1_800_000_000_000


class BrokenClock(SystemClock):
    """A clock that fails, as code with a mistake does."""

    error: Exception | None = None

    def now(self) -> datetime:
        if self.error is not None:
            raise self.error
        return super().now()


@contextmanager
def failing_with(error: Exception, name: str) -> Iterator[httpx.Client]:
    clock = BrokenClock()
    with served(app_for(f"memory:{name}", clock=clock)) as server, server.client() as http:
        http.put("/v1/queues/orders/messages/a", content=b"1")
        clock.error = error
        try:
            yield http
        finally:
            clock.error = None


@pytest.mark.parametrize("kind", [ValueError, TypeError, KeyError, RecursionError, OSError])
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/queues/orders/messages", b'{"key": "b"}'),
        ("POST", "/v1/queues/orders/messages", b'[{"key": "b"}, {"key": "c"}]'),
        ("POST", "/v1/queues/orders:poll", b"{}"),
        ("GET", "/v1/queues/orders/messages", b""),
    ],
)
def test_a_mistake_of_ours_is_not_the_clients(
    caplog: pytest.LogCaptureFixture, kind: type[Exception], method: str, path: str, body: bytes
) -> None:
    with failing_with(kind(SECRET), kind.__name__) as http:
        answer = http.request(method, path, content=body)
    assert answer.status_code == FAILED, answer.text
    assert answer.json()["type"] == "urn:duequeue:internal"
    assert "argument" not in answer.json()
    assert kind.__name__ not in answer.text
    record = next(each for each in caplog.records if answer.json()["request_id"] in each.message)
    assert record.levelno == logging.ERROR
    assert "Traceback (most recent call last):" in record.message
    assert "test_failures.py" in record.message
    assert kind.__name__ in record.message
    assert SECRET not in answer.text + caplog.text


def test_an_error_that_is_its_own_cause_is_logged_once() -> None:
    error, other = ValueError(SECRET), KeyError(SECRET)
    error.__cause__, other.__cause__ = other, error
    assert traceback_of(error).splitlines()[1::2] == ["KeyError", "ValueError"]


def test_a_stream_that_fails_says_how_far_it_came() -> None:
    with failing_with(ValueError(SECRET), "stream") as http:
        headers = {"Content-Type": "application/x-ndjson"}
        answer = http.post("/v1/queues/orders/messages", content=b'{"key": "b"}\n', headers=headers)
    assert (answer.status_code, answer.json()["offered"]) == (FAILED, 0)


def test_a_failure_of_the_server_is_not_an_argument_of_its_client() -> None:
    clock = BrokenClock()
    with (
        served(app_for("memory:broken", clock=clock)) as server,
        Queue.open(server.url, "orders", retry=RetryPolicy.never()) as queue,
    ):
        queue.offer("a", 1)
        clock.error = ValueError(SECRET)
        with pytest.raises(StoreError, match="answered 500") as raised:
            queue.offer("b", 2)
        clock.error = None
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("record", "kind", "argument"),
    [
        (Record("", b"1", NOW), InvalidArgument, "key"),
        (Record("a", b"1", NOW, "[1]"), InvalidArgument, "headers"),
        (Record("a", b"1" * (MAX_PAYLOAD_BYTES + 1), NOW), PayloadTooLarge, "payload"),
    ],
)
def test_a_client_names_the_argument_that_the_server_refuses(
    server: Served, name: str, record: Record, kind: type[InvalidArgument], argument: str
) -> None:
    parts = open_parts(server.url, name)
    with parts.queue, pytest.raises(kind) as raised:  # without the library's own checks
        parts.session.run(partial(parts.context.store.offer, [record], NOW))
    assert type(raised.value) is kind
    assert raised.value.argument == argument
    assert f"the server at {server.url} answered 4" in str(raised.value)
