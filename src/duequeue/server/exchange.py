"""One request and its answer."""

import asyncio
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from urllib.parse import parse_qsl

from duequeue.queue_names import OWN_QUEUES
from duequeue.server import problems
from duequeue.server.access import check_scope
from duequeue.server.departures import ClientGone, unless_gone
from duequeue.server.formats import JSON, Format, accepted_format, format_of
from duequeue.server.payloads import JSON as JSON_TYPE
from duequeue.server.problems import (
    UNREADABLE,
    Problem,
    invalid,
    malformed,
    too_large,
    undecodable,
)
from duequeue.server.times import read_instant
from duequeue.server.tokens import Grant, Scope, unauthorized
from duequeue.suggestions import advice, suggestion

if TYPE_CHECKING:
    from duequeue.server.app import Service
    from duequeue.server.queues import ServedQueue
    from duequeue.server.routing import Match

Scoped: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

T = TypeVar("T")

_NUMBER = re.compile(r"-?[0-9]{1,19}")
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,100}")
NDJSON = b"application/x-ndjson"
# What many clients send where there is nothing to send.
_NOTHING = b"{}"
SLOWEST_BYTES_PER_SECOND = 16 * 1024


class Exchange:
    """A request on its way through the service."""

    __slots__ = (
        "_query",
        "_scope",
        "grant",
        "headers",
        "match",
        "method",
        "receive",
        "request_id",
        "send",
        "service",
        "started",
        "status",
        "used",
    )

    grant: Grant
    match: "Match"

    def __init__(self, service: "Service", scope: Scoped, receive: Receive, send: Send) -> None:
        self.service = service
        self.receive = receive
        self.send = send
        self.method: str = scope["method"]
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.status = 0
        self.started = False
        self.used: list[ServedQueue] = []
        self._scope = scope
        self._query: dict[str, str] | None = None
        given = self.headers.get(b"x-request-id", b"")
        self.request_id = given.decode() if _REQUEST_ID.fullmatch(given) else _new_request_id()

    @property
    def client(self) -> str | None:
        """The address that the request comes from, if the server knows it."""
        client = self._scope.get("client")
        return None if client is None else client[0]

    @property
    def path(self) -> Mapping[str, str]:
        """The decoded parts of the path."""
        return self.match.parts

    @property
    def query(self) -> dict[str, str]:
        """The parameters after the question mark, each of which may come once; others raise."""
        if self._query is None:
            given: bytes = self._scope["query_string"]
            self._query = self._read_query(given) if given else {}
        return self._query

    def _read_query(self, given: bytes) -> dict[str, str]:
        try:
            pairs = parse_qsl(given.decode("ascii"), keep_blank_values=True, errors="strict")
        except ValueError:
            raise malformed("the query is not valid UTF-8") from None
        known = self.match.route.query_names
        found = dict[str, str]()
        for name, text in pairs:
            if name not in known:
                hint = advice(name, sorted(known)) if known else "it has none"
                raise invalid(name[:100], f"{name[:100]!r} is not a parameter of this path; {hint}")
            if name in found:
                raise invalid(name, f"{name} was given twice")
            found[name] = text
        return found

    @property
    def request_format(self) -> Format:
        """The format of the request's body."""
        return format_of(self.headers.get(b"content-type"))

    @property
    def answer_format(self) -> Format:
        """The format of the answer, for the routes that have a choice."""
        return accepted_format(self.headers.get(b"accept"), self.request_format)

    @property
    def type_name(self) -> str:
        """The payload type of the queue."""
        return self.query.get("type", JSON_TYPE)

    def flag(self, name: str, *, otherwise: bool) -> bool:
        """Read a parameter that is true or false."""
        return read_flag(self.query.get(name), name, otherwise=otherwise)

    def number(self, name: str, otherwise: int, least: int, most: int) -> int:
        """Read a parameter that is a number in a range."""
        text = self.query.get(name)
        if text is None:
            return otherwise
        if not (_NUMBER.fullmatch(text) and least <= int(text) <= most):
            raise invalid(name, f"{name} must be a number from {least} to {most}")
        return int(text)

    def instant(self, name: str) -> datetime | None:
        """Read a parameter that is an instant."""
        text = self.query.get(name)
        return None if text is None else read_instant(text, name)

    def check(self, scope: Scope, queue: str) -> None:
        """Raise unless the sender may do this."""
        check_scope(self.grant, scope, queue)

    def check_token_again(self) -> None:
        """Raise if the token was revoked or has expired while the request waited."""
        if not self.service.access.is_valid(self.grant):
            raise unauthorized("the token was revoked or has expired")

    async def queue(self, *, create: bool = False) -> "ServedQueue":
        """Return the queue that the path and the type name."""
        return await self.use(self.path["queue"], self.type_name, create=create)

    async def use(
        self, name: str, type_name: str = JSON_TYPE, *, create: bool = False
    ) -> "ServedQueue":
        """Return a queue, and keep it open until the answer was sent.

        Unless the request may create it, a queue that does not exist yet is read as an empty one,
        or refused if this server creates none.
        """
        queues = self.service.queues
        creates = queues.settings.create
        if (create and creates) or await queues.knows(name, type_name):
            found = await queues.get(name, type_name, self.grant.id)
        elif creates:
            found = await queues.empty(name, type_name)
        else:
            raise await self._no_queue(name, type_name)
        found.users += 1
        self.used.append(found)
        return found

    async def check_queue(self, name: str, type_name: str = JSON_TYPE) -> None:
        """Raise if a queue does not exist and this server creates none."""
        queues = self.service.queues
        if not (queues.settings.create or await queues.knows(name, type_name)):
            raise await self._no_queue(name, type_name)

    async def look(
        self, of: object, read: Callable[[], Awaitable[T]], *, shares: bool = False
    ) -> T:
        """Read something in its turn, unless the client goes away; see `reads.py`.

        What is read of a queue that does not exist must not be shared with those who ask after it
        was made.
        """
        reads = self.service.reads
        begin = reads.shared if shares else reads.alone
        return await unless_gone(self.receive, begin(of, self.grant.id, read))

    async def _no_queue(self, name: str, type_name: str) -> Problem:
        """Return what to answer about a queue that does not exist, and which may be meant."""
        kinds = await self.service.queues.kinds()
        known = {each for each, _ in kinds if self.grant.allows_something(each)}
        types = [repr(each_type) for each, each_type in kinds if each == name and each in known]
        if types:
            detail = f"the queue {name!r} has no payload type {type_name[:100]!r}, but"
            return Problem(404, "no-such-queue", f"{detail} {', '.join(types)}", argument="type")
        meant = suggestion(name, known - OWN_QUEUES)
        detail = f"there is no queue {name!r}, and this server makes none"
        detail = f"{detail}; {meant}" if meant else detail
        return Problem(404, "no-such-queue", detail, argument="queue")

    async def chunks(self) -> AsyncIterator[bytes]:
        """Receive the body; a client that sends too slowly is given up."""
        left = self.service.limits.body_seconds
        more = True
        while more:
            began = monotonic()
            chunk, more = await self._received(left)
            left += began - monotonic() + len(chunk) / SLOWEST_BYTES_PER_SECOND
            yield chunk

    async def _received(self, seconds: float) -> tuple[bytes, bool]:
        """Receive a part of the body, and return whether more of it follows."""
        try:
            async with asyncio.timeout(seconds):
                message = await self.receive()
        except TimeoutError:
            close = {b"connection": b"close"}
            raise Problem(408, "too-slow", "the body came too slowly", headers=close) from None
        if message["type"] == "http.disconnect":
            raise ClientGone
        return message.get("body", b""), message.get("more_body", False)

    async def body(self) -> bytes:
        """Receive the whole body."""
        most = self.service.limits.body_bytes
        length = self.headers.get(b"content-length")
        if length is not None and length.isdigit() and int(length) > most:
            raise _too_long(most)
        parts, size = [], 0
        async for chunk in self.chunks():
            parts.append(chunk)
            size += len(chunk)
            if size > most:
                raise _too_long(most)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def refuse_body(self) -> None:
        """Read the body of a request that has nothing to say in it, or raise."""
        sent = b""
        async for chunk in self.chunks():
            sent += chunk
            if not _NOTHING.startswith(sent):
                problem = invalid("body", "this path has no body; leave it out")
                problem.headers[b"connection"] = b"close"
                raise problem

    async def decoded(self, kind: Any) -> Any:
        """Receive a body of this type; an empty body is one without any field."""
        body = await self.body()
        form = self.request_format
        try:
            return form.decode(body or form.encode({}), kind)
        except UNREADABLE as error:
            raise undecodable(error, kind=kind) from None

    async def answer(self, value: object, status: int = 200, form: Format = JSON) -> None:
        """Send an answer."""
        await self.send_bytes(form.encode(value), form.content_type, status)

    async def send_bytes(
        self,
        body: bytes,
        content_type: bytes,
        status: int = 200,
        headers: Mapping[bytes, bytes] | None = None,
    ) -> None:
        """Send an answer that is written already."""
        length = {b"content-length": b"%d" % len(body)}
        await self.send_head(content_type, status, {**length, **(headers or {})})
        await self.send({"type": "http.response.body", "body": body})

    async def send_head(
        self, content_type: bytes, status: int, headers: Mapping[bytes, bytes]
    ) -> None:
        """Begin an answer."""
        self.status, self.started = status, True
        if self.service.live.draining:
            headers = {**headers, b"connection": b"close"}
        await self.send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [
                    (b"content-type", content_type),
                    (b"x-request-id", self.request_id.encode()),
                    (b"cache-control", b"no-store"),
                    *headers.items(),
                ],
            }
        )

    async def refuse(self, problem: Problem) -> None:
        """Send an error."""
        body = problem.encoded(self.request_id)
        await self.send_bytes(body, problems.CONTENT_TYPE, problem.status, problem.headers)


def _new_request_id() -> str:
    return f"{random.getrandbits(64):016x}"


def _too_long(most: int) -> Problem:
    problem = too_large(f"the body may have at most {most} bytes")
    problem.headers[b"connection"] = b"close"
    return problem


def read_flag(text: str | None, name: str, *, otherwise: bool) -> bool:
    """Read true or false."""
    if text is None:
        return otherwise
    if text not in {"true", "false"}:
        raise invalid(name, f"{name} must be true or false")
    return text == "true"
