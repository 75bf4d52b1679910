"""A tiny HTTP endpoint that says whether a worker works."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic

from duequeue.cli.worker.services import ServedHandler
from duequeue.cli.worker.serving import RunningConsumers
from duequeue.errors import InvalidArgument
from duequeue.instants import words_for
from duequeue.process.contact import contact_with

STARTING = "the worker is starting"
# A store that is busy may answer this much later than planned.
SLACK_SECONDS = 15.0


def problem_of(consumers: RunningConsumers, services: list[ServedHandler]) -> str:
    """Return what is wrong with the consumers of this process, or nothing."""
    if consumers.stopped:
        return "a consumer has stopped"
    return next(filter(None, map(_problem_of_store, services)), "")


def _problem_of_store(service: ServedHandler) -> str:
    """Return a problem if a store was not reached recently, or nothing.

    An idle consumer looks at its store in each poll interval, and a busy one extends its leases.
    """
    backend = service.opening.backend
    contact = contact_with(backend.place, backend.address)
    if contact.is_lost:
        return f"{backend.address} is unavailable"
    silent = monotonic() - contact.reached_at
    longest = max(3 * service.opening.poll_interval, service.lease) / 1000 + SLACK_SECONDS
    if silent > longest:
        return f"{backend.address} was not reached for {words_for(timedelta(seconds=silent))}"
    return ""


@contextmanager
def health_endpoint(address: tuple[str, int] | None, problem: Callable[[], str]) -> Iterator[None]:
    """Answer requests at an address, if there is one: 200 if all is well, and 503 otherwise."""
    if address is None:
        yield
        return
    try:
        server = HealthServer(address, problem)
    except OSError as error:
        host, port = address
        raise InvalidArgument(
            "health-port", text=f"health-port: cannot listen at {host}:{port}: {error}"
        ) from error
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()


class HealthServer(ThreadingHTTPServer):
    """A server that asks a function what is wrong."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], problem: Callable[[], str]) -> None:
        self.problem = problem
        super().__init__(address, HealthRequest)


class HealthRequest(BaseHTTPRequestHandler):
    """One request; its path does not matter."""

    server: HealthServer
    timeout = 5.0

    def do_GET(self) -> None:
        """Answer with a status and a line of text."""
        self.wfile.write(self._answer())

    def do_HEAD(self) -> None:
        """Answer with a status."""
        self._answer()

    def _answer(self) -> bytes:
        problem = self.server.problem()
        text = f"{problem or 'ok'}\n".encode()
        self.send_response(503 if problem else 200)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        return text

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Log nothing, because probes come every few seconds."""
