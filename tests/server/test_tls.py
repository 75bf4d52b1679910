"""HTTPS: `duequeue serve` with a certificate, and clients that trust it or do not."""

import asyncio
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from duequeue import AsyncQueue, Queue, RetryPolicy, StoreError, StoreUnavailable
from duequeue.cli import main
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
    assert "tls-cert x.crt" in refused(*files, folder=tmp_path).splitlines()[-1]
    for name in ("x.crt", "x.key"):
        (tmp_path / name).write_text("neither")
    assert "not a certificate" in refused(*files, folder=tmp_path).splitlines()[-1]
