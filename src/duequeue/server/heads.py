"""The part of a request that is not its body: it is limited before anybody has looked at it."""

import secrets
from http import HTTPStatus
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from duequeue.server.limits import Limits
from duequeue.server.problems import CONTENT_TYPE, Problem, malformed

# A head is counted in parts of this size, so a few bytes of the request before it may count too.
PART_BYTES = 4096
# How many requests may follow one that is being answered.
MOST_PIPELINED = 100
# As long as they have fewer bytes, we go on reading, which also shows that the client has gone.
MOST_BYTES_AHEAD = 64 * 1024
_BODY_FIELDS = {b"content-length", b"transfer-encoding"}


class UnfinishedHeads:
    """How many bytes of heads all connections together hold, which is limited too."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._bytes = 0

    def changed(self, by: int) -> None:
        """Note that a connection holds more bytes, or fewer."""
        self._bytes += by

    @property
    def are_too_many(self) -> bool:
        """Whether the connections hold more than they may."""
        return self._bytes > self._most


class LimitedProtocol(HttpToolsProtocol):
    """HTTP/1.1 that refuses long heads, URLs and trailers, and answers each refusal as a problem.

    httptools joins the parts of a line until it ends, and uvicorn keeps all lines of a head.
    """

    limits = Limits()
    heads = UnfinishedHeads(limits.unfinished_heads_bytes)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._problem: Problem | None = None
        self._fields = 0
        self._unfinished = 0  # bytes that belong neither to a head that is complete nor to a body
        self._held = 0
        self._ahead = 0
        self._has_head = False
        self._is_last = False

    def data_received(self, data: bytes) -> None:
        """Read a part of a request, or of several."""
        if self._is_last:
            return
        try:
            self._read(data)
        except httptools.HttpParserUpgrade:
            self._answer_without_upgrade()
        except httptools.HttpParserError:
            self._refuse(self._problem or malformed("the request is not valid HTTP/1.1"))
        except Problem as problem:
            self._refuse(problem)

    def connection_lost(self, exc: Exception | None) -> None:
        """Hold nothing any more, not even by a cycle, because garbage is collected seldom."""
        self._hold(0)
        super().connection_lost(exc)
        self.pipeline.clear()
        self._problem = None

    def on_message_begin(self) -> None:
        """Begin to count the fields of a head; a mere line break would not end an idle time."""
        self._unset_keepalive_if_required()
        if len(self.pipeline) >= MOST_PIPELINED:
            self._stop(Problem(429, "too-many-requests", "too many requests were pipelined"))
        self._fields = 0
        self._has_head = False
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Read a part of the URL."""
        super().on_url(url)
        most = self.limits.url_bytes
        if len(self.url) > most:
            self._stop(Problem(414, "url-too-long", f"the URL may have at most {most} bytes"))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a field of the head; count those of the trailers, which mean nothing here."""
        self._fields += 1
        most = self.limits.head_fields
        if self._fields > most:
            self._stop(_too_large(f"a request may have at most {most} header fields"))
        if not self._has_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start to answer."""
        self._unset_keepalive_if_required()
        self._unfinished = 0
        self._has_head = True
        names = [name for name, _ in self.headers]
        hosts = names.count(b"host")
        if hosts > 1 or (hosts == 0 and self.parser.get_http_version() == "1.1"):
            self._stop(malformed("a request must have exactly one Host header"))
        if self.parser.should_upgrade() and not _BODY_FIELDS.isdisjoint(names):
            # The parser would take the body for the other protocol, and skip it.
            self._stop(malformed("a request with a body may not have an Upgrade header"))
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Pass on a part of the body, which the app limits."""
        self._unfinished = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Expect another request."""
        self._unfinished = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Keep nothing of a request that was answered, and read no more while others follow it."""
        super().on_response_complete()
        if self.cycle.response_complete:
            self.cycle.scope.clear()  # type: ignore[attr-defined]  # a dict, as which it is typed
        self._ahead = 0
        if self.pipeline:
            self.flow.pause_reading()

    def _read(self, data: bytes) -> None:
        view = memoryview(data)
        most = self.limits.head_bytes
        for start in range(0, len(data), PART_BYTES):
            part = view[start : start + PART_BYTES]
            self.parser.feed_data(part)
            self._unfinished += len(part)
            if self._unfinished > most + PART_BYTES:
                raise _too_large(f"the head or the trailers may have at most {most} bytes")
        self._read_ahead(len(data))
        self._hold(self._unfinished if self._unfinished > PART_BYTES else 0)
        if self._held and self.heads.are_too_many:
            detail = "too many requests with long heads arrive at the same time; try again"
            raise Problem(503, "busy", detail, headers={b"retry-after": b"1"})

    def _read_ahead(self, size: int) -> None:
        """Read on although a request follows, for which uvicorn has just paused."""
        if self.pipeline:
            self._ahead += size
            if self._ahead <= MOST_BYTES_AHEAD:
                self.flow.resume_reading()

    def _hold(self, held: int) -> None:
        self.heads.changed(held - self._held)
        self._held = held

    def _answer_without_upgrade(self) -> None:
        """Answer a request for another protocol in this one, in which nothing can follow it."""
        self._is_last = True
        self.cycle.keep_alive = False

    def _stop(self, problem: Problem) -> None:
        """Leave the parser, which turns exceptions into its own."""
        self._problem = problem
        raise problem

    def _refuse(self, problem: Problem) -> None:
        """Answer with a problem and close, unless the answer to another request is under way."""
        self._is_last = True
        problem.__traceback__ = None  # whose frames hold what has come, and the problem itself
        is_answering = not getattr(self.cycle, "response_complete", True)
        if is_answering and (self.cycle.response_started or self.pipeline):
            self.transport.abort()
            return
        if is_answering:  # the answer that the app has begun to make goes nowhere
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.write(_written(problem))
        self.transport.close()


def _too_large(detail: str) -> Problem:
    return Problem(431, "head-too-large", detail)


def _written(problem: Problem) -> bytes:
    """Return a whole answer, for a request that no app has seen."""
    body = problem.encoded(secrets.token_hex(8))
    fields = {
        b"content-type": CONTENT_TYPE,
        b"content-length": b"%d" % len(body),
        b"cache-control": b"no-store",
        b"connection": b"close",
        **problem.headers,
    }
    phrase = HTTPStatus(problem.status).phrase.encode()
    lines = [b"HTTP/1.1 %d %s" % (problem.status, phrase)]
    lines += [b"%s: %s" % field for field in fields.items()]
    return b"\r\n".join([*lines, b"", body])
