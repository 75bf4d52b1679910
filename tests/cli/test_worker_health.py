"""`duequeue worker --health-port` says over HTTP whether the worker works."""

import socket
from contextlib import closing
from functools import partial
from signal import SIGTERM
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from duequeue import Queue, StoreUnavailable
from duequeue.cli.worker.health import problem_of
from duequeue.cli.worker.services import ServedHandler
from duequeue.cli.worker.serving import RunningConsumers, running_consumers
from duequeue.contract.stage import until
from duequeue.process import contact
from duequeue.process.contact import contact_with
from tests.cli.command import Worker
from tests.fixtures.servers import free_port


def answer(port: int) -> tuple[int, str]:
    """Ask, and return 0 if nobody listens yet."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/healthz", timeout=10) as reply:
            return reply.status, reply.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError:
        return 0, ""


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_worker_that_works_answers_200(url: str, orders: Queue[Any], processes: str) -> None:
    orders.offer("a", 1)
    port = free_port()
    arguments = (f"--health-port={port}", f"--processes={processes}")
    with Worker("tell", url, *arguments) as worker:
        until(lambda: answer(port) == (200, "ok\n"))
        worker.send(SIGTERM)
        assert worker.end()[0] == 0
    assert answer(port) == (0, "")


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_worker_that_waits_for_its_database_answers_503(processes: str) -> None:
    port = free_port()
    arguments = (f"--health-port=127.0.0.1:{port}", f"--processes={processes}")
    with Worker("tell", "postgresql://127.0.0.1:1/app", *arguments) as worker:
        until(lambda: answer(port) == (503, "the worker is starting\n"))
        worker.send(SIGTERM)
        assert worker.end()[0] == 0


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_port_that_is_taken(url: str) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        with Worker("tell", url, f"--health-port={port}") as worker:
            status, printed = worker.end()
    assert status == 1
    assert f"health-port: cannot listen at 127.0.0.1:{port}" in printed


def test_a_lost_store_and_a_stopped_consumer_are_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    with Queue.open("memory:health", "orders") as queue:
        opening = queue._opening  # noqa: SLF001 - as the worker finds it
        assert opening is not None
        service = ServedHandler(lambda _: None, opening, queue, {})
        reached = contact_with(opening.backend.place, opening.backend.address)
        with running_consumers([service], lambda _: None) as consumers:
            problem = partial(problem_of, consumers, [service])
            assert problem() == ""
            monkeypatch.setattr(contact, "SILENT_SECONDS", 0.0)
            reached.failed(StoreUnavailable("nobody answers"))
            assert problem() == "memory:health is unavailable"
            reached.regained()
            reached.reached_at -= 3600
            assert problem() == "memory:health was not reached for 1.0 h"
            queue.stats()
            assert problem() == ""
        assert problem() == "a consumer has stopped"
        assert problem_of(RunningConsumers([]), []) == ""
