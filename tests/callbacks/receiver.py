"""A receiver of callbacks on loopback, which can behave as badly as a test wants.

It is a bare server, in a thread of its own, so that blocking tests and other processes can call it.
What it does with a call depends on the path:

    with running_receiver() as receiver:
        receiver.will("/orders", replies(500), replies(200, b"done"))   # the last one stays
        post_to(receiver.url("/orders"))
        assert receiver.wait_for_calls(1)[0].body == b"{}"
"""

import asyncio
import socket
import ssl
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

PATIENCE = 30.0
MEBIBYTE = b"x" * 2**20
TLS_HELLO = b"\x16"


class NotHttp(Exception):
    """A caller speaks TLS where none is expected."""


@dataclass(frozen=True)
class Call:
    """A call as it came in; the names of headers are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    connection: int
    reader: asyncio.StreamReader = field(repr=False, compare=False)


Behaviour = Callable[[Call, asyncio.StreamWriter], Awaitable[None]]


class Receiver:
    """What tests see of the server."""

    def __init__(self, scheme: str) -> None:
        self._scheme = scheme
        self._arrived = threading.Condition()
        self._plans: dict[str, list[Behaviour]] = {}
        self._connections = 0
        self._writers: list[asyncio.StreamWriter] = []
        self.port = 0
        self.calls: list[Call] = []

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        """Return the URL of a path."""
        return f"{self._scheme}://{host}:{self.port}{path}"

    def will(self, path: str, *behaviours: Behaviour) -> str:
        """Plan what the next calls of a path meet, the last one for good; return its URL."""
        self._plans[path] = list(behaviours)
        return self.url(path)

    def wait_for_calls(self, count: int, path: str | None = None) -> list[Call]:
        """Wait until at least `count` calls have come, and return all of them."""

        def found() -> list[Call]:
            return [call for call in self.calls if path in {None, call.path}]

        with self._arrived:
            enough = self._arrived.wait_for(lambda: len(found()) >= count, PATIENCE)
            assert enough, f"only {len(found())} of {count} calls came"
            return found()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take the calls of one connection."""
        self._connections += 1
        self._writers.append(writer)
        try:
            await self._take_calls(reader, writer, self._connections)
        except NotHttp:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass  # the caller has ended the connection
        except asyncio.CancelledError:
            pass  # the receiver stops
        finally:
            writer.close()

    async def stop(self) -> None:
        """Break off all connections, also those whose callers do not read what was sent."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()
        await _settled()  # the sockets are closed

    async def _take_calls(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int
    ) -> None:
        while not writer.is_closing():
            call = await _read_call(reader, connection)
            behaviour = self._next(call)
            with self._arrived:
                self.calls.append(call)
                self._arrived.notify_all()
            await behaviour(call, writer)
            await writer.drain()

    def _next(self, call: Call) -> Behaviour:
        plan = self._plans.get(call.path, [replies(200)])
        return plan.pop(0) if len(plan) > 1 else plan[0]


async def _read_call(reader: asyncio.StreamReader, connection: int) -> Call:
    head = await reader.readexactly(1)
    if head == TLS_HELLO:
        raise NotHttp
    head += await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Call(first.split(" ")[1], headers, body, connection, reader)


async def _settled() -> None:
    """Let everything go on that need not wait for anybody."""
    for _ in range(5):
        await asyncio.sleep(0)


@contextmanager
def running_receiver(
    tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> Iterator[Receiver]:
    """Run a receiver until the end of the block."""
    receiver = Receiver("http" if tls is None else "https")
    is_up, stop = threading.Event(), list[Callable[[], object]]()

    async def run() -> None:
        server = await asyncio.start_server(receiver.serve, host, 0, ssl=tls)
        receiver.port = server.sockets[0].getsockname()[1]
        stopping, loop = asyncio.Event(), asyncio.get_running_loop()
        stop.append(lambda: loop.call_soon_threadsafe(stopping.set))
        is_up.set()
        await stopping.wait()
        await _settled()  # a closed server would forget the connection that it just accepted
        server.close()
        await receiver.stop()

    thread = threading.Thread(target=lambda: asyncio.run(run()), name="receiver", daemon=True)
    thread.start()
    assert is_up.wait(PATIENCE)
    try:
        yield receiver
    finally:
        stop[0]()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def replies(status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Behaviour:
    """Answer at once."""

    async def behave(_: Call, writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    return behave


def redirects_to(url: str) -> Behaviour:
    """Send the caller elsewhere."""
    return replies(302, headers={"Location": url})


def sends(data: bytes, *, then_closes: bool = True) -> Behaviour:
    """Send these bytes, which need not be HTTP; then close, or say nothing more."""

    async def behave(_: Call, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        if then_closes:
            await writer.drain()
            writer.close()
        else:
            await asyncio.Event().wait()

    return behave


def waits_for(event: threading.Event, then: Behaviour) -> Behaviour:
    """Answer when a test sets the event."""

    async def behave(call: Call, writer: asyncio.StreamWriter) -> None:
        while not event.is_set():  # noqa: ASYNC110 - the event is one of threads
            await asyncio.sleep(0.002)
        await then(call, writer)

    return behave


def tunnels_to(port: int) -> Behaviour:
    """Be a proxy: connect the caller with a port of this machine, whatever host it asked for."""

    async def behave(call: Call, writer: asyncio.StreamWriter) -> None:
        reader, onwards = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        try:
            await asyncio.gather(_pump(call.reader, onwards), _pump(reader, writer))
        finally:
            onwards.close()

    return behave


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(2**16):
        writer.write(data)
        await writer.drain()
    writer.close()


async def resets(_: Call, writer: asyncio.StreamWriter) -> None:
    """End the connection with a reset."""
    raw: socket.socket = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def never_ends_its_body(_: Call, writer: asyncio.StreamWriter) -> None:
    """Send as much as the caller takes."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
    while True:
        writer.write(MEBIBYTE)
        await writer.drain()


async def drips_its_body(_: Call, writer: asyncio.StreamWriter) -> None:
    """Send a byte every few milliseconds, for ever."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
    await _drip(writer)


async def drips_its_headers(_: Call, writer: asyncio.StreamWriter) -> None:
    """Send a byte of a header every few milliseconds, for ever."""
    writer.write(b"HTTP/1.1 200 OK\r\nSlow: ")
    await _drip(writer)


async def _drip(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.005)


async def always_continues(_: Call, writer: asyncio.StreamWriter) -> None:
    """Send answers that are none, for ever."""
    while True:
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.001)


hangs = sends(b"", then_closes=False)
"""Never answer."""

hangs_up = sends(b"")
"""Close the connection without an answer."""

speaks_http_1_0 = sends(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nuntil the end")
"""Answer as old servers do: without a length, and with the end of the connection."""

sends_huge_headers = sends(b"HTTP/1.1 200 OK\r\nHuge: " + MEBIBYTE + b"\r\n\r\n")
"""Send one header of a mebibyte."""

sends_many_headers = sends(
    b"HTTP/1.1 200 OK\r\n" + b"".join(b"N%d: x\r\n" % n for n in range(20_000)) + b"\r\n"
)
"""Send twenty thousand headers."""

breaks_off = sends(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
"""Promise more than is sent."""

sends_no_http = sends(b"220 mail.example.com ESMTP\r\n")
"""Answer as a mail server does."""
