"""What a client cannot do by leaving out the library's own checks, or by forging what it sends."""

import asyncio
from datetime import UTC, datetime, timedelta
from math import nan
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from duequeue import ManualClock, Queue
from duequeue.errors import StoreUnavailable
from duequeue.flows.lease_tokens import HeldLease, _checksum, held_lease
from duequeue.port.cron_table import Installation
from duequeue.port.listing import Buckets, Selection
from duequeue.port.remote import VERSION, Call, WakeUpCall, encode
from duequeue.port.store import Lease, Record, Release
from duequeue.server import Limits, app_for
from duequeue.server.port_arguments import MOST_MESSAGES
from duequeue.server.tokens import Scope, TokenFile, new_token
from tests.server.served import Served, served

OK = 200
REFUSED = {413, 422}
NOW = 1_800_000_000_000
LEASE = Lease(1, 0, NOW, "a")


def call(http: httpx.Client, operation: str, *arguments: Any, queue: str) -> httpx.Response:
    packed = msgspec.Raw(encode(arguments))
    return send(http, Call(operation, packed, queue, "json", 3000))


def send(http: httpx.Client, given: Call) -> httpx.Response:
    headers = {"Content-Type": "application/msgpack"}
    return http.post("/v1/port:call", content=encode(given), headers=headers)


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("forecast", (NOW, Buckets(NOW, 0, NOW + 1))),
        ("forecast", (NOW, Buckets(NOW, -1, NOW + 1))),
        ("forecast", (NOW, Buckets(NOW, 1, NOW + 10_001))),
        ("forecast", (NOW, Buckets(NOW, 1, NOW))),
        ("offer", ([Record("", b"1", NOW)], NOW, None, False)),
        ("offer", ([Record("k" * 201, b"1", NOW)], NOW, None, False)),
        ("offer", ([Record("a\0", b"1", NOW)], NOW, None, False)),
        ("offer", ([Record("a", b"1", -(10**17))], NOW, None, False)),
        ("offer", ([Record("a", b"1" * (8 * 1024 * 1024 + 1), NOW)], NOW, None, False)),
        ("offer", ([Record("a", b"1", NOW, "[1]")], NOW, None, False)),
        ("offer", ([Record("a", b"1", NOW)], 10**17, None, False)),
        ("claim", (1, 10**17, NOW, 1)),
        ("ack", ([LEASE], NOW)),
        ("extend", ([LEASE], NOW)),
        ("release", ([Release(LEASE, NOW)],)),
        ("give_back", ([LEASE],)),
        ("history.days", ()),
        ("cron.install", (Installation("p", ""), NOW)),
        ("cron.install", (Installation("p", "a\0b"), NOW)),
        ("cron.install", (Installation("p", "a/b"), NOW)),
        ("cron.install", (Installation("p", "h" * 65), NOW)),
        ("claim", (-1, NOW, NOW, 1)),
        ("count_types", ("a", -1)),
        ("listed", (Selection(limit=-1), NOW)),
    ],
)
def test_arguments_of_the_port_are_checked(
    http: httpx.Client, name: str, operation: str, arguments: tuple[Any, ...]
) -> None:
    answer = call(http, operation, *arguments, queue=name)
    assert answer.status_code in REFUSED, answer.text
    assert answer.json()["argument"]


def test_a_call_may_claim_a_limited_number_of_messages(http: httpx.Client, name: str) -> None:
    records = [Record(f"k{number}", b"1", 0) for number in range(3)]
    assert call(http, "offer", records, NOW, None, False, queue=name).status_code == OK
    claimed = call(http, "claim", 10**9, NOW, NOW + 1, 7, queue=name)
    assert claimed.status_code == OK
    assert len(msgspec.msgpack.decode(claimed.content)) == len(records)


@pytest.mark.parametrize("url", ["memory:no-number", "redis"])
def test_a_time_limit_that_is_no_number_is_the_shortest(
    url: str, name: str, request: pytest.FixtureRequest
) -> None:
    url = str(request.getfixturevalue("redis_url")) if url == "redis" else url
    given = Call("offer", msgspec.Raw(encode(([Record("a", b"1", NOW)], NOW, None, False))))
    given.queue, given.type_name, given.seconds = name, "json", nan
    with served(app_for(url, trusted=True)) as server, server.client() as client:
        assert send(client, given).status_code == OK


def test_a_lease_that_ends_beyond_the_calendar_can_be_looked_at(
    http: httpx.Client, name: str
) -> None:
    assert call(http, "offer", [Record("k", b"1", 0)], NOW, None, False, queue=name).is_success
    assert call(http, "claim", 1, NOW, 2**53, 7, queue=name).is_success
    shown = http.get(f"/v1/queues/{name}/messages/k")
    assert (shown.status_code, shown.json()["state"]) == (OK, "leased")


def test_a_call_may_list_a_limited_number_of_messages(http: httpx.Client, name: str) -> None:
    for first in (0, MOST_MESSAGES // 2 + 1):
        keys = range(first, first + MOST_MESSAGES // 2 + 1)
        records = [Record(f"k{number}", b"1", NOW) for number in keys]
        assert call(http, "offer", records, NOW, None, False, queue=name).status_code == OK
    listed = call(http, "listed", Selection(limit=10**9), NOW, queue=name)
    assert listed.status_code == OK
    assert len(msgspec.msgpack.decode(listed.content)) == MOST_MESSAGES


def test_a_worker_cannot_lease_what_is_due_later(tmp_path: Path, name: str) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    worker, grant = new_token([Scope.OFFER, Scope.POLL], datetime.now(UTC))
    tokens.add(grant)
    ahead = timedelta(minutes=10)
    clock = ManualClock(datetime.now(UTC) + ahead)
    with (
        served(app_for("memory:clock", token_file=tokens.path)) as server,
        Queue.open(server.url, name, token=worker, clock=clock) as queue,
    ):
        queue.offer("a", 1, datetime.now(UTC) + ahead)
        assert queue.try_poll() is None


def test_a_wait_of_another_version_is_refused(http: httpx.Client, name: str) -> None:
    given = encode(WakeUpCall(name, "json", "me", 0.0, version=VERSION + 1))
    answer = http.post("/v1/port:wait", content=given)
    assert answer.status_code == 400


def test_a_call_has_time_enough_not_to_disturb_others(http: httpx.Client, name: str) -> None:
    packed = msgspec.Raw(encode((NOW,)))
    given = Call("counts", packed, name, "json", 3000, seconds=0.0)
    assert send(http, given).status_code == OK


def test_a_forged_token_settles_nothing(http: httpx.Client, path: str, name: str) -> None:
    http.put(f"{path}/messages/a", content=b"1")
    forged = msgspec.msgpack.encode(HeldLease(LEASE, 1))
    token = (_checksum(forged, f"{name}|json") + forged).hex()
    answer = http.post(f"{path}:settle", json={"ack": [token]})
    assert (answer.status_code, answer.json()["argument"]) == (422, "ack[0]")
    assert http.get(f"{path}/messages/a").status_code == OK


def test_a_lease_has_one_verdict(http: httpx.Client, path: str, name: str) -> None:
    http.put(f"{path}/messages/a", content=b"1")
    (delivery,) = http.post(f"{path}:poll", json={}).json()["deliveries"]
    lease, _ = held_lease(delivery["token"], f"{name}|json", "token")
    forged = msgspec.msgpack.encode(HeldLease(lease, 7))
    other = (_checksum(forged, f"{name}|json") + forged).hex()
    given = {"ack": [delivery["token"]], "bury": [{"token": other, "reason": "no"}]}
    answer = http.post(f"{path}:settle", json=given)
    assert (answer.status_code, answer.json()["argument"]) == (422, "bury[0].token")
    assert http.get(f"{path}/messages/a").status_code == OK


def test_a_token_that_is_not_one_is_found_among_others(http: httpx.Client, path: str) -> None:
    http.put(f"{path}/messages/a", content=b"1")
    (delivery,) = http.post(f"{path}:poll", json={}).json()["deliveries"]
    given = {"ack": [delivery["token"]], "release": [{"token": "not one", "delay": 1}]}
    answer = http.post(f"{path}:settle", json=given)
    assert (answer.status_code, answer.json()["argument"]) == (422, "release[0].token")
    twice = http.post(f"{path}:settle", json={"ack": [delivery["token"]] * 2})
    assert (twice.status_code, twice.json()["argument"]) == (422, "ack[1]")
    won = http.post(f"{path}:settle", json={"ack": [delivery["token"]]}).json()
    assert won == {"settled": {delivery["token"]: "won"}}


@pytest.mark.parametrize(
    ("client", "headers", "status"),
    [
        (("127.0.0.1", 1), {}, OK),
        (("::1", 1), {}, OK),
        (("10.9.8.7", 1), {}, 403),
        (None, {}, 403),
        (("127.0.0.1", 1), {"Host": "due.example"}, 403),
        (("127.0.0.1", 1), {"X-Forwarded-For": "10.9.8.7"}, 403),
        (("127.0.0.1", 1), {"Forwarded": "for=10.9.8.7"}, 403),
    ],
)
def test_without_a_token_only_this_machine_may_call(
    client: tuple[str, int] | None, headers: dict[str, str], status: int
) -> None:
    service = app_for("memory:foreign")

    async def asked() -> int:
        transport = httpx.ASGITransport(service, client=client)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            found = await http.get("/v1/queues", headers=headers)
        await service.close()
        return found.status_code

    assert asyncio.run(asked()) == status


def test_more_queues_than_may_be_open() -> None:
    with served(app_for("memory:many", limits=Limits(open_queues=1))) as server:
        asyncio.run(poll_all(server, [f"q{number}" for number in range(8)]))


async def poll_all(server: Served, names: list[str]) -> None:
    async with httpx.AsyncClient(base_url=server.url, timeout=20.0) as http:
        polls = [
            asyncio.create_task(http.post(f"/v1/queues/{name}:poll", json={"wait": "10s"}))
            for name in names
        ]
        for name in names:
            await http.put(f"/v1/queues/{name}/messages/a", content=b"1")
        for poll in polls:
            answer = await poll
            assert answer.status_code == OK, answer.text
            assert len(answer.json()["deliveries"]) == 1


def test_a_failure_of_a_look_for_crons_does_not_end_it(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = app_for("memory:crons")
    monkeypatch.setattr("duequeue.server.cron_keeper.LOOK_EVERY", timedelta(0))
    looks = [RuntimeError("unexpected"), StoreUnavailable("away")]
    looked = asyncio.Event()

    async def look() -> None:
        if looks:
            raise looks.pop()
        looked.set()

    monkeypatch.setattr(service.crons, "look", look)

    async def run() -> None:
        service.crons.start()
        await asyncio.wait_for(looked.wait(), 10)
        await service.close()

    asyncio.run(run())
    assert "RuntimeError" in caplog.text


@pytest.mark.parametrize("limit", ["--5", "5-", "٣", "1e3", "9" * 30])
def test_a_number_is_written_in_digits(http: httpx.Client, path: str, limit: str) -> None:
    answer = http.get(f"{path}/messages", params={"limit": limit})
    assert (answer.status_code, answer.json()["argument"]) == (422, "limit")


def test_a_release_may_not_leave_the_calendar(http: httpx.Client, path: str) -> None:
    http.put(f"{path}/messages/a", content=b"1")
    (delivery,) = http.post(f"{path}:poll", json={}).json()["deliveries"]
    wanted = {"release": [{"token": delivery["token"], "delay": "9999999d"}]}
    answer = http.post(f"{path}:settle", json=wanted)
    assert (answer.status_code, answer.json()["argument"]) == (422, "delay")
