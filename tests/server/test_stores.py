"""The service on each store: what its routes need of a store is there."""

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from itertools import product

import httpx
import pytest

from duequeue.backends import backend_for
from duequeue.instants import to_millis
from duequeue.port.cron_table import Installation, Tick
from duequeue.server import app_for
from tests.fixtures.stores import fresh_url
from tests.server.served import served
from tests.server.test_buried import until_done
from tests.server.test_messages import offer
from tests.server.test_polling import poll, settle

QUEUE = "/v1/queues/orders"
DAY = 24 * 60 * 60 * 1000


@pytest.fixture(params=["memory", "sqlite", "postgres", "mariadb", "redis"])
def http(request: pytest.FixtureRequest) -> Iterator[httpx.Client]:
    with served(app_for(fresh_url(request.param, request))) as server, server.client() as client:
        yield client


def test_messages_from_their_offer_to_their_end(http: httpx.Client) -> None:
    offers = [{"key": key, "payload": {"of": key}, "headers": {"h": key}} for key in "abcde"]
    assert http.post(f"{QUEUE}/messages", json=offers).json()["outcomes"] == ["created"] * 5
    offer(http, QUEUE, "later", 1, delay="1h")
    found = poll(http, QUEUE, limit=5)["deliveries"]
    assert [(each["key"], each["payload"], each["headers"]) for each in found] == [
        (key, {"of": key}, {"h": key}) for key in "abcde"
    ]
    a, b, c, d, e = (each["token"] for each in found)
    settled = settle(
        http,
        QUEUE,
        ack=[a],
        response=[{"token": b, "value": 7}],
        extend=[{"token": c, "lease": "5m"}],
        release=[{"token": d, "delay": "1h"}],
        bury=[{"token": e, "reason": "broken"}],
    )
    assert settled == dict.fromkeys((a, b, c, d, e), "won")
    assert settle(http, QUEUE, ack=[a, d, e]) == dict.fromkeys((a, d, e), "lost")
    assert http.get(f"{QUEUE}/responses/b").json()["value"] == 7
    assert http.get(f"{QUEUE}/responses/e").json()["reason"] == "broken"
    stats = http.get(QUEUE).json()
    assert [stats[state] for state in ("due", "leased", "future", "buried")] == [0, 1, 2, 1]
    assert {each["key"] for each in http.get(f"{QUEUE}/history").json()["messages"]} >= {"a", "b"}
    buckets = http.get(f"{QUEUE}/forecast?hours=2").json()["buckets"]
    assert sum(each["messages"] for each in buckets) == 2


def test_what_happens_in_the_background(http: httpx.Client) -> None:
    cron = {"queue": "orders", "every": "30d", "payload": 1}
    assert http.put("/v1/crons/monthly", json=cron).json()["next_tick"] is not None
    assert http.post("/v1/crons/monthly:run-now").json() == {"changed": True}
    (found,) = poll(http, QUEUE, wait=20)["deliveries"]
    settle(http, QUEUE, bury=[{"token": found["token"], "reason": "broken"}])
    revived = http.post(f"{QUEUE}/buried:revive", json={"reason": "brok"}).json()
    assert until_done(http, revived)["done"] == 1
    assert http.delete("/v1/crons/monthly").json() == {"changed": True}
    dropped = http.delete(f"{QUEUE}/messages", params={"key_prefix": "monthly"}).json()
    assert until_done(http, dropped)["done"] == 1
    assert [each["name"] for each in http.get("/v1/queues").json()["queues"]] == ["orders"]
    assert http.get("/readyz").status_code == 200


@pytest.mark.parametrize(
    ("store", "bad"),
    [*product(["memory", "sqlite", "postgres", "mariadb", "redis"], ["a/b"]), ("redis", "a\0b")],
)
def test_a_cron_with_a_name_that_is_refused_today_can_be_removed(
    store: str, bad: str, request: pytest.FixtureRequest
) -> None:
    url = fresh_url(store, request)
    backend = backend_for(url)
    with served(app_for(url)) as server, server.client() as client, ExitStack() as opened:
        client.put("/v1/crons/good", json={"queue": "orders", "every": "30d", "payload": 1})
        session = backend.session()
        opened.callback(session.close)
        opening = partial(backend.open_store, "orders|json", DAY, migrate=False, history=False)
        table = session.run(opening).cron
        now = to_millis(datetime.now(UTC))
        tick = Tick(now + DAY, f"bad/{bad}/1", b"1", now + DAY)
        session.run(partial(table.install, Installation("bad", bad, ahead=[tick]), now))
        shown = {each["name"]: each for each in client.get("/v1/crons").json()["crons"]}
        assert set(shown) == {"bad", "good"}
        assert shown["bad"]["next_tick"] is not None
        total = client.get(QUEUE).json()["total"]
        assert client.delete("/v1/crons/bad").json() == {"changed": True}
        assert [each["name"] for each in client.get("/v1/crons").json()["crons"]] == ["good"]
        assert client.get(QUEUE).json()["total"] == total - 1
