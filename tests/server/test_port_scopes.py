"""What a token allows on the port, and whose clock and settings count there."""

import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from duequeue import ManualClock, Outcome, Queue, Retention
from duequeue.instants import LATEST, to_millis
from duequeue.port.cron_table import Installation
from duequeue.port.history_table import DayBounds
from duequeue.port.listing import BEFORE_ALL, Buckets, BurialSelection, Selection
from duequeue.port.remote import OPERATIONS, Call, WakeUpCall, encode
from duequeue.port.store import AgeLimits, Answer, Burial, Expiry, Lease, Record, Release
from duequeue.queue_names import OWN_QUEUES
from duequeue.server import app_for
from duequeue.server.tokens import Scope, TokenFile, new_token
from tests.server.served import Served, served

OK, FORBIDDEN, INVALID = 200, 403, 422
START = datetime(2026, 1, 1, tzinfo=UTC)
NOW = to_millis(START)
MINUTE = 60_000
LEASE = Lease(10**9, 7, NOW, "none")
NO_ROWS = DayBounds(0, 0, 0)
BURIALS = BurialSelection(10)
DATABASE = frozenset({"kinds", "examine", *(name for name in OPERATIONS if "history." in name)})

# Each operation of the port, valid arguments, and the only scopes beside `admin` that allow it.
OFFER, POLL, SETTLE, READ = {Scope.OFFER}, {Scope.POLL}, {Scope.SETTLE}, {Scope.READ}
ANY, ONLY_ADMIN = OFFER | POLL | SETTLE | READ, set[Scope]()
NOBODY = None
TABLE: dict[str, tuple[tuple[Any, ...], set[Scope] | None]] = {
    "offer": (([Record("a", b"1", NOW)], NOW, None, False), OFFER),
    "drop": (("none", NOW, None), OFFER),
    "reschedule": (("none", NOW, NOW), OFFER),
    "response": (("none", NOW), OFFER),
    "forget_response": (("none", NOW), OFFER),
    "claim": ((1, NOW, NOW + MINUTE, 7), POLL),
    "claim_expired": ((1, NOW, NOW + MINUTE, 7), POLL),
    "expire": (([Expiry(LEASE, 0)], NOW), POLL),
    "next_due": ((NOW,), POLL),
    "earliest_due": ((NOW,), POLL),
    "ack": (([LEASE], NOW), SETTLE),
    "answer": (([Answer(LEASE, b"1", NOW)], NOW, None), SETTLE),
    "bury": (([Burial(LEASE, 1, "why")], NOW, None), SETTLE),
    "extend": (([LEASE], NOW), SETTLE),
    "give_back": (([LEASE],), SETTLE),
    "release": (([Release(LEASE, NOW)],), SETTLE),
    "read": (("none",), READ),
    "listed": ((Selection(10), NOW), READ),
    "counts": ((NOW,), READ),
    "forecast": ((NOW, Buckets(NOW, MINUTE, NOW + MINUTE)), READ),
    "settled": ((10, None), READ),
    "burials.listed": ((BURIALS,), READ),
    "burials.last": ((), READ),
    "cron.listing": ((), READ),
    "count_types": (("any", 10), READ),
    "examine": ((NOW,), READ),
    "history.days": ((), READ),
    "history.day_bounds": ((NOW,), READ),
    "history.day_rows": ((NOW, 0, 10, 10), READ),
    "history.burial_reasons": ((NOW, 10), READ),
    "history.scheduled": ((NOW, NOW + MINUTE), READ),
    "open": ((True,), ANY),
    "kinds": ((), ANY),
    "drop_all": ((NOW,), ONLY_ADMIN),
    "burials.revive": (("none", NOW, NOW, None), ONLY_ADMIN),
    "burials.revive_all": ((BURIALS, NOW, NOW), ONLY_ADMIN),
    "burials.delete": ((BEFORE_ALL,), ONLY_ADMIN),
    "burials.purge": ((NOW,), ONLY_ADMIN),
    "cron.look": (("p", "h", NOW), ONLY_ADMIN),
    "cron.install": ((Installation("p", "h"), NOW), ONLY_ADMIN),
    "cron.uninstall": (("p", "h", NOW), ONLY_ADMIN),
    "cron.set_paused": (("p", NOW, True), ONLY_ADMIN),
    "history.remove_day": ((NOW, NO_ROWS), ONLY_ADMIN),
    "history.remove_rows": ((NOW, NO_ROWS), ONLY_ADMIN),
    "prepare_history": ((NOW,), NOBODY),
    "delete_old": ((AgeLimits(NOW, NOW), 10), NOBODY),
    "notify": ((NOW,), NOBODY),
}


class Confined(Enum):
    """A token that may do everything with some queues."""

    TO_MAILS = "mails"


class Guarded:
    """A server with its own clock, a token for each scope, and one for some queues."""

    def __init__(self, server: Served, file: Path, tokens: dict[Scope | Confined, str]) -> None:
        self._http = server.client()
        self._file = file
        self._tokens = tokens

    def call(
        self, scope: Scope | Confined, name: str, *arguments: Any, **given: Any
    ) -> httpx.Response:
        queue = "" if name in DATABASE else "orders"
        call = Call(name, msgspec.Raw(encode(arguments)), **{"queue": queue, **given})
        call.type_name = "json"
        headers = {"Authorization": f"Bearer {self._tokens[scope]}"}
        return self._http.post("/v1/port:call", content=encode(call), headers=headers)

    def wait(self, queue: str) -> httpx.Response:
        """Ask for the next wake-up of a queue."""
        headers = {"Authorization": f"Bearer {self._tokens[Scope.ADMIN]}"}
        call = WakeUpCall(queue, "json", "me", 0)
        return self._http.post("/v1/port:wait", content=encode(call), headers=headers)

    def result(self, name: str, *arguments: Any, **given: Any) -> Any:
        answer = self.call(Scope.ADMIN, name, *arguments, **given)
        assert answer.status_code == OK, answer.text
        return OPERATIONS[name].result.decode(answer.content)

    def claimed(self, key: str, now: int = NOW) -> Lease:
        """Offer a message, and return a lease of a minute on it."""
        self.result("offer", [Record(key, b"1", NOW)], now, None, False)
        (claimed,) = self.result("claim", 1, now, now + MINUTE, secrets.randbits(62) + 1)
        lease: Lease = claimed.lease
        return lease

    def close(self) -> None:
        self._http.close()

    def everything(self) -> list[str]:
        """Return all that the database holds."""
        with closing(sqlite3.connect(self._file)) as database:
            return list(database.iterdump())


@pytest.fixture(scope="module")
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, clock: ManualClock) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("port")
    file, tokens = TokenFile(folder / "tokens.json"), dict[Scope | Confined, str]()
    for scope in Scope:
        tokens[scope], grant = new_token([scope], datetime.now(UTC))
        file.add(grant)
    confined = Confined.TO_MAILS
    tokens[confined], grant = new_token([Scope.ADMIN], datetime.now(UTC), prefix=confined.value)
    file.add(grant)
    service = app_for(f"sqlite:///{folder / 'q.db'}", token_file=file.path, clock=clock)
    with (
        served(service) as server,
        closing(Guarded(server, folder / "q.db", tokens)) as guarded,
    ):
        yield guarded


@pytest.fixture(autouse=True)
def _empty(guarded: Guarded) -> None:
    guarded.result("drop_all", NOW)


def test_the_table_has_every_operation() -> None:
    """A new operation of the port needs `admin` until somebody decides otherwise."""
    assert set(TABLE) == set(OPERATIONS)


@pytest.mark.parametrize("name", TABLE)
def test_an_operation_needs_its_scope(guarded: Guarded, name: str) -> None:
    arguments, scopes = TABLE[name]
    allowed = set[Scope]() if scopes is None else scopes | {Scope.ADMIN}
    for scope in Scope:
        answer = guarded.call(scope, name, *arguments)
        assert answer.status_code == (OK if scope in allowed else FORBIDDEN), (scope, answer.text)


def test_with_a_token_for_read_nothing_changes(guarded: Guarded) -> None:
    guarded.claimed("a")
    before = guarded.everything()
    for name, (arguments, _) in TABLE.items():
        guarded.call(Scope.READ, name, *arguments)
        guarded.call(Scope.READ, name, *arguments, queue="new", history=True)
    assert guarded.everything() == before


def test_with_a_token_for_some_queues_no_operation_reaches_another(guarded: Guarded) -> None:
    for name in TABLE.keys() - DATABASE:
        answer = guarded.call(Confined.TO_MAILS, name, *TABLE[name][0])
        assert answer.status_code == FORBIDDEN, (name, answer.text)


@pytest.mark.parametrize("queue", sorted(OWN_QUEUES))
def test_no_operation_reaches_the_queues_of_the_server(guarded: Guarded, queue: str) -> None:
    for name in TABLE.keys() - DATABASE:
        answer = guarded.call(Scope.ADMIN, name, *TABLE[name][0], queue=queue)
        assert answer.status_code == FORBIDDEN, (name, answer.text)
    assert guarded.wait(queue).status_code == FORBIDDEN


@pytest.mark.parametrize("name", sorted(DATABASE))
def test_what_is_about_the_database_takes_no_queue(guarded: Guarded, name: str) -> None:
    answer = guarded.call(Scope.ADMIN, name, *TABLE[name][0], queue="orders")
    assert (answer.status_code, answer.json()["argument"]) == (INVALID, "queue")


def test_a_client_cannot_delete_as_expired_what_is_not(guarded: Guarded) -> None:
    lease = guarded.claimed("a")
    for now in (NOW, LATEST):
        answer = guarded.call(Scope.POLL, "expire", [Expiry(lease, 1)], now, history=False)
        assert msgspec.msgpack.decode(answer.content) == []
    assert guarded.result("read", "a").live is not None


@pytest.mark.parametrize("history", [True, False])
def test_the_server_decides_about_the_history(guarded: Guarded, history: bool) -> None:
    guarded.result("ack", [guarded.claimed("kept")], NOW, history=history)
    (row,) = guarded.result("settled", 1, "kept", history=history)
    assert row.outcome == Outcome.ACKED.value


@pytest.mark.parametrize("now", [NOW - 10**9, LATEST])
def test_the_clock_of_the_server_decides(guarded: Guarded, now: int) -> None:
    future = Record("future", b"1", NOW + 1)
    guarded.result("offer", [future], now, None, False)
    assert guarded.result("claim", 1, now, now + MINUTE, 7) == []
    lease = guarded.claimed("a", now)
    assert lease.delivered_at == NOW
    assert guarded.result("read", "a").live.leased_until == NOW + MINUTE
    guarded.result("ack", [lease._replace(delivered_at=LATEST)], now)
    (row,) = guarded.result("settled", 1, "a")
    assert (row.delivered_at, row.settled_at) == (NOW, NOW)


def test_a_lease_is_extended_by_the_clock_of_the_server(guarded: Guarded) -> None:
    lease = guarded.claimed("a")
    theirs = NOW + 10 * MINUTE
    guarded.result("extend", [lease], theirs + 2 * MINUTE, sent_at=theirs)
    assert guarded.result("read", "a").live.leased_until == NOW + 2 * MINUTE


def test_a_response_is_kept_by_the_clock_of_the_server(
    guarded: Guarded, clock: ManualClock
) -> None:
    lease, theirs = guarded.claimed("answered"), NOW - 10 * MINUTE
    guarded.result("answer", [Answer(lease, b"1", theirs + MINUTE)], theirs, None)
    assert guarded.result("response", "answered", theirs).response is not None


@pytest.mark.parametrize("lead", [timedelta(minutes=10), timedelta(minutes=-10)])
def test_a_client_whose_clock_is_wrong_knows_how_long_to_wait(
    guarded: Guarded, lead: timedelta
) -> None:
    guarded.result("offer", [Record("a", b"1", NOW + MINUTE)], NOW, None, False)
    theirs = to_millis(START + lead)
    for name in ("next_due", "earliest_due"):
        assert guarded.result(name, theirs) == theirs + MINUTE


def test_a_client_with_a_wrong_clock_works(tmp_path: Path, name: str, clock: ManualClock) -> None:
    """Its leases last as long as it thinks, however wrong its clock is."""
    ahead = ManualClock(START + timedelta(hours=3))
    with (
        served(app_for(f"sqlite:///{tmp_path / 'q.db'}", clock=clock)) as server,
        Queue.open(server.url, name, clock=ahead, lease=timedelta(minutes=1)) as queue,
    ):
        queue.offer("a", 1, START)
        queue.offer("early", 1, START + timedelta(hours=1))
        (delivery,) = queue.try_poll_many(10)
        assert delivery.key == "a"
        assert delivery.ack()
        (settled,) = queue.history(1)
        assert settled.settled_at == START


def test_the_retention_of_a_client_is_refused_with_a_warning(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    retention = Retention(history=timedelta(days=1))
    with (
        served(app_for("memory:retention")) as server,
        Queue.open(server.url, name, retention=retention) as queue,
    ):
        queue.offer("a", 1)
        assert queue.try_poll() is not None
    assert "the server does this by itself, with its own settings" in caplog.text
