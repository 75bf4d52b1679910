"""Recurring messages over HTTP."""

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from duequeue import Queue
from duequeue.contract.stage import until
from duequeue.queue_names import CRONS_OF_SERVICE
from duequeue.server import Limits, app_for
from duequeue.server.cron_keeper import CronKeeper
from tests.server.served import Served, served
from tests.server.test_polling import poll


def define(http: httpx.Client, cron: str, queue: str, **fields: Any) -> Any:
    answer = http.put(f"/v1/crons/{cron}", json={"queue": queue, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_cron_from_its_definition_to_its_end(http: httpx.Client, path: str, name: str) -> None:
    cron = f"nightly-{name}"
    fields = {"expression": "0 3 * * *", "zone": "Europe/Berlin", "payload": {"n": 1}}
    shown = define(http, cron, name, **fields)
    assert shown["name"] == cron
    assert shown["queue"] == name
    assert shown["schedule"] == "cron 0 3 * * * in Europe/Berlin"
    assert shown["defined_here"] is True
    assert http.get(f"/v1/crons/{cron}").json() == shown
    assert http.get("/v1/crons", params={"queue": name}).json() == {"crons": [shown]}
    ticks = http.get(f"/v1/crons/{cron}/next", params={"n": 3}).json()["ticks"]
    assert [datetime.fromisoformat(each).hour for each in ticks] == [3, 3, 3]
    utc = http.get(f"/v1/crons/{cron}/next", params={"n": 3, "zone": "UTC"}).json()["ticks"]
    assert list(map(datetime.fromisoformat, utc)) == list(map(datetime.fromisoformat, ticks))
    messages = http.get(f"{path}/messages").json()["messages"]
    assert messages[0]["payload"] == {"n": 1}
    assert messages[0]["due_at"] == shown["next_tick"]
    assert http.post(f"/v1/crons/{cron}:pause").json() == {"changed": True}
    assert http.post(f"/v1/crons/{cron}:pause").json() == {"changed": False}
    assert http.get(path).json()["total"] == 0
    assert http.post(f"/v1/crons/{cron}:resume").json() == {"changed": True}
    assert http.get(path).json()["total"] > 0
    assert http.post(f"/v1/crons/{cron}:run-now").json() == {"changed": True}
    (extra,) = poll(http, path)["deliveries"]
    assert extra["payload"] == {"n": 1}
    assert http.delete(f"/v1/crons/{cron}").json() == {"changed": True}
    assert http.get(f"/v1/crons/{cron}").status_code == 404
    assert http.get(path).json()["future"] == 0


def test_a_change_replaces_the_ticks(http: httpx.Client, path: str, name: str) -> None:
    define(http, f"c-{name}", name, every="1h", payload=1)
    define(http, f"c-{name}", name, every="1h", payload=2)
    messages = http.get(f"{path}/messages").json()["messages"]
    assert {each["payload"] for each in messages} == {2}
    define(http, f"c-{name}", name, daily=["07:00", "19:30"], weekdays=["mon"], payload=3)
    messages = http.get(f"{path}/messages").json()["messages"]
    assert {each["payload"] for each in messages} == {3}


def test_options(http: httpx.Client, path: str, name: str) -> None:
    define(
        http,
        f"c-{name}",
        name,
        every="1h",
        misfire=5,
        jitter="10m",
        until="2040-01-01T00:00:00Z",
        headers={"h": "v"},
    )
    messages = http.get(f"{path}/messages").json()["messages"]
    assert all(each["headers"] == {"h": "v"} for each in messages)
    define(http, f"c-{name}", name, every="1h", misfire="fire_once")


@pytest.mark.parametrize(
    ("fields", "argument"),
    [
        ({}, "expression"),
        ({"expression": "* * * * *", "every": "1h"}, "expression"),
        ({"expression": "61 * * * *"}, "expression"),
        ({"every": "0s"}, "every"),
        ({"daily": ["25:00"]}, "daily"),
        ({"daily": ["07:00"], "zone": "Mars/Base"}, "zone"),
        ({"every": "1h", "weekdays": ["mon"]}, "weekdays"),
        ({"every": "1h", "misfire": -1}, "misfire"),
        ({"every": "1h", "misfire": "sometimes"}, "misfire"),
        ({"every": "1h", "jitter": "soon"}, "jitter"),
        ({"every": "1h", "headers": {"a": "x" * 9000}}, "headers"),
    ],
)
def test_bad_definitions(
    http: httpx.Client, name: str, store_of_server: str, fields: Any, argument: str
) -> None:
    answer = http.put(f"/v1/crons/c-{name}", json={"queue": name, **fields})
    assert answer.status_code == 422, answer.text
    assert answer.json()["argument"] == argument
    assert http.get("/v1/crons", params={"queue": name}).json() == {"crons": []}
    with Queue.open(store_of_server, CRONS_OF_SERVICE) as definitions:
        stored = definitions.list(limit=1000).messages
    assert not any(each.key.startswith(name) for each in stored)


def test_the_same_name_in_two_queues(http: httpx.Client, name: str) -> None:
    for queue in (f"{name}1", f"{name}2"):
        define(http, f"c-{name}", queue, every="1h")
    assert http.get(f"/v1/crons/c-{name}").json()["argument"] == "queue"
    one = http.get(f"/v1/crons/c-{name}", params={"queue": f"{name}2"}).json()
    assert one["queue"] == f"{name}2"


def test_a_cron_of_a_program_is_shown_but_not_known(
    http: httpx.Client, name: str, store_of_server: str
) -> None:
    with Queue.open(store_of_server, name) as queue:
        queue.cron.install_periodic_tick(f"p-{name}", timedelta(hours=1), 1)
        shown = http.get(f"/v1/crons/p-{name}").json()
        assert shown["defined_here"] is False
        assert http.get(f"/v1/crons/p-{name}/next").status_code == 409
        assert http.post(f"/v1/crons/p-{name}:run-now").status_code == 409
        assert http.delete(f"/v1/crons/p-{name}").json() == {"changed": True}


def test_the_server_s_own_queue_is_closed_to_requests(http: httpx.Client) -> None:
    assert http.get("/v1/queues/duequeue-crons").status_code == 403
    body = {"queue": "duequeue-crons", "every": "1h"}
    assert http.put("/v1/crons/x", json=body).status_code == 422


def test_crons_survive_a_restart_and_reach_other_servers(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'q.db'}"
    with served(app_for(url)) as first, first.client() as http:
        define(http, "c", "q", every="1h", payload=1)
    with (
        served(app_for(url)) as second,
        second.client() as http,
        served(app_for(url)) as third,
        third.client() as other,
    ):
        assert http.post("/v1/crons/c:run-now").json() == {"changed": True}
        define(other, "c", "q", every="30m", payload=2)
        look(second)
        shown = http.get("/v1/crons/c").json()
        assert (shown["schedule"], shown["defined_here"]) == ("every 30 minutes", True)
        assert http.delete("/v1/crons/c").json() == {"changed": True}
        look(third)
        assert other.get("/v1/crons/c").status_code == 404
        assert third.service.crons.is_defined("q", "c") is False


def look(server: Served) -> None:
    """Have a server look for what others have defined, as it does every few seconds."""
    server.call(server.service.crons.look)


def test_a_look_for_crons_that_fails_logs_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        queues: Any = None
        keeper, looked = CronKeeper(queues), asyncio.Event()

        async def fails() -> None:
            looked.set()
            raise RuntimeError("a secret")

        keeper.look = fails  # type: ignore[method-assign]
        keeper.start()
        await looked.wait()
        await keeper.close()

    asyncio.run(run())
    assert "could not look for crons: unexpected RuntimeError at test_crons.py:" in caplog.text
    assert "a secret" not in caplog.text


def test_a_list_of_crons_opens_few_queues_at_a_time(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'q.db'}"
    for number in range(5):
        with Queue.open(url, f"q{number}") as queue:
            queue.cron.install_periodic_tick(f"c{number}", timedelta(hours=1), 1)
    with served(app_for(url, limits=Limits(open_queues=2))) as server, server.client() as http:
        shown = http.get("/v1/crons").json()["crons"]
        assert [each["queue"] for each in shown] == [f"q{number}" for number in range(5)]
        until(lambda: len(server.service.queues.opened) <= 2)
        assert http.get("/v1/crons/c4").json()["queue"] == "q4"
        until(lambda: len(server.service.queues.opened) <= 2)
