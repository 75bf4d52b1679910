"""How the server ends, and what it refuses to start with."""

import asyncio
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from duequeue import Queue
from duequeue.callbacks.pushing import PushSettings
from duequeue.cli import main
from duequeue.cli.parsing import parser_for
from duequeue.cli.serving import drain_of
from duequeue.contract.stage import until
from duequeue.server import app_for
from duequeue.server.running import DrainingServer, ServerSettings, listening_socket
from tests.callbacks.receiver import hangs, running_receiver
from tests.server.command import refused, serving
from tests.server.served import PATIENCE, Served
from tests.server.test_messages import offer
from tests.server.test_polling import poll


def test_sigterm_wakes_waiters_and_ends(tmp_path: Path) -> None:
    with serving(folder=tmp_path) as server, server.client() as http:
        with ThreadPoolExecutor(20) as pool:
            waiting = [
                pool.submit(lambda: http.post("/v1/queues/q:poll", json={"wait": 60}))
                for _ in range(20)
            ]
            until(lambda: "duequeue_waiters 20" in http.get("/metrics").text)
            assert server.read_line().startswith("token in ")
            assert server.terminate() == 0  # and sooner than after the minute of its clients
            for each in waiting:
                answer = each.result()
                assert answer.status_code == 200
                assert answer.json()["deliveries"] == []
                assert answer.headers["connection"] == "close"
        assert server.rest() == ""
    assert (tmp_path / "duequeue.db").exists()


def test_requests_in_flight_end(tmp_path: Path) -> None:
    """An upload that has begun when the server is told to stop is answered, and kept."""
    url = f"sqlite:///{tmp_path / 'q.db'}"
    server = Served(app_for(url))
    is_stopping = threading.Event()

    def lines() -> Iterator[bytes]:
        yield b'{"key": "a"}\n'
        is_stopping.wait(10)
        yield b'{"key": "b"}\n'

    with ThreadPoolExecutor(2) as pool, server.client() as http:
        headers = {"Content-Type": "application/x-ndjson"}
        upload = pool.submit(
            lambda: http.post("/v1/queues/q/messages", content=lines(), headers=headers)
        )
        until(lambda: any(each.users for each in server.service.queues.opened))
        stopped = pool.submit(server.stop)
        until(lambda: server.service.live.draining)
        is_stopping.set()
        assert upload.result().json() == {"outcomes": ["created", "created"]}
        stopped.result()
    with Queue.open(url, "q") as queue:
        assert queue.stats().total == 2


def test_a_server_goes_on_answering_while_it_drains(tmp_path: Path) -> None:
    """It is not ready at once, so that load balancers notice before connections are refused."""
    with serving("--drain", "1h", folder=tmp_path) as server, server.client() as http:
        with ThreadPoolExecutor(2) as pool:
            waiting = pool.submit(poll, http, "/v1/queues/q", wait=60)
            until(lambda: "duequeue_waiters 1" in http.get("/metrics").text)
            assert http.get("/readyz").status_code == 200
            server.process.send_signal(signal.SIGTERM)
            assert waiting.result()["deliveries"] == []
            answer = http.get("/readyz")
            assert (answer.status_code, answer.json()["status"]) == (503, "stopping")
            assert http.get("/healthz").status_code == 200
            # Connections end one by one, so that the next request may go to another server.
            assert answer.headers["connection"] == "close"
            coming = pool.submit(poll, http, "/v1/queues/q", wait=60)
            until(lambda: "duequeue_waiters 1" in http.get("/metrics").text)
            offer(http, "/v1/queues/q", "a")
            assert [each["key"] for each in coming.result()["deliveries"]] == ["a"]
        assert server.terminate() == 0  # a second signal does not wait for the hour
        with pytest.raises(httpx.ConnectError):
            http.get("/healthz")
        assert "closes in 3600 s; a second signal ends it at once" in server.rest()


def test_a_server_closes_after_the_time_to_drain(tmp_path: Path) -> None:
    with serving("--drain", "10ms", folder=tmp_path) as server:
        assert server.terminate() == 0
        assert "closes in 0.01 s" in server.rest()


@pytest.mark.parametrize(("words", "seconds"), [([], 3), (["--dev"], 0), (["--drain=1m"], 60)])
def test_how_long_a_server_drains(words: list[str], seconds: float) -> None:
    given = parser_for(["serve"]).parse_args(["serve", *words])
    assert drain_of(given) == timedelta(seconds=seconds)


def test_a_request_that_does_not_end_gets_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duequeue.server.running.GRACE_SECONDS", 0)
    server = Served(app_for("memory:stalled"))
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(
            b"POST /v1/queues/q/messages HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            b"Content-Type: application/x-ndjson\r\nContent-Length: 100\r\n\r\n"
        )
        until(lambda: any(each.users for each in server.service.queues.opened))
        server.stop()
        answer = client.makefile("rb").read().decode()
    assert answer.startswith("HTTP/1.1 503")
    assert "retry-after" in answer
    assert "urn:duequeue:stopping" in answer


def test_a_second_signal_ends_callbacks_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'q.db'}"
    with running_receiver() as receiver:
        target = receiver.will("/", hangs)
        body = {"queue": "q", "url": target, "timeout": "1h", "concurrency": 1}

        async def stop_twice() -> None:
            service = app_for(url, push=PushSettings(grace=timedelta(hours=1)))
            server = DrainingServer(service, ServerSettings())
            transport = httpx.ASGITransport(service)
            with listening_socket("127.0.0.1", 0) as listener:
                serving = asyncio.create_task(server.run_until_stopped(listener, lambda: None))
                async with httpx.AsyncClient(
                    transport=transport, base_url="http://localhost"
                ) as http:
                    assert (await http.put("/v1/endpoints/e", json=body)).status_code == 200
                    for key in "ab":
                        assert (await http.put(f"/v1/queues/q/messages/{key}")).status_code == 200
                    await asyncio.to_thread(receiver.wait_for_calls, 1)
                await asyncio.to_thread(until, lambda: queue.stats().leased == 2)
                server.stop()
                await asyncio.to_thread(until, lambda: queue.stats().due == 1)  # it closes now
                server.stop()
                async with asyncio.timeout(PATIENCE):
                    await serving

        with Queue.open(url, "q") as queue:
            asyncio.run(stop_twice())
            assert queue.stats().leased == 0


def test_in_a_closing_server_nobody_waits() -> None:
    server = Served(app_for("memory:draining"))
    with server.client() as http:
        server.call(server.service.live.close)
        assert http.get("/readyz").status_code == 503
        assert http.post("/v1/queues/q:poll", json={"wait": 60}).json()["deliveries"] == []
    server.stop()


def test_dev_has_a_token_and_a_clock(tmp_path: Path) -> None:
    with serving("--dev", folder=tmp_path) as server, server.client() as http:
        token = server.read_token()
        http.headers["Authorization"] = f"Bearer {token}"
        offer(http, "/v1/queues/q", "a", delay="30d")
        assert poll(http, "/v1/queues/q")["deliveries"] == []
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(lambda: poll(http, "/v1/queues/q", wait=20))
            until(lambda: "duequeue_waiters 1" in http.get("/metrics").text)
            assert http.post("/v1/clock:advance", json={"by": "31d"}).status_code == 200
            assert waiting.result()["deliveries"][0]["key"] == "a"
        assert http.get("/v1/queues", headers={"Authorization": "Bearer x"}).status_code == 401
        assert server.terminate() == 0
    assert list(tmp_path.iterdir()) == []


def test_dev_may_have_a_store(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'dev.db'}"
    with serving("--dev", "--url", url, folder=tmp_path) as server, server.client() as http:
        assert server.read_token().startswith("dq_")
        offer(http, "/v1/queues/q", "a", delay="30d")
        assert http.post("/v1/clock:advance", json={"by": "31d"}).status_code == 200
        assert poll(http, "/v1/queues/q")["deliveries"][0]["key"] == "a"
    with Queue.open(url, "q") as queue:
        assert queue.contains("a")


def test_the_store_may_come_from_the_configuration_file(tmp_path: Path) -> None:
    (tmp_path / "duequeue.toml").write_text('url = "sqlite:///named.db"')
    with serving(folder=tmp_path) as server, server.client() as http:
        offer(http, "/v1/queues/q", "a")
    assert (tmp_path / "named.db").exists()


def test_only_a_development_server_has_a_clock(tmp_path: Path) -> None:
    with serving(folder=tmp_path) as server, server.client() as http:
        assert http.post("/v1/clock:advance", json={"by": 1}).status_code == 404


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--host", "0.0.0.0"], "tokens are needed"),  # noqa: S104 - that is the point
        (["--host", "::"], "tokens are needed"),
        (["--token-file", "none.json"], "has no token yet"),
        (["--url", "http://127.0.0.1:8080"], "url must be that of a database"),
        (["--tls-cert", "x"], "go together"),
        (["--url", "nonsense:"], "names no store"),
        (["--lease", "0"], "lease"),
        (["--drain=-1s"], "drain must not be negative"),
    ],
)
def test_what_it_refuses_to_start_with(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DUEQUEUE_URL", raising=False)
    assert main(["serve", "--port", "0", *arguments]) == 1
    assert words in capsys.readouterr().err


def test_a_password_is_not_printed(tmp_path: Path) -> None:
    said = refused("--url", "postgresql://someone:my-secret@host:port/x", folder=tmp_path)
    assert said.startswith("duequeue: ")
    assert "my-secret" not in said


def test_a_port_in_use_is_named(tmp_path: Path, server: Served) -> None:
    said = refused("--port", str(server.port), folder=tmp_path)
    assert said == (
        f"duequeue: port: cannot listen at 127.0.0.1:{server.port}: Address already in use; "
        "stop the program that listens there, or choose another port\n"
    )


def test_an_address_of_another_machine_is_named(tmp_path: Path) -> None:
    said = refused("--dev", "--host", "192.0.2.1", folder=tmp_path)  # a net that nobody has
    assert said.startswith("duequeue: host: cannot listen at 192.0.2.1:")
    assert said.endswith("; name an address of this machine\n")
