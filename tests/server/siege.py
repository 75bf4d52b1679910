"""Attacks a `duequeue serve` for a minute, and says how much memory and patience that costs others.

`python -m tests.server.siege` fails if the server grows by more than 10 MB, and 8 KiB for each
connection that it has open, if one in a hundred requests of another client takes more than 100 ms,
or if connections stay open. It is not a part of the tests, because it measures time.
"""

import ssl
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

from tests.fixtures.certificates import self_signed, signed
from tests.server.attacks import (
    ANNOUNCED,
    ENDLESS,
    HEAD,
    MEGABYTE,
    Memory,
    ask,
    attack,
    connect,
    hello,
    status,
)
from tests.server.command import ServeProcess, serving

OK = 200
FILES = 4096
MANY = 4000
MOST_BYTES = 10 * MEGABYTE
MOST_BYTES_OF_CONNECTION = 8 * 1024
MOST_SECONDS = 0.1
OTHER = "127.0.0.2"  # from where a client asks that has nothing to do with the attack
ASK_EVERY = 0.02
SLOW = 500
HANDSHAKES = {  # what each connection to a server that speaks HTTPS sends, before it is silent
    "silent handshakes": b"",
    "announced handshakes": ANNOUNCED,
    "begun handshakes": hello(),
}


class Cost(NamedTuple):
    """What an attack cost: the growth of the server, and the waits of another client."""

    growth: int
    waits: list[float]
    left: int
    most_bytes: int

    @property
    def most(self) -> float:
        """The wait that one of a hundred exceeds, which this machine's other work may prolong."""
        return sorted(self.waits)[len(self.waits) * 99 // 100]

    @property
    def is_too_much(self) -> bool:
        """Whether it is more than may be."""
        return self.growth > self.most_bytes or self.most > MOST_SECONDS or self.left > 0

    def __str__(self) -> str:
        """Write it as a line."""
        waits = f"{max(self.waits) * 1000:7.0f} ms, 99 %: {self.most * 1000:6.0f} ms"
        grown = f"{self.growth / MEGABYTE:8.1f} MB"
        return f"{grown}   worst wait {waits}   left open: {self.left}"


@contextmanager
def asking(
    server: ServeProcess, waits: list[float], trust: ssl.SSLContext | None
) -> Iterator[None]:
    """Ask for `/healthz` all the time, and note how long each answer takes."""
    ended = threading.Event()

    def ask_on() -> None:
        while not ended.wait(ASK_EVERY):
            began = monotonic()
            try:
                works = status(ask(server.port, address=OTHER, trust=trust)) == OK
            except (OSError, IndexError):
                works = False
            waits.append(monotonic() - began if works else float("inf"))

    thread = threading.Thread(target=ask_on)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def endless(name: str) -> Callable[[ServeProcess], int]:
    """Return the attack by four clients that connect again and again."""

    def run(server: ServeProcess) -> int:
        begin, rest = ENDLESS[name]
        ends_at = monotonic() + 3

        def again(_: int) -> None:
            while monotonic() < ends_at:
                attack(server.port, begin, rest)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(again, range(4)))
        return 0

    return run


def half_requests(server: ServeProcess) -> int:
    """Ask without a token, read the answer, send one byte more, and keep the connections."""
    head = b"POST /v1/queues/q/messages HTTP/1.1\r\nHost: localhost\r\n"
    return held(server, head + b"Content-Length: 1000000\r\n\r\n", b"x")


def held(server: ServeProcess, request: bytes, more: bytes) -> int:
    """Return how many connections the server has still open ten seconds later."""
    before = open_files(server)
    with ExitStack() as stack:
        for _ in range(MANY):
            connection = stack.enter_context(connect(server.port))
            with suppress(OSError):
                connection.sendall(request)
                connection.recv(1000)
                connection.sendall(more)
        sleep(10)
        return max(0, open_files(server) - before - 10)


def idle(server: ServeProcess, sent: bytes = b"") -> int:
    """Open connections, and say nothing more than this."""
    with ExitStack() as stack:
        for _ in range(MANY):
            with suppress(ConnectionError):
                stack.enter_context(connect(server.port)).sendall(sent)
        before = open_files(server)
        sleep(12)
        return max(0, open_files(server) - min(before, 100))


def slow(server: ServeProcess) -> int:
    """Send a byte of a head each second."""
    before = open_files(server)
    with ExitStack() as stack:
        connections = [stack.enter_context(connect(server.port)) for _ in range(SLOW)]
        for byte in HEAD[:12]:
            for each in connections:
                with suppress(OSError):
                    each.sendall(bytes([byte]))
            sleep(1)
        return max(0, open_files(server) - before - 10)


def open_files(server: ServeProcess) -> int:
    return len(list((Path("/proc") / str(server.process.pid) / "fd").iterdir()))


ATTACKS: dict[str, Callable[[ServeProcess], int]] = {
    **{f"endless: {name}": endless(name) for name in ENDLESS},
    "slow heads": slow,
    "half requests": half_requests,
    "idle connections": idle,
    **{name: partial(idle, sent=sent) for name, sent in HANDSHAKES.items()},
}


def cost_of(name: str) -> Cost:
    """Attack a server of its own."""
    limit = ("prlimit", f"--nofile={FILES}:{FILES}")
    waits: list[float] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="duequeue-siege-")))
        options, trust = secure(folder) if name in HANDSHAKES else ((), None)
        server = stack.enter_context(serving("--no-push", *options, folder=folder, under=limit))
        for _ in range(20):
            ask(server.port, trust=trust)
        memory = Memory(server)
        with asking(server, waits, trust):
            left = ATTACKS[name](server)
        connections = 0 if name.startswith("endless") else MANY
        most = MOST_BYTES + connections * MOST_BYTES_OF_CONNECTION
        return Cost(memory.growth(), waits, left, most)


def secure(folder: Path) -> tuple[tuple[str, ...], ssl.SSLContext]:
    """Return the options of a server with a certificate, and what trusts it."""
    authority, authority_key = self_signed(folder, "authority")
    certificate, key = signed(folder, "server", authority, authority_key)
    options = ("--tls-cert", str(certificate), "--tls-key", str(key))
    return options, ssl.create_default_context(cafile=str(authority))


def main() -> int:
    """Run the attacks that the arguments name, or all."""
    names = [each for each in ATTACKS if not sys.argv[1:] or any(a in each for a in sys.argv[1:])]
    failed = 0
    for name in names:
        cost = cost_of(name)
        failed += cost.is_too_much
        print(f"{'FAIL' if cost.is_too_much else 'ok  '} {name:26} {cost}", flush=True)  # noqa: T201 - a report
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
