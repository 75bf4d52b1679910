"""The device cloud, with a gateway that notes what it gets."""

import importlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

import httpx
import pytest

from duequeue.contract.stage import until
from duequeue.testing import drain
from examples.devices import gateway as printing

ROOT = Path(__file__).parents[2]


class Gateway(ThreadingHTTPServer):
    """Knows every device but heater-2."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), GatewayAnswer)
        self.reached: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class GatewayAnswer(BaseHTTPRequestHandler):
    """Answers one instruction."""

    server: Gateway

    def do_POST(self) -> None:
        device = self.path.rpartition("/")[2]
        self.rfile.read(int(self.headers["content-length"]))
        self.server.reached.append(device)
        self.send_response(404 if device == "heater-2" else 204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with Gateway() as gateway, serving(gateway):
        yield gateway


@contextmanager
def serving(server: ThreadingHTTPServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


@pytest.fixture
def cloud(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ModuleType]:
    """The handlers, on a database of their own."""
    monkeypatch.setenv("DUEQUEUE_URL", f"sqlite:///{tmp_path / 'devices.db'}")
    monkeypatch.setenv("DEVICE_GATEWAY", gateway.url)
    monkeypatch.delitem(sys.modules, "examples.devices.handlers", raising=False)
    handlers = importlib.import_module("examples.devices.handlers")
    yield handlers
    handlers.mornings.close()
    handlers.instructions.close()


def test_a_morning_reaches_every_device(cloud: ModuleType, gateway: Gateway) -> None:
    assert cloud.mornings.cron.run_now("wake/lima")
    assert drain(cloud.mornings, cloud.plan) == 1
    assert drain(cloud.instructions, cloud.push) == 3
    assert sorted(gateway.reached) == ["lamp-1", "lamp-2", "lamp-3"]


def test_an_unknown_device_is_buried_at_once(cloud: ModuleType) -> None:
    assert cloud.mornings.cron.run_now("wake/berlin")
    drain(cloud.mornings, cloud.plan)
    drain(cloud.instructions, cloud.push, raise_errors=False)
    (burial,) = cloud.instructions.buried(10)
    assert "heater-2" in burial.reason
    assert burial.attempts == 1


def test_both_fleets_wake_up_within_a_day(cloud: ModuleType) -> None:
    for fleet in cloud.FLEETS:
        (found,) = [each for each in cloud.mornings.cron.list() if each.prefix == f"wake/{fleet}"]
        assert found.next_tick is not None
    assert cloud.mornings.stats().future >= 2


def test_one_worker_serves_both_handlers(cloud: ModuleType, gateway: Gateway) -> None:
    cloud.mornings.cron.run_now("wake/lima")
    command = [sys.executable, "-m", "duequeue", "worker", "examples.devices.handlers"]
    with subprocess.Popen(command, cwd=ROOT, env=os.environ, stderr=subprocess.PIPE) as worker:
        try:
            until(lambda: len(gateway.reached) == 3 or worker.poll() is not None)
        finally:
            worker.send_signal(signal.SIGTERM)
            _, errors = worker.communicate(timeout=60)
    assert sorted(gateway.reached) == ["lamp-1", "lamp-2", "lamp-3"], errors.decode()
    assert worker.returncode == 0, errors.decode()
    assert cloud.instructions.stats().total == 0


def test_an_instruction_is_not_pushed_after_an_hour(cloud: ModuleType) -> None:
    cloud.mornings.cron.run_now("wake/lima")
    drain(cloud.mornings, cloud.plan)
    (first, *_) = cloud.instructions.list().messages
    assert first.expires_at - first.due_at == timedelta(hours=1)


def test_a_fleet_can_be_woken_from_another_shell(cloud: ModuleType) -> None:
    woken = wake("lima")
    assert (woken.returncode, woken.stdout) == (0, "It is morning in lima.\n"), woken.stderr
    assert drain(cloud.mornings, cloud.plan) == 1
    keys = [message.key.rpartition("/")[2] for message in cloud.instructions.list().messages]
    assert sorted(keys) == ["lamp-1", "lamp-2", "lamp-3"]


def test_an_unknown_fleet_is_not_woken(cloud: ModuleType) -> None:
    woken = wake("paris")
    assert (woken.returncode, woken.stderr) == (1, "Name one of these fleets: lima, berlin.\n")
    assert drain(cloud.mornings, cloud.plan) == 0


def wake(fleet: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "examples.devices.wake", fleet]
    return subprocess.run(
        command, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False, timeout=60
    )


def test_the_gateway_prints_what_it_gets(capsys: pytest.CaptureFixture[str]) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), printing.Gateway) as server, serving(server):
        url = f"http://127.0.0.1:{server.server_address[1]}/devices/lamp-1"
        assert httpx.post(url, json={"command": "wake up"}).status_code == 204
    assert capsys.readouterr().out == '/devices/lamp-1 {"command":"wake up"}\n'
