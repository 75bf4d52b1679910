"""The endpoints of a server, through its HTTP API, or of a database, through the library."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol
from urllib.parse import quote, urlencode

import msgspec

from duequeue.backends import is_server, server_requests
from duequeue.cli.opening import NothingFound, Place
from duequeue.errors import InvalidArgument, MissingExtra, StoreError, StoreUnavailable

_NOT_FOUND, _UNAVAILABLE, _FIRST_ERROR = 404, 503, 400


class Endpoints(Protocol):
    """What the commands do with endpoints; each is shown as the HTTP API shows it."""

    def all(self, queue: str | None) -> list[dict[str, Any]]:
        """List the endpoints of all queues, or of one."""

    def get(self, identity: str) -> dict[str, Any]:
        """Return one endpoint; raise if there is none."""

    def put(self, identity: str, definition: dict[str, Any]) -> dict[str, Any]:
        """Define an endpoint, or change it."""

    def rotate(self, identity: str, asked: dict[str, Any]) -> dict[str, Any]:
        """Sign with a new secret."""

    def remove(self, identity: str) -> None:
        """Remove an endpoint."""

    def enable(self, identity: str) -> bool:
        """Call an endpoint again, and return whether it was disabled."""

    def disable(self, identity: str, reason: str) -> bool:
        """Stop calling an endpoint, and return whether it was enabled."""


@contextmanager
def endpoints_at(place: Place, *, create: bool = False) -> Iterator[Endpoints]:
    """Return the endpoints of a database or a server, until the end of the block.

    Unless it may create them, the database and its tables must exist.
    """
    try:
        if is_server(place.url):
            yield _OfServer(place)
            return
        try:
            from duequeue.cli.own_endpoints import endpoints_in
        except ImportError as error:
            raise MissingExtra(
                "this command needs more packages: pip install 'duequeue[callbacks]'"
            ) from error
        if not create:
            place.queues()  # raises
        with endpoints_in(place.url) as found:
            yield found
    except UnicodeEncodeError as error:
        text = f"{error.object!r} is not valid Unicode text"
        raise InvalidArgument("argument", text=text) from error


class _OfServer:
    def __init__(self, place: Place) -> None:
        self._requests = server_requests(place.url, place.token)

    def all(self, queue: str | None) -> list[dict[str, Any]]:
        query = "" if queue is None else "?" + urlencode({"queue": queue})
        found: list[dict[str, Any]] = self._call("GET", f"/v1/endpoints{query}")["endpoints"]
        return found

    def get(self, identity: str) -> dict[str, Any]:
        return self._call("GET", _path(identity))

    def put(self, identity: str, definition: dict[str, Any]) -> dict[str, Any]:
        return self._call("PUT", _path(identity), definition)

    def rotate(self, identity: str, asked: dict[str, Any]) -> dict[str, Any]:
        return self._call("POST", f"{_path(identity)}:rotate-secret", asked)

    def remove(self, identity: str) -> None:
        self._call("DELETE", _path(identity))

    def enable(self, identity: str) -> bool:
        return bool(self._call("POST", f"{_path(identity)}:enable")["changed"])

    def disable(self, identity: str, reason: str) -> bool:
        asked = {"reason": reason}
        return bool(self._call("POST", f"{_path(identity)}:disable", asked)["changed"])

    def _call(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        data = None if body is None else msgspec.json.encode(body)
        return _read(*self._requests.send(method, path, data))


def _path(identity: str) -> str:
    return f"/v1/endpoints/{quote(identity, safe='')}"


def _read(status: int, content: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = {}
    if status < _FIRST_ERROR:
        answer: dict[str, Any] = found
        return answer
    problem = found if isinstance(found, dict) else {}
    words = problem.get("detail") or f"the server answered {status}; is it a DueQueue server?"
    if status == _NOT_FOUND:
        raise NothingFound(words)
    if status >= _UNAVAILABLE:
        raise StoreUnavailable(words)
    if "argument" in problem:
        raise InvalidArgument(problem["argument"], text=words)
    raise StoreError(words)
