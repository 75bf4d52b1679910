"""What commands that run until they are stopped log, as text and as JSON."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Any

import pytest

from duequeue import Queue
from duequeue.contract.stage import until
from tests.cli.command import Worker, run
from tests.server.command import refused, serving

JSON = ("--log-format", "json")
LOGGING_TO_A_FILE = ("sh", "-c", 'exec "$@" 2>log', "sh")


def records(lines: Iterable[str]) -> list[dict[str, Any]]:
    """Read a log, each line of which must be an object."""
    found = [json.loads(line) for line in lines]
    assert all({"time", "level", "logger", "message"} <= each.keys() for each in found)
    return found


def stop(worker: Worker) -> list[str]:
    worker.send(SIGTERM)
    status, printed = worker.end()
    assert status == 0, printed
    return printed.splitlines()


def test_a_worker_logs_json_with_tracebacks_inside(url: str, orders: Queue[Any]) -> None:
    orders.offer("a", 1)
    with Worker("fail", url, *JSON, "--log-events", "--max-attempts", "1") as worker:
        until(lambda: orders.stats().buried == 1)
        found = records(stop(worker))
    (failed,) = [each for each in found if "traceback" in each]
    assert (failed["level"], failed["logger"]) == ("ERROR", "duequeue.consumer")
    assert failed["traceback"].endswith("LookupError: a")
    (handled,) = [each for each in found if each.get("event") == "Handled"]
    assert (handled["queue_name"], handled["key"], handled["outcome"]) == ("orders", "a", "buried")
    assert found[0]["message"].startswith("consuming orders at ")
    assert found[-1]["message"] == "orders: stopped, 1 handled, 1 failed, 1 buried"


def test_the_processes_of_a_worker_log_json_too(url: str, orders: Queue[Any]) -> None:
    with Worker("fail", url, *JSON, "--log-events", "--processes", "2") as worker:
        orders.offer("a", 1)
        coming = (json.loads(line) for line in worker.lines())
        handled = next(each for each in coming if each.get("event") == "Handled")
        os.kill(handled["process"], SIGKILL)
        killed = f"process {handled['process']} exited with -9 and is replaced"
        assert next(each for each in coming if each["message"] == killed)["level"] == "ERROR"
        assert records(stop(worker))


@pytest.mark.parametrize("handler", ["tell", "tell_async"])
def test_a_worker_logs_what_it_handled_if_asked_to(
    url: str, orders: Queue[Any], handler: str
) -> None:
    logged = "INFO duequeue.events: Handled queue_name='orders' key='a' attempt=1 duration="
    for options, times in ((["--log-events"], 1), ([], 0)):
        orders.offer("a", 1)
        with Worker(handler, url, *options) as worker:
            worker.await_lines("handled a")
            until(lambda: orders.stats().total == 0)
            lines = stop(worker)
        assert sum(logged in line for line in lines) == times
        assert not [line for line in lines if "Delivered" in line]


def test_a_server_logs_json(tmp_path: Path) -> None:
    arguments = (*JSON, "--access-log")
    with serving(*arguments, folder=tmp_path, under=LOGGING_TO_A_FILE) as server:
        with server.client() as http:
            assert http.get("/healthz").status_code == 200
        assert server.terminate() == 0
    found = records((tmp_path / "log").read_text().splitlines())
    assert any("GET /healthz" in each["message"] for each in found)


def test_errors_of_the_command_itself_are_records_too(tmp_path: Path) -> None:
    (said,) = records(refused(*JSON, "--tls-cert", "x", folder=tmp_path).splitlines())
    assert said["message"] == "tls-cert and tls-key go together"
    for words in (["push", "--url", "memory:"], ["worker", "no_such_module"]):
        ended = run(*words, *JSON)
        assert ended.returncode == 1
        (said,) = records(ended.stderr.splitlines())
        assert said["level"] == "ERROR"
