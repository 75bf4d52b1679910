"""`duequeue push` and `duequeue serve` as processes: stopped, killed, and several at a time."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from asyncio import StreamWriter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from duequeue import Queue
from duequeue.contract.phrases import HOUR
from duequeue.contract.stage import until
from duequeue.instants import MILLISECOND
from duequeue.server.tokens import Scope, TokenFile, new_token
from tests.callbacks import receiver as hostile
from tests.callbacks.pushed import pushing
from tests.callbacks.receiver import Call, Receiver, replies, waits_for
from tests.server.command import serving

PATIENCE = 30.0


class PushProcess:
    """A running `duequeue push`."""

    def __init__(self, url: str, *arguments: str) -> None:
        environment = {name: text for name, text in os.environ.items() if "DUEQUEUE" not in name}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "duequeue", "push", "--url", url, *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "pushing\n"

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


@contextmanager
def push_process(url: str, *arguments: str) -> Iterator[PushProcess]:
    running = PushProcess(url, *arguments)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.end(signal.SIGKILL)
        assert running.process.stdout is not None
        running.process.stdout.close()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'push.db'}"


def define(url: str, target: str, **more: Any) -> None:
    with pushing(url) as pushed:
        pushed.define(target, **more)


def test_a_process_killed_during_a_call_loses_nothing(url: str, receiver: Receiver) -> None:
    """One message is being posted, and another is leased and waits, when the process dies."""
    define(url, receiver.will("/shop", hostile.hangs, replies(200)), concurrency=1)
    with Queue.open(url, "orders") as queue:
        queue.offer("a", 1)
        queue.offer("b", 2)
        with push_process(url) as push:
            receiver.wait_for_calls(1)
            until(lambda: queue.stats().leased == 2)
            push.end(signal.SIGKILL)
        assert attempts_left(queue) == {"a": 1, "b": 1}
        finished_by_another(url, queue)
    headers = [each.headers for each in receiver.calls]
    calls = [(each["duequeue-key"], each["duequeue-attempt"]) for each in headers]
    assert sorted(calls) == [("a", "1"), ("a", "2"), ("b", "2")]


def test_a_message_that_was_never_called_is_not_buried_for_crashes(
    url: str, tmp_path: Path, receiver: Receiver
) -> None:
    """Each process dies during the call of `a`, while `b` waits for its turn."""
    target = receiver.will("/shop", hostile.hangs, hostile.hangs, hostile.hangs, replies(200))
    define(url, target, concurrency=1, attempts=2)
    with Queue.open(url, "orders") as queue:
        queue.offer("a", 1)
        queue.offer("b", 2)
        for calls in range(1, 4):
            with push_process(url) as push:
                receiver.wait_for_calls(calls)
                push.end(signal.SIGKILL)
            with sqlite3.connect(tmp_path / "push.db") as database:  # instead of waiting
                database.execute("UPDATE duequeue_message SET leased_until = min(leased_until, 0)")
            database.close()
        with push_process(url):
            until(lambda: queue.stats().total == 0)
        (buried,) = queue.buried(10)
    assert buried.key == "a"
    assert buried.reason == "attempts: called endpoint shop 3 times without an outcome"
    assert [each.headers["duequeue-key"] for each in receiver.calls] == ["a", "a", "a", "b"]


def test_a_process_killed_before_it_can_settle_posts_again(
    url: str, tmp_path: Path, receiver: Receiver
) -> None:
    locked, answered = threading.Event(), threading.Event()

    async def answer(call: Call, writer: StreamWriter) -> None:
        await waits_for(locked, replies(200))(call, writer)
        await writer.drain()
        answered.set()

    define(url, receiver.will("/shop", answer, replies(200)))
    with Queue.open(url, "orders") as queue:
        queue.offer("a", 1)
        with push_process(url) as push, sqlite3.connect(tmp_path / "push.db") as other:
            receiver.wait_for_calls(1)
            other.execute("BEGIN IMMEDIATE")  # from now on, nobody else can write
            locked.set()
            assert answered.wait(PATIENCE)
            push.end(signal.SIGKILL)
            other.rollback()
        other.close()
        assert attempts_left(queue) == {"a": 1}
        finished_by_another(url, queue)
    first, second = receiver.calls
    assert [each.headers["duequeue-attempt"] for each in (first, second)] == ["1", "2"]


def attempts_left(queue: Queue) -> dict[str, int]:
    return {each.key: each.attempts for each in queue.list().messages}


def finished_by_another(url: str, queue: Queue) -> None:
    """Let another process deliver what a killed one has left."""
    for key in attempts_left(queue):
        assert queue.run_now(key)  # instead of waiting for the leases to end
    with push_process(url) as push:
        until(lambda: queue.stats().total == 0)
        assert push.end(signal.SIGTERM) == 0
    assert queue.buried(10) == []


def test_sigterm_lets_calls_end_and_gives_the_rest_back(url: str, receiver: Receiver) -> None:
    opened = threading.Event()
    target = receiver.will("/shop", waits_for(opened, replies(200)))
    define(url, target, concurrency=1)
    with Queue.open(url, "orders") as queue, push_process(url) as push:
        queue.offer("a", 1)
        queue.offer("b", 1)
        receiver.wait_for_calls(1)
        until(lambda: queue.stats().leased == 2)
        push.process.send_signal(signal.SIGTERM)
        until(lambda: queue.stats().due == 1)
        opened.set()
        assert push.process.wait(PATIENCE) == 0
        (left,) = queue.list().messages
        assert (left.key, left.attempts) == ("b", 0)


def test_a_call_that_outlives_the_grace_time_is_released(url: str, receiver: Receiver) -> None:
    define(url, receiver.will("/shop", hostile.hangs))
    with Queue.open(url, "orders") as queue, push_process(url, "--grace", "100ms") as push:
        queue.offer("a", 1)
        receiver.wait_for_calls(1)
        assert push.end(signal.SIGTERM) == 0
        (left,) = queue.list().messages
        assert (left.state.value, left.attempts) == ("due", 1)


def test_a_second_signal_ends_calls_at_once(url: str, receiver: Receiver) -> None:
    target = receiver.will("/shop", hostile.hangs)
    define(url, target, concurrency=1, timeout=HOUR // MILLISECOND)
    with Queue.open(url, "orders") as queue, push_process(url, "--grace", "1h") as push:
        queue.offer("a", 1)
        queue.offer("b", 1)
        receiver.wait_for_calls(1)
        until(lambda: queue.stats().leased == 2)
        push.process.send_signal(signal.SIGTERM)
        until(lambda: queue.stats().due == 1)  # now it waits for the call
        push.process.send_signal(signal.SIGTERM)
        assert push.process.wait(PATIENCE) == 0
        assert {each.key: each.attempts for each in queue.list().messages} == {"a": 1, "b": 0}
        assert queue.stats().leased == 0


def test_two_processes_share_the_work(url: str, receiver: Receiver) -> None:
    define(url, receiver.url("/shop"), concurrency=4)
    with Queue.open(url, "orders") as queue, push_process(url), push_process(url):
        for number in range(200):
            queue.offer(f"k{number}", number)
        until(lambda: queue.stats().total == 0)
    keys = [call.headers["duequeue-key"] for call in receiver.calls]
    assert len(keys) == 200
    assert len(set(keys)) == 200


def test_a_server_pushes_unless_it_is_told_not_to(tmp_path: Path, receiver: Receiver) -> None:
    folder = tmp_path
    with serving("--no-push", folder=folder) as quiet, quiet.client() as http:
        define_over_http(http, receiver)
        http.put("/v1/queues/orders/messages/a")
        with serving(folder=folder) as pushes, pushes.client() as other:
            receiver.wait_for_calls(1)
            until(lambda: other.get("/v1/queues/orders").json()["total"] == 0)
            assert pushes.terminate() == 0


def define_over_http(http: httpx.Client, receiver: Receiver) -> None:
    given = {"queue": "orders", "url": receiver.url("/shop"), "timeout": "5s"}
    assert http.put("/v1/endpoints/shop", json=given).status_code == 200


def test_a_receiver_settles_later_by_token_over_http(tmp_path: Path, receiver: Receiver) -> None:
    receiver.will("/shop", replies(202, headers={"duequeue-extend": "10m"}))
    with serving(folder=tmp_path) as server, server.client() as http:
        define_over_http(http, receiver)
        http.put("/v1/queues/orders/messages/a")
        (call,) = receiver.wait_for_calls(1)
        token = call.headers["duequeue-token"]
        reply = {"response": [{"token": token, "value": "done"}]}
        assert http.post("/v1/queues/orders:settle", json=reply).json()["settled"][token] == "won"
        assert http.get("/v1/queues/orders/responses/a").json()["value"] == "done"


def test_the_token_of_a_callback_settles_only_with_a_token_of_the_server(
    tmp_path: Path, receiver: Receiver
) -> None:
    receiver.will("/shop", replies(202, headers={"duequeue-extend": "10m"}))
    tokens = TokenFile(tmp_path / "tokens.json")
    given = {}
    for scope, prefix in ((Scope.ADMIN, ""), (Scope.SETTLE, "mails"), (Scope.OFFER, "")):
        given[scope], grant = new_token([scope], datetime.now(UTC), prefix=prefix)
        tokens.add(grant)
    arguments = ("--token-file", str(tokens.path), "--allow", "127.0.0.0/8")
    with serving(*arguments, folder=tmp_path) as server, server.client() as http:
        http.headers["Authorization"] = f"Bearer {given[Scope.ADMIN]}"
        define_over_http(http, receiver)
        http.put("/v1/queues/orders/messages/a")
        (call,) = receiver.wait_for_calls(1)
        reply = {"ack": [call.headers["duequeue-token"]]}
        for headers, status in (
            ({"Authorization": ""}, 401),
            ({"Authorization": f"Bearer {given[Scope.SETTLE]}"}, 403),
            ({"Authorization": f"Bearer {given[Scope.OFFER]}"}, 403),
            ({}, 200),
        ):
            answer = http.post("/v1/queues/orders:settle", json=reply, headers=headers)
            assert answer.status_code == status


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("http://127.0.0.1:1", "url must be that of the database itself"),
        ("memory:orders", "url must not be memory:, because other processes cannot offer to it"),
    ],
)
def test_push_needs_the_database_itself(url: str, complaint: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "duequeue", "push", "--url", url],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert ended.returncode == 1
    assert complaint in ended.stderr


def test_the_receiver_finds_the_token_of_a_server_of_its_user(tmp_path: Path) -> None:
    with serving(folder=tmp_path) as server:
        command = [sys.executable, "-m", "duequeue.callbacks.receiver", "--server", server.url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sample:
            try:
                assert sample.stdout is not None
                assert sample.stdout.readline().startswith("offered hello-")
            finally:
                sample.kill()


def test_two_commands_show_a_callback(tmp_path: Path) -> None:
    with serving("--dev", folder=tmp_path) as server:
        sample = subprocess.Popen(
            [sys.executable, "-m", "duequeue.callbacks.receiver", "--server", server.url],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert sample.stdout is not None
            assert sample.stdout.readline().startswith("offered hello-")
            with server.client() as http:
                http.post("/v1/clock:advance", json={"by": "1h"})
            assert sample.stdout.readline().startswith("verified: queue hello, key hello-")
            assert sample.stdout.readline() == '  "world"\n'
        finally:
            sample.kill()
            sample.communicate()
