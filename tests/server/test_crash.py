"""A server that is killed under load, two servers on one database, and clients that try again."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from duequeue.contract.stage import until
from duequeue.server import app_for
from tests.fixtures.servers import free_port
from tests.server.command import ServeProcess, own_token, serving
from tests.server.served import served

PATH = "/v1/queues/q"


class RetryingClient:
    """Sends a request again until it is answered, as the guide says that clients should."""

    def __init__(self, url: str) -> None:
        token = own_token(urlsplit(url).port)
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=5, trust_env=False)

    def post(self, path: str, body: Any) -> Any:
        gives_up_at = monotonic() + 60
        while True:
            try:
                answer = self._http.post(path, json=body)
                if answer.status_code == 200:
                    return answer.json()
            except httpx.HTTPError:
                pass
            assert monotonic() < gives_up_at
            sleep(0.02)  # a real client in a real outage

    def close(self) -> None:
        self._http.close()


KEYS = [f"k{n}" for n in range(600)]
ARGUMENTS = ("--lease", "2s", "--poll-interval", "500ms")


class Servers:
    """One server after the other, at one port and on one file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.running = ServeProcess(*ARGUMENTS, folder=folder, port=free_port())
        self.url = self.running.url

    def crash_when(self, is_under_load: Callable[[], bool]) -> None:
        """Kill the server under load, and start the next one."""
        until(is_under_load)
        self.end()
        port = self.running.port
        self.running = ServeProcess(*ARGUMENTS, folder=self._folder, port=port)

    def end(self) -> None:
        self.running.kill()
        self.running.rest()


class Consumers:
    """Two consumers, and what they have seen."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._acked: set[str] = set()
        self._done = threading.Event()
        self._threads = [threading.Thread(target=self._consume) for _ in range(2)]
        self.handled: set[str] = set()
        self.handled_after_ack: list[str] = []
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join(60)

    def _consume(self) -> None:
        client = RetryingClient(self._url)
        while not self._done.is_set():
            found = client.post(f"{PATH}:poll", {"limit": 20, "wait": "200ms"})["deliveries"]
            keys = {each["token"]: each["key"] for each in found}
            self.handled.update(keys.values())
            self.handled_after_ack += [key for key in keys.values() if key in self._acked]
            settled = client.post(f"{PATH}:settle", {"ack": list(keys)})["settled"]
            self._acked.update(key for token, key in keys.items() if settled[token] == "won")
        client.close()


class Producer(threading.Thread):
    """Offers all keys, ten at a time."""

    def __init__(self, url: str, **fields: Any) -> None:
        super().__init__()
        self._url = url
        self._fields = fields
        self.offered = 0

    def run(self) -> None:
        client = RetryingClient(self._url)
        for place in range(0, len(KEYS), 10):
            batch = [{"key": key, **self._fields} for key in KEYS[place : place + 10]]
            client.post(f"{PATH}/messages", batch)
            self.offered += len(batch)
        client.close()


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    servers = Servers(tmp_path)
    yield servers
    servers.end()


def test_nothing_is_lost_when_the_server_is_killed_under_load(servers: Servers) -> None:
    producer = Producer(servers.url, delay="1h")
    producer.start()
    servers.crash_when(lambda: producer.offered >= 100)
    servers.crash_when(lambda: producer.offered >= 300)
    producer.join(60)
    with servers.running.client() as http:
        assert http.get(PATH).json()["total"] == len(KEYS)

    # An offer that is repeated after a crash may come after the ack, and is then a new message. So
    # nothing crashes while the messages are made due.
    Producer(servers.url).run()
    consumers = Consumers(servers.url)
    servers.crash_when(lambda: len(consumers.handled) >= 100)
    servers.crash_when(lambda: len(consumers.handled) >= 300)
    with servers.running.client() as http:
        until(lambda: http.get(PATH).json()["total"] == 0)
    consumers.stop()
    assert consumers.handled == set(KEYS)
    assert consumers.handled_after_ack == []


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_two_servers_on_one_database(
    store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path / 'q.db'}?synchronous=normal"
    if store == "postgres":
        url = request.getfixturevalue("postgres_url")
    with (
        served(app_for(url)) as one,
        served(app_for(url)) as two,
        one.client() as first,
        two.client() as second,
    ):
        keys = [f"k{n}" for n in range(300)]
        first.post(f"{PATH}/messages", json=[{"key": key} for key in keys])
        found: list[Any] = []
        for client in (first, second) * 20:
            found += client.post(f"{PATH}:poll", json={"limit": 10}).json()["deliveries"]
        assert sorted(each["key"] for each in found) == sorted(keys)
        tokens = [each["token"] for each in found]
        settled = second.post(f"{PATH}:settle", json={"ack": tokens}).json()["settled"]
        assert settled == dict.fromkeys(tokens, "won")
        waiting: list[Any] = []
        thread = threading.Thread(
            target=lambda: waiting.append(first.post(f"{PATH}:poll", json={"wait": 20}).json())
        )
        thread.start()
        until(lambda: one.service.live.waiters == 1)
        second.put(f"{PATH}/messages/woken")
        thread.join(30)
        assert waiting[0]["deliveries"][0]["key"] == "woken"


def test_the_default_is_a_file_in_the_current_folder(tmp_path: Path) -> None:
    with serving(folder=tmp_path) as server, server.client() as http:
        assert http.put(f"{PATH}/messages/a", params={"delay": "1h"}).status_code == 200
        assert server.terminate() == 0
    with serving(folder=tmp_path) as server, server.client() as http:
        assert http.get(f"{PATH}/messages/a").json()["state"] == "future"
