"""One call to receivers of all kinds, most of them hostile."""

import asyncio
import gzip
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from duequeue.callbacks.answer import CallAnswer
from duequeue.callbacks.guard import Guard
from duequeue.callbacks.posting import MOST_BYTES, CallFailed, Poster
from tests.callbacks import receiver as hostile
from tests.callbacks.certificates import Certificates
from tests.callbacks.receiver import (
    Receiver,
    replies,
    running_receiver,
    sends,
    tunnels_to,
    waits_for,
)

T = TypeVar("T")

JSON = {"content-type": "application/json"}
SHORT = timedelta(milliseconds=300)
LONG = timedelta(seconds=20)


def posted(
    url: str,
    body: bytes = b"{}",
    headers: Mapping[str, str] = JSON,
    timeout: timedelta | float = LONG,
    **options: Any,
) -> CallAnswer:
    """Make one call."""

    async def call(poster: Poster) -> CallAnswer:
        return await poster.post(url, body, headers, timeout)

    return with_poster(call, **options)


def with_poster(use: Callable[[Poster], Awaitable[T]], **options: Any) -> T:
    """Use a poster in an event loop of its own."""

    async def run() -> T:
        async with Poster(**options) as poster:
            return await use(poster)

    return asyncio.run(run())


def failure(url: str, timeout: timedelta = LONG, **options: Any) -> str:
    """Make one call that must fail, and return the reason."""
    with pytest.raises(CallFailed) as caught:
        posted(url, timeout=timeout, **options)
    assert str(caught.value) == caught.value.reason
    assert caught.value.reason.isprintable()
    return caught.value.reason


def test_a_call_as_it_arrives(receiver: Receiver) -> None:
    url = receiver.will("/orders?a=%2Fb", replies(201, b"[1]", {"X-Two": "2"}))
    answer = posted(url, b'{"n":1}', {**JSON, "webhook-id": "msg_1"})
    assert answer == CallAnswer(201, {"content-length": "3", "x-two": "2"}, b"[1]")
    (call,) = receiver.calls
    assert (call.path, call.body) == ("/orders?a=%2Fb", b'{"n":1}')
    assert call.headers["webhook-id"] == "msg_1"
    assert call.headers["content-type"] == "application/json"
    assert call.headers["accept-encoding"] == "identity"
    assert call.headers["user-agent"] == "DueQueue"
    assert "cookie" not in call.headers


@pytest.mark.parametrize("size", [0, 2**20, 8 * 2**20])
def test_bodies_of_every_size(receiver: Receiver, size: int) -> None:
    posted(receiver.url(), b"x" * size)
    assert len(receiver.calls[0].body) == size


@pytest.mark.parametrize(
    "behaviour",
    [hostile.hangs, hostile.drips_its_headers, hostile.always_continues],
    ids=["hangs", "drips", "continues"],
)
def test_an_answer_that_does_not_come_ends_in_time(
    receiver: Receiver, behaviour: hostile.Behaviour
) -> None:
    reason = failure(receiver.will("/", behaviour), SHORT)
    assert reason == "no answer within 300 ms"


def test_a_body_that_drips_for_ever_ends_in_time(receiver: Receiver) -> None:
    # The headers must come in time, even on a busy machine.
    reason = failure(receiver.will("/", hostile.drips_its_body), timedelta(seconds=2))
    assert reason == "the answer did not end within 2.0 s"


def test_an_endless_body_is_read_only_so_far(receiver: Receiver) -> None:
    answer = posted(receiver.will("/", hostile.never_ends_its_body))
    assert (answer.status, len(answer.body), answer.is_complete) == (200, MOST_BYTES, False)


def test_an_answer_of_exactly_the_most_bytes_is_complete(receiver: Receiver) -> None:
    exact = posted(receiver.will("/", replies(200, b"x" * 100)), most_bytes=100)
    assert (len(exact.body), exact.is_complete) == (100, True)
    more = posted(receiver.will("/", replies(200, b"x" * 101)), most_bytes=100)
    assert (len(more.body), more.is_complete) == (100, False)


def test_a_compressed_answer_is_never_unpacked(receiver: Receiver) -> None:
    bomb = gzip.compress(bytes(2**24))
    url = receiver.will("/", replies(200, bomb, {"Content-Encoding": "gzip"}))
    assert posted(url).body == bomb


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (hostile.resets, "the connection broke: Connection reset by peer"),
        (hostile.hangs_up, "the connection was closed before an answer"),
        (hostile.breaks_off, "the answer was cut off"),
        (hostile.sends_no_http, "the answer is not valid HTTP: "),
        (hostile.sends_huge_headers, "the answer is not valid HTTP: Got more than 8190 bytes"),
        (hostile.sends_many_headers, "the answer is not valid HTTP: "),
        (sends(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), "the answer "),
        (sends(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"), "the answer is not valid HTTP: "),
        (sends(b"HTTP/1.1 200 OK\r\nA\x00B: c\r\n\r\n"), "the answer is not valid HTTP: "),
    ],
    ids=["reset", "closed", "short", "smtp", "huge", "many", "chunk", "length", "header"],
)
def test_broken_answers_are_failures(
    receiver: Receiver, behaviour: hostile.Behaviour, reason: str
) -> None:
    assert failure(receiver.will("/", behaviour)).startswith(reason)


def test_old_servers_are_understood(receiver: Receiver) -> None:
    answer = posted(receiver.will("/", hostile.speaks_http_1_0))
    assert (answer.status, answer.body) == (200, b"until the end")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(receiver: Receiver, status: int) -> None:
    there = {"Location": "http://169.254.169.254/latest/meta-data/"}
    answer = posted(receiver.will("/", replies(status, headers=there)), guard=Guard("off"))
    assert (answer.status, answer.headers["location"]) == (status, there["Location"])
    assert len(receiver.calls) == 1


def test_no_cookie_is_kept(receiver: Receiver) -> None:
    url = receiver.will("/", replies(200, headers={"Set-Cookie": "a=b"}))

    async def twice(poster: Poster) -> None:
        await poster.post(url, b"", {}, LONG)
        await poster.post(url, b"", {}, LONG)

    with_poster(twice)
    assert ["cookie" in call.headers for call in receiver.calls] == [False, False]


def test_connections_are_used_again(receiver: Receiver) -> None:
    async def thrice(poster: Poster) -> None:
        for _ in range(3):
            await poster.post(receiver.url(), b"", {}, LONG)

    with_poster(thrice)
    assert [call.connection for call in receiver.calls] == [1, 1, 1]


def test_a_connection_with_an_unread_answer_is_not_used_again(receiver: Receiver) -> None:
    url = receiver.will("/", hostile.never_ends_its_body, replies(200, b"next"))

    async def twice(poster: Poster) -> CallAnswer:
        await poster.post(url, b"", {}, LONG)
        return await poster.post(url, b"", {}, LONG)

    assert with_poster(twice).body == b"next"
    assert [call.connection for call in receiver.calls] == [1, 2]


def test_a_call_is_never_repeated(receiver: Receiver) -> None:
    url = receiver.will("/", replies(200), hostile.hangs_up, replies(200))

    async def twice(poster: Poster) -> None:
        await poster.post(url, b"", {}, LONG)
        await poster.post(url, b"", {}, LONG)

    with pytest.raises(CallFailed):
        with_poster(twice)
    assert len(receiver.calls) == 2


def test_a_hanging_receiver_delays_no_other(receiver: Receiver) -> None:
    hanging = receiver.will("/hangs", hostile.hangs)

    async def call(poster: Poster) -> int:
        stuck = [asyncio.create_task(poster.post(hanging, b"", {}, LONG)) for _ in range(300)]
        await asyncio.to_thread(receiver.wait_for_calls, 300, "/hangs")
        answers = [await poster.post(receiver.url("/ok"), b"", {}, LONG) for _ in range(50)]
        for task in stuck:
            task.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)
        return sum(answer.status for answer in answers)

    assert with_poster(call) == 50 * 200


def test_a_cancelled_call_ends_its_connection(receiver: Receiver) -> None:
    released = threading.Event()
    url = receiver.will("/", waits_for(released, replies(200)), replies(200, b"second"))

    async def call(poster: Poster) -> CallAnswer:
        first = asyncio.create_task(poster.post(url, b"", {}, LONG))
        await asyncio.to_thread(receiver.wait_for_calls, 1)
        first.cancel()
        with suppress(asyncio.CancelledError):
            await first
        answer = await poster.post(url, b"", {}, LONG)
        released.set()
        return answer

    assert with_poster(call).body == b"second"
    assert [call.connection for call in receiver.calls] == [1, 2]


class FakeNames(AbstractResolver):
    """A name server that gives each answer once, the last one for good."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        assert family == socket.AF_UNSPEC
        self.asked += 1
        addresses = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "fe80::1"]
)
def test_a_name_that_leads_to_metadata_is_refused(address: str) -> None:
    reason = failure("http://receiver.example/", resolver=FakeNames([address]))
    assert reason.endswith("are refused: it is a link-local or metadata address")


def test_a_name_that_is_public_first_and_private_then(receiver: Receiver) -> None:
    names = FakeNames(["127.0.0.1"], ["127.0.0.2"])
    guard = Guard("public", allow=["127.0.0.1"])  # this address plays the public one
    first = receiver.url(host="receiver.example")
    # Names are kept for a few seconds, for each port, so the second lookup is that of another port.
    with running_receiver(host="127.0.0.2") as private:
        second = private.url(host="receiver.example")

        async def twice(poster: Poster) -> None:
            assert (await poster.post(first, b"", {}, LONG)).status == 200
            with pytest.raises(CallFailed, match=r"127\.0\.0\.2 are refused: it is not a public"):
                await poster.post(second, b"", {}, LONG)

        with_poster(twice, guard=guard, resolver=names)
        assert names.asked == 2
        assert private.calls == []


def test_another_address_of_the_name_is_tried_and_checked_too(receiver: Receiver) -> None:
    url = receiver.url(host="receiver.example")
    both = FakeNames(["169.254.169.254", "127.0.0.1"])
    assert posted(url, resolver=both).status == 200
    assert "are refused" in failure(url, resolver=both, guard=Guard("public"))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"])
def test_this_machine_is_not_public(receiver: Receiver, host: str) -> None:
    reason = failure(receiver.url(host=host), guard=Guard("public"))
    assert reason.endswith("are refused: it is not a public address")
    assert receiver.calls == []


def test_a_url_is_checked_at_each_call(receiver: Receiver) -> None:
    assert "only https" in failure(receiver.url(), guard=Guard(https_only=True))
    assert "user name" in failure("http://user:hunter2@127.0.0.1/")
    assert "hunter2" not in failure("http://user:hunter2@127.0.0.1/")


def test_nobody_listens(receiver: Receiver) -> None:
    assert failure("http://127.0.0.1:1/") == "cannot connect to 127.0.0.1: Connection refused"
    reason = failure("http://receiver.invalid/")
    assert reason.startswith("the name receiver.invalid was not found: ")


def test_a_header_cannot_smuggle_another(receiver: Receiver) -> None:
    with pytest.raises(CallFailed, match="the call cannot be made"):
        posted(receiver.url(), headers={"x": "a\r\nb: c"})
    assert receiver.calls == []


class TestTls:
    """Calls over TLS."""

    def test_a_trusted_receiver(self, certificates: Certificates) -> None:
        with running_receiver(certificates.server()) as receiver:
            assert posted(receiver.url(), tls=certificates.trusting()).status == 200

    def test_an_unknown_authority(self, certificates: Certificates) -> None:
        with running_receiver(certificates.server()) as receiver:
            assert "certificate of 127.0.0.1 is not valid: " in failure(receiver.url())
            assert receiver.calls == []

    def test_another_name(self, certificates: Certificates) -> None:
        with running_receiver(certificates.server(name="other.example")) as receiver:
            reason = failure(receiver.url(), tls=certificates.trusting())
        assert "certificate of 127.0.0.1 is not valid: IP address mismatch" in reason

    def test_an_expired_certificate(self, certificates: Certificates) -> None:
        expired = certificates.server(age=timedelta(days=4))
        with running_receiver(expired) as receiver:
            reason = failure(receiver.url(), tls=certificates.trusting())
        assert reason == "the certificate of 127.0.0.1 is not valid: certificate has expired"

    def test_a_receiver_that_speaks_no_tls(self, receiver: Receiver) -> None:
        url = receiver.url().replace("http:", "https:")
        assert failure(url).startswith("TLS with 127.0.0.1 failed: ")

    def test_a_name_is_checked_against_the_certificate(self, certificates: Certificates) -> None:
        with running_receiver(certificates.server()) as receiver:
            url = receiver.url(host="receiver.example")
            names = FakeNames(["127.0.0.1"])
            reason = failure(url, tls=certificates.trusting(), resolver=names)
        assert "certificate of receiver.example is not valid: Hostname mismatch" in reason


class TestProxy:
    """Calls through a proxy, which looks names up and dials."""

    def test_plain_http(self, receiver: Receiver) -> None:
        receiver.will("http://receiver.example/orders", replies(200, b"from the proxy"))
        proxy = receiver.url().replace("127.0.0.1", "user:hunter2@127.0.0.1")
        answer = posted("http://receiver.example/orders", proxy=proxy, guard=Guard("public"))
        assert answer.body == b"from the proxy"
        assert receiver.calls[0].headers["proxy-authorization"].startswith("Basic ")

    def test_tls_goes_through_a_tunnel(
        self, receiver: Receiver, certificates: Certificates
    ) -> None:
        with running_receiver(certificates.server(name="receiver.example")) as beyond:
            receiver.will("receiver.example:443", tunnels_to(beyond.port))
            answer = posted(
                "https://receiver.example/orders",
                proxy=receiver.url(),
                tls=certificates.trusting(),
            )
            assert answer.status == 200
            assert [call.path for call in beyond.calls] == ["/orders"]

    def test_a_literal_address_is_still_checked(self, receiver: Receiver) -> None:
        for host in ("169.254.169.254", "[::ffff:a9fe:a9fe]", "169。254。169。254"):
            reason = failure(f"http://{host}/", proxy=receiver.url())
            assert reason.endswith("it is a link-local or metadata address")
        assert receiver.calls == []

    def test_a_proxy_that_refuses(self, receiver: Receiver) -> None:
        receiver.will("receiver.example:443", replies(407))
        proxy = receiver.url().replace("127.0.0.1", "user:hunter2@127.0.0.1")
        reason = failure("https://receiver.example/", proxy=proxy)
        assert reason.startswith("the proxy answered 407")
        assert failure("http://receiver.example/", proxy="http://user:hunter2@127.0.0.1:1") == (
            "cannot connect to the proxy: Connection refused"
        )

    def test_a_wrong_proxy_is_refused_and_not_repeated(self) -> None:
        for wrong in ("user:hunter2@proxy", "socks5://user:hunter2@proxy:1080", "http://[hunter2"):
            with pytest.raises(ValueError, match="proxy must be a URL") as caught:
                posted("http://receiver.example/", proxy=wrong)
            assert "hunter2" not in str(caught.value)
