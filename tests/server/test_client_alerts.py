"""The thread of a client that waits at the server for wake-ups."""

import threading
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from queue import SimpleQueue
from threading import Event
from typing import TypeVar

import pytest

from duequeue.contract.phrases import PATIENCE
from duequeue.contract.stage import until
from duequeue.port.alerts import OnAlert
from duequeue.port.remote import WakeUp, WakeUpCall, encode
from duequeue.stores.http import alerts
from duequeue.stores.http.address import ServerAddress
from duequeue.stores.http.alerts import LINGER, LONGEST_PAUSE, HttpAlerts
from duequeue.stores.http.connections import ClientConnections
from tests.fixtures.servers import free_port

A = TypeVar("A", bound=HttpAlerts)

LONG = 3600.0
NOTHING_NEW = encode(WakeUp("here", 0, rang=False))


class SlowToEnd(HttpAlerts):
    """A queue whose thread waits for a moment before it ends."""

    def __init__(self, address: ServerAddress, call: WakeUpCall, on_alert: OnAlert) -> None:
        super().__init__(address, call, on_alert)
        self.ends, self.may_end = Event(), Event()

    def _goes_on(self) -> bool:
        goes_on = super()._goes_on()
        if not goes_on:
            self.ends.set()
            self.may_end.wait(PATIENCE)
        return goes_on


class Watched(HTTPConnection):
    """A connection that notes when it is closed."""

    note: Callable[[HTTPConnection], None]

    def close(self) -> None:
        super().close()
        self.note(self)


class Waits:
    """The requests of a client, each of which waits until it gets an answer or fails."""

    def __init__(self) -> None:
        self._requests: SimpleQueue[HTTPConnection] = SimpleQueue()
        self._closed: SimpleQueue[HTTPConnection] = SimpleQueue()
        self.answers: SimpleQueue[bytes | Exception] = SimpleQueue()
        self.connects, self.may_connect = Event(), Event()
        self.may_connect.set()

    def connect(self, *_: object) -> None:
        self.connects.set()
        assert self.may_connect.wait(PATIENCE)

    def new(self) -> HTTPConnection:
        connection = Watched("127.0.0.1")
        connection.note = self._closed.put
        return connection

    def send(self, connection: HTTPConnection, *_: object) -> tuple[int, bytes]:
        self._requests.put(connection)
        answer = self.answers.get(timeout=PATIENCE)
        if isinstance(answer, Exception):
            raise answer
        return 200, answer

    def next_request(self) -> HTTPConnection:
        return self._requests.get(timeout=PATIENCE)

    def no_request(self) -> bool:
        return self._requests.empty()

    def next_closed(self) -> HTTPConnection:
        return self._closed.get(timeout=PATIENCE)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    """Take the place of the server."""
    waits = Waits()
    monkeypatch.setattr(ClientConnections, "new", waits.new)
    monkeypatch.setattr(alerts, "connect", waits.connect)
    monkeypatch.setattr(alerts, "send", waits.send)
    return waits


@pytest.fixture
def place() -> Iterator[HttpAlerts]:
    """A queue at a server that cannot be reached."""
    place = queue_of(HttpAlerts)
    yield place
    place.close()


def queue_of(kind: type[A]) -> A:
    address = ServerAddress.from_url(f"http://127.0.0.1:{free_port()}", None)
    return kind(address, WakeUpCall("orders", "json", "me", 1.0), lambda _: None)


def test_a_client_still_tries_after_a_thousand_failures(
    place: HttpAlerts, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    def at_once(ceiling: float) -> float:
        pauses.append(ceiling)
        return 0.0

    monkeypatch.setattr(alerts, "jittered", at_once)
    place.listen(LONG)
    until(lambda: len(pauses) > 1100)
    assert pauses[:3] == [0.1, 0.2, 0.4]
    assert set(pauses[10:]) == {LONGEST_PAUSE}


def test_a_client_that_is_closed_while_it_connects_does_not_wait(
    place: HttpAlerts, waits: Waits
) -> None:
    waits.may_connect.clear()
    place.listen(LONG)
    assert waits.connects.wait(PATIENCE)
    place.close()
    waits.may_connect.set()
    waits.next_closed()
    assert waits.no_request()


def test_a_thread_that_dies_of_a_defect_is_replaced(
    place: HttpAlerts, waits: Waits, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaths: SimpleQueue[threading.ExceptHookArgs] = SimpleQueue()
    monkeypatch.setattr(threading, "excepthook", deaths.put)
    place.listen(LONG)
    first = waits.next_request()
    waits.answers.put(RuntimeError("a defect"))
    assert str(deaths.get(timeout=PATIENCE).exc_value) == "a defect"
    place.listen(LONG)
    assert waits.next_request() is not first
    place.close()
    waits.answers.put(NOTHING_NEW)


def test_a_thread_that_ends_does_not_close_the_connection_of_the_next_one(
    waits: Waits, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(alerts, "monotonic", lambda: now[0])
    place = queue_of(SlowToEnd)
    place.listen(0.0)
    first = waits.next_request()
    now[0] += 2 * LINGER
    waits.answers.put(NOTHING_NEW)
    assert place.ends.wait(PATIENCE)
    place.listen(0.0)
    second = waits.next_request()
    place.may_end.set()
    assert waits.next_closed() is first
    place.close()
    waits.answers.put(NOTHING_NEW)
    assert waits.next_closed() is second
