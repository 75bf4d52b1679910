"""HTTPS: `duequeue serve` with a certificate, and clients that trust it or do not."""

import asyncio
import re
import shutil
import signal
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from duequeue import AsyncQueue, Queue, RetryPolicy, StoreError, StoreUnavailable
from duequeue.cli import main
from duequeue.contract.stage import until
from tests.fixtures.certificates import self_signed, signed
from tests.server.command import ServeProcess, refused, serving

UNTRUSTED = r"certificate of the server at https://127.0.0.1:\d+ is not trusted: .*ssl_ca=FILE$"


class Secured(NamedTuple):
    server: ServeProcess
    authority: Path

    @property
    def url(self) -> str:
        return f"{self.server.url}?ssl_ca={self.authority}"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("tls")
    authority, authority_key = self_signed(folder, "authority")
    certificate, key = signed(folder, "server", authority, authority_key)
    arguments = ("--tls-cert", str(certificate), "--tls-key", str(key))
    with serving(*arguments, folder=folder) as server:
        yield Secured(server, authority)


def test_a_client_that_trusts_the_authority(secured: Secured, name: str) -> None:
    assert secured.server.url.startswith("https://")
    with Queue.open(secured.url, name) as queue, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(queue.poll, timeout=20)
        queue.offer("a", 1)
        delivery = waiting.result()
        assert delivery is not None
        assert delivery.ack()
        assert str(secured.authority) not in repr(queue)


def test_an_awaiting_client_that_trusts_the_authority(secured: Secured, name: str) -> None:
    async def offer_and_poll() -> None:
        async with await AsyncQueue.open(secured.url, name) as queue:
            await queue.offer("a", 1)
            delivery = await queue.try_poll()
            assert delivery is not None
            assert await delivery.ack()

    asyncio.run(offer_and_poll())


def test_an_awaiting_client_is_woken_over_tls(secured: Secured, name: str) -> None:
    async def wait_and_offer() -> None:
        async with (
            await AsyncQueue.open(secured.url, name, poll_interval=timedelta(hours=1)) as queue,
            await AsyncQueue.open(secured.url, name) as other,
        ):
            await other.offer("later", 1, timedelta(hours=1))  # so that the queue exists
            alerts: Any = queue._context.alerts  # noqa: SLF001 - who waits is not seen from outside
            waiting = asyncio.create_task(queue.poll(timeout=20))
            await asyncio.to_thread(until, lambda: alerts._call.source)  # noqa: SLF001 - likewise
            await other.offer("a", 1)
            assert await waiting is not None

    asyncio.run(wait_and_offer())


def test_the_environment_may_name_the_authority(
    secured: Secured, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(secured.authority))
    with Queue.open(secured.server.url, name) as queue:
        assert queue.stats().total == 0


def test_endpoints_are_defined_over_tls(
    secured: Secured, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ("--url", secured.url)
    receiver = "https://shop.example.com/callbacks"
    assert main(["endpoint", "set", "shop", receiver, "--queue", "orders", *at]) == 0
    capsys.readouterr()
    assert main(["endpoint", "ls", "-q", *at]) == 0
    assert capsys.readouterr().out == "shop\n"
    assert main(["endpoint", "ls", "--url", secured.server.url]) != 0
    assert re.search(UNTRUSTED.removesuffix("$"), capsys.readouterr().err)


def test_a_certificate_that_is_not_trusted_is_an_error_at_once(secured: Secured) -> None:
    with pytest.raises(StoreError, match=UNTRUSTED) as raised:
        Queue.open(secured.server.url, "q")
    assert not isinstance(raised.value, StoreUnavailable)

    async def open_it() -> None:
        await AsyncQueue.open(secured.server.url, "q")

    with pytest.raises(StoreError, match=UNTRUSTED) as raised:
        asyncio.run(open_it())
    assert not isinstance(raised.value, StoreUnavailable)


def test_another_authority_is_not_enough(secured: Secured, tmp_path: Path) -> None:
    other, _ = self_signed(tmp_path, "other")
    with pytest.raises(StoreError, match=UNTRUSTED):
        Queue.open(f"{secured.server.url}?ssl_ca={other}", "q")


def test_http_to_a_server_that_speaks_https(secured: Secured) -> None:
    url = secured.server.url.replace("https", "http")
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        Queue.open(url, "q", retry=RetryPolicy.never())


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_that_is_no_authority(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "authority.crt"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ValueError, match=r"ssl_ca .*authority\.crt.* cannot be read"):
        Queue.open(f"https://127.0.0.1:1?ssl_ca={file}", "q")


def test_files_that_are_not_a_certificate_and_its_key(tmp_path: Path) -> None:
    assert "go together" in refused("--tls-cert", "x.crt", folder=tmp_path)
    files = ("--tls-cert", "x.crt", "--tls-key", "x.key")
    assert refused(*files, folder=tmp_path).endswith("cannot be used: No such file: x.crt\n")
    for name in ("x.crt", "x.key"):
        (tmp_path / name).write_text("neither")
    assert "not a certificate" in refused(*files, folder=tmp_path).splitlines()[-1]


def test_a_key_that_needs_a_password(tmp_path: Path) -> None:
    """The server cannot ask anybody, above all not when it reads the key again."""
    certificate, key = self_signed(tmp_path, "server")
    plain = load_pem_private_key(key.read_bytes(), None)
    locked = BestAvailableEncryption(b"secret")
    key.write_bytes(plain.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked))
    files = ("--tls-cert", str(certificate), "--tls-key", str(key))
    assert "not a certificate and its private key" in refused(*files, folder=tmp_path)


class Renewed(NamedTuple):
    """A server whose certificate is about to be replaced by that of another authority."""

    server: ServeProcess
    old: Path
    new: Path
    folder: Path

    def trusts(self, authority: Path) -> bool:
        """Return whether a client that trusts only this authority reaches the server."""
        trust = ssl.create_default_context(cafile=str(authority))
        with httpx.Client(base_url=self.server.url, verify=trust, trust_env=False) as http:
            try:
                return http.get("/healthz").status_code == 200
            except httpx.ConnectError:
                return False

    def replace(self, *names: str) -> None:
        """Put new files in the place of those that the server has read, each at once."""
        for name in names:
            draft = shutil.copy(self.folder / "next" / name, self.folder / "draft")
            Path(draft).replace(self.folder / name)

    def line_with(self, words: str) -> str:
        """Wait for a line of the log."""
        assert self.server.process.stdout is not None
        return next(line for line in self.server.process.stdout if words in line)


@pytest.fixture
def renewed(tmp_path: Path) -> Iterator[Renewed]:
    old, old_key = self_signed(tmp_path, "old")
    certificate, key = signed(tmp_path, "server", old, old_key)
    later = tmp_path / "next"
    later.mkdir()
    new, new_key = self_signed(later, "new")
    signed(later, "server", new, new_key)
    arguments = ("--tls-cert", str(certificate), "--tls-key", str(key))
    with serving(*arguments, folder=tmp_path) as server:
        yield Renewed(server, old, new, tmp_path)


def test_a_new_certificate_is_used_without_a_restart(renewed: Renewed) -> None:
    assert renewed.trusts(renewed.old)
    assert not renewed.trusts(renewed.new)
    renewed.replace("server.crt", "server.key")
    until(lambda: renewed.trusts(renewed.new))
    assert not renewed.trusts(renewed.old)


def test_a_hangup_reads_the_certificate_at_once(renewed: Renewed) -> None:
    renewed.replace("server.crt", "server.key")
    renewed.server.process.send_signal(signal.SIGHUP)
    assert "INFO" in renewed.line_with("has read its certificate again")
    assert renewed.trusts(renewed.new)


def test_a_bad_certificate_leaves_the_old_one(renewed: Renewed) -> None:
    renewed.replace("server.crt")  # it does not fit the old key
    renewed.server.process.send_signal(signal.SIGHUP)
    line = renewed.line_with("goes on with its old certificate")
    assert "ERROR" in line
    assert "they are not a certificate and its private key" in line
    assert renewed.trusts(renewed.old)
    (renewed.folder / "server.key").unlink()
    renewed.server.process.send_signal(signal.SIGHUP)
    line = renewed.line_with("goes on with its old certificate")
    assert f"No such file: {renewed.folder / 'server.key'}" in line
    assert renewed.trusts(renewed.old)
    renewed.replace("server.key")
    until(lambda: renewed.trusts(renewed.new))
    assert renewed.server.terminate() == 0
