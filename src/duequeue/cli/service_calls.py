"""Calls of the HTTP API: to a server, or to the same service in this process on a database."""

import asyncio
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, Protocol
from urllib.parse import quote

import msgspec

from duequeue.backends import is_server, server_requests
from duequeue.cli.opening import NothingFound, Place
from duequeue.clock import SystemClock
from duequeue.errors import InvalidArgument, MissingExtra, StoreError, StoreUnavailable

_NOT_FOUND, _UNAVAILABLE, _FIRST_ERROR = 404, 503, 400


class Calls(Protocol):
    """Something that answers requests."""

    def __call__(self, method: str, path: str, body: object = None) -> Any:
        """Send a request, and return the answer; raise if it is an error."""


@contextmanager
def calls_at(place: Place, *, create: bool = False) -> Iterator[Calls]:
    """Return what answers requests for a database or a server, until the end of the block.

    Unless it may create them, the database and its tables must exist.
    """
    try:
        yield from _calls_at(place, create=create)
    except UnicodeEncodeError as error:
        text = f"{error.object!r} is not valid Unicode text"
        raise InvalidArgument("argument", text=text) from error


def _calls_at(place: Place, *, create: bool) -> Iterator[Calls]:
    if is_server(place.url):
        yield _ServerCalls(place)
        return
    if not create:
        place.queues()  # raises
    with asyncio.Runner() as runner:
        service = _own_service(place.url)
        try:
            runner.run(service.queues.start())  # its error names the cause, and an answer does not
            yield _OwnCalls(service, runner)
        finally:
            runner.run(service.close())


def path_of(*parts: str) -> str:
    """Return a path in which each part stays one part."""
    return "/" + "/".join(quote(part, safe="") for part in parts)


def _own_service(url: str) -> Any:
    """Return the service on a database; it leaves the crons alone, because it ends soon."""
    try:
        from duequeue.parts import QueueSettings
        from duequeue.server.access import Access
        from duequeue.server.app import Service
        from duequeue.server.limits import Limits
    except ImportError as error:
        raise MissingExtra(
            "this command needs more packages: pip install 'duequeue[server]'"
        ) from error
    settings = QueueSettings(url, SystemClock(), history=False)
    return Service(settings, Access(None, required=False, trusted=True), Limits(), crons=False)


class _ServerCalls:
    def __init__(self, place: Place) -> None:
        self._requests = server_requests(place.url, place.token)

    def __call__(self, method: str, path: str, body: object = None) -> Any:
        return _read(*self._requests.send(method, path, _encoded(body)))


class _OwnCalls:
    def __init__(self, service: Any, runner: asyncio.Runner) -> None:
        self._service = service
        self._runner = runner

    def __call__(self, method: str, path: str, body: object = None) -> Any:
        sent: list[MutableMapping[str, Any]] = []
        data = _encoded(body) or b""

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": data}

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        raw, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": raw,
            "raw_path": raw.encode(),
            "query_string": query.encode(),
            "headers": [(b"content-type", b"application/json")],
            "client": None,
        }
        self._runner.run(self._service(scope, receive, send))
        content = b"".join(each.get("body", b"") for each in sent[1:])
        return _read(sent[0]["status"], content)


def _encoded(body: object) -> bytes | None:
    return None if body is None else msgspec.json.encode(body)


def _read(status: int, content: bytes) -> Any:
    try:
        found = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = {}
    if status < _FIRST_ERROR:
        return found
    problem = found if isinstance(found, dict) else {}
    words = problem.get("detail") or f"the server answered {status}; is it a DueQueue server?"
    if status == _NOT_FOUND:
        raise NothingFound(words)
    if status >= _UNAVAILABLE:
        raise StoreUnavailable(words)
    if "argument" in problem:
        raise InvalidArgument(problem["argument"], text=words)
    raise StoreError(words)
