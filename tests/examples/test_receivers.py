"""The receivers in Python, Node.js and Go, called as a push process calls them."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from duequeue.callbacks.answer import CallAnswer
from duequeue.callbacks.posting import Poster
from duequeue.callbacks.signing import new_secret, parse_secret, public_key, signature
from tests.fixtures.node import node, node_packages

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "receivers"


def in_python(_: Path) -> list[str]:
    return [sys.executable, str(FOLDER / "receiver.py")]


def in_javascript(folder: Path) -> list[str]:
    shutil.copy(FOLDER / "receiver.mjs", folder)
    (folder / "node_modules").symlink_to(node_packages(FOLDER / "package.json"))
    return [node(), str(folder / "receiver.mjs")]


def in_go(folder: Path) -> list[str]:
    go = shutil.which("go")
    if go is None:
        pytest.skip("no Go, which is not among the packages for the tests")
    program = folder / "receiver"
    built = subprocess.run(
        [go, "build", "-o", program, FOLDER / "receiver.go"],
        env={**os.environ, "GO111MODULE": "off", "GOTOOLCHAIN": "local"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return [str(program)]


@contextmanager
def running(command: list[str], secret: str) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """Run a receiver; return its URL and its process."""
    process = subprocess.Popen(
        command,
        env={**os.environ, "CALLBACK_SECRET": secret, "PORT": "0"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process:
        try:
            found = re.fullmatch(r"listening on port (\d+)\n", process.stdout.readline())
            assert found
            yield f"http://127.0.0.1:{found[1]}/callbacks", process
        finally:
            process.kill()


def called(
    url: str, *secrets: str, body: bytes, sent: bytes | None = None, signed: str | None = None
) -> CallAnswer:
    """Call a receiver, if need be with another body than the signed one, or another signature."""
    now = int(datetime.now(UTC).timestamp())
    headers = {
        "content-type": "application/json",
        "webhook-id": "msg_1",
        "webhook-timestamp": str(now),
        "webhook-signature": signed or signature(map(parse_secret, secrets), "msg_1", now, body),
        "duequeue-key": "order-1",
    }

    async def call() -> CallAnswer:
        async with Poster() as poster:
            return await poster.post(url, body if sent is None else sent, headers, 30)

    return asyncio.run(call())


@pytest.mark.parametrize("language", [in_python, in_javascript, in_go])
def test_a_receiver_verifies_and_handles_a_message_once(
    language: Callable[[Path], list[str]], tmp_path: Path
) -> None:
    secret, older = new_secret(), new_secret()
    command = language(tmp_path)
    with running(command, secret) as (url, process):
        assert called(url, older, body=b"{}").status == 401
        assert called(url, secret, body=b"{}", sent=b"[]").status == 401
        for unreadable in ("v1", "v1,abc", "v1a,="):
            assert called(url, body=b"{}", signed=unreadable).status == 401
        for _ in range(2):
            answer = called(url, older, secret, body=b'{"total": 40}')
            assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
            assert b"msg_1" in answer.body
        process.terminate()
        assert process.stdout is not None
        lines = process.stdout.read().splitlines()
        assert [line.replace(" ", "") for line in lines] == ['handledorder-1{"total":40}']


def test_the_receiver_in_go_verifies_with_a_public_key(tmp_path: Path) -> None:
    secret = new_secret("v1a")
    with running(in_go(tmp_path), public_key(parse_secret(secret))) as (url, _):
        assert called(url, secret, body=b"{}").status == 200
        assert called(url, new_secret("v1a"), body=b"{}").status == 401
        assert called(url, new_secret(), body=b"{}").status == 401


@pytest.mark.parametrize(
    ("language", "begins", "file"),
    [
        ("python", "class Receiver", "receiver.py"),
        ("js", "import", "receiver.mjs"),
        ("go", "// A Verifier", "receiver.go"),
    ],
)
def test_the_guide_shows_what_is_tested_here(language: str, begins: str, file: str) -> None:
    guide = (ROOT / "docs" / "guides" / "callbacks.md").read_text()
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    shown = [block[block.index(begins) :] for block in blocks if f"\n{begins}" in f"\n{block}"]
    assert len(shown) == 1
    assert shown[0] in (FOLDER / file).read_text()
