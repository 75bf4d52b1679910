"""The device cloud, with a gateway that notes what it gets."""

import importlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

import pytest

from duequeue.contract.stage import until
from duequeue.testing import drain

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
    with Gateway() as gateway:
        thread = threading.Thread(target=gateway.serve_forever)
        thread.start()
        yield gateway
        gateway.shutdown()
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
    drain(cloud.instructions, cloud.push)
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
