"""Streams of lines that fail half way, or that never say anything."""

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from duequeue.contract.stage import until
from duequeue.server import Limits, app_for
from tests.server.served import served

HEADERS = {"Content-Type": "application/x-ndjson"}
PATH = "/v1/queues/q"


def test_a_store_that_fails_in_the_middle_is_reported_with_what_was_offered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "q.db"
    with (
        served(app_for(f"sqlite:///{file}")) as server,
        server.client() as http,
        server.client() as other,
    ):

        def lines() -> Iterator[bytes]:
            yield b"".join(b'{"key":"k%d"}\n' % number for number in range(1000))
            until(lambda: other.get(PATH).json()["total"] == 1000)
            with sqlite3.connect(file) as database:
                (table,) = database.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE '%message%'"
                ).fetchone()
                database.execute(f"DROP TABLE {table}")
            database.close()
            yield b'{"key":"last"}\n'

        answer = http.post(f"{PATH}/messages", content=lines(), headers=HEADERS)
    assert answer.status_code == 500
    assert answer.json()["offered"] == 1000
    assert str(file) not in answer.text
    record = next(each for each in caplog.records if answer.json()["request_id"] in each.message)
    assert "no such table" in record.message
    assert "Traceback (most recent call last):" in record.message


def test_empty_lines_count() -> None:
    limits = Limits(stream_messages=100)
    with served(app_for("memory:lines", limits=limits)) as server, server.client() as http:
        answer = http.post(f"{PATH}/messages", content=b"\n" * 101, headers=HEADERS)
        assert answer.status_code == 413
        answer = http.post(f"{PATH}/messages", content=b"\n" * 99 + b'{"key":"a"}', headers=HEADERS)
        assert answer.json() == {"outcomes": ["created"]}


def test_a_bad_line_after_empty_ones_has_its_own_number(http: httpx.Client, path: str) -> None:
    for bad in ('{"key":""}', '{"key":"b","expires":"-1s"}'):
        lines = f'\n{{"key":"a"}}\n\n\n{bad}\n'
        answer = http.post(f"{path}/messages", content=lines, headers=HEADERS)
        assert answer.json()["argument"].startswith("line 5.")
        assert answer.json()["offered"] == 0


class Chunk(bytes):
    """A part of a body that notes how much is copied when it is added to other bytes."""

    copied = 0

    def __radd__(self, begun: object) -> object:
        if isinstance(begun, bytes):
            Chunk.copied += len(begun)
        return NotImplemented


def test_a_long_line_is_not_copied_for_each_of_its_chunks() -> None:
    body = b'{"key":"a","payload":"' + b"x" * 10_000 + b'"}\n{"key":"b"}\n\n{"key":"c"}'
    chunks = [Chunk(body[place : place + 7]) for place in range(0, len(body), 7)]

    async def offer() -> list[str]:
        service = app_for("memory:long-line", trusted=True)
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": chunks.pop(0), "more_body": bool(chunks)}

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"content-type", b"application/x-ndjson")]
        scope = {"type": "http", "method": "POST", "path": f"{PATH}/messages", "query_string": b""}
        await service({**scope, "headers": headers}, receive, send)
        await service.close()
        outcomes: list[str] = json.loads(sent[1]["body"])["outcomes"]
        return outcomes

    assert asyncio.run(offer()) == ["created"] * 3
    assert Chunk.copied < len(body)
