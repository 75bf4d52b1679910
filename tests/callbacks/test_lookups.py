"""Lookups of names, of which many may hang at the same time."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from duequeue.callbacks.addresses import Lookups
from duequeue.callbacks.posting import CallFailed, Poster
from duequeue.contract.stage import until
from tests.callbacks.receiver import Receiver

HANGING = 100


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names that were looked up; those that begin with `hangs` get no answer."""
    lookup, released, names = socket.getaddrinfo, threading.Event(), []

    def answer(host: str, *more: Any) -> Any:
        names.append(host)
        if host.startswith("hangs"):
            released.wait(60)
        return lookup("127.0.0.1", *more)

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    yield names
    released.set()


async def hang(poster: Poster, names: int, asked: list[str]) -> list["asyncio.Task[Any]"]:
    """Begin calls to names that do not get an answer."""
    tasks = [
        asyncio.create_task(poster.post(f"http://hangs{number}.example/", b"", {}, 60))
        for number in range(names)
    ]
    await asyncio.to_thread(until, lambda: len(asked) == names)
    return tasks


async def give_up(tasks: list["asyncio.Task[Any]"]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_many_names_that_hang_delay_no_other(receiver: Receiver, asked: list[str]) -> None:
    async def run() -> int:
        async with Poster() as poster:
            hanging = await hang(poster, HANGING, asked)
            answer = await poster.post(receiver.url(host="other.example"), b"", {}, 20)
            await give_up(hanging)
            return answer.status

    assert asyncio.run(run()) == 200


def test_an_endpoint_is_not_blamed_if_others_have_all_threads(
    receiver: Receiver, asked: list[str]
) -> None:
    async def run() -> CallFailed:
        async with Poster(resolver=Lookups(threads=2, patience=0.05)) as poster:
            hanging = await hang(poster, 2, asked)
            with pytest.raises(CallFailed) as caught:
                await poster.post(receiver.url(host="other.example"), b"", {}, 20)
            await give_up(hanging)
            return caught.value

    failed = asyncio.run(run())
    assert failed.reason == (
        "the name other.example was not looked up, because too many other lookups hang"
    )
    assert not failed.blames_endpoint
    assert "other.example" not in asked


def test_a_thread_is_free_again_after_its_lookup(receiver: Receiver, asked: list[str]) -> None:
    async def run() -> None:
        async with Poster(resolver=Lookups(threads=1, patience=5)) as poster:
            for number in range(3):
                url = receiver.url(host=f"name{number}.example")
                assert (await poster.post(url, b"", {}, 20)).status == 200

    asyncio.run(run())
    assert asked == ["name0.example", "name1.example", "name2.example"]
