"""The main path of a callback on every store: posted, failed, answered, and from two processes."""

from collections.abc import Iterator

import pytest

from duequeue import Queue
from duequeue.contract.stage import until
from tests.callbacks.pushed import Pushing, pushing
from tests.callbacks.receiver import Receiver, replies


@pytest.fixture
def pushed(store_url: str) -> Iterator[Pushing]:
    with pushing(store_url) as found:
        yield found


@pytest.mark.parametrize("store", ["postgres", "mariadb", "redis"], indirect=True)
def test_the_main_path(pushed: Pushing, receiver: Receiver) -> None:
    target = receiver.will("/shop", replies(500), replies(200, b'{"ok":true}'))
    pushed.define(target, respond=True, first_delay=1)
    pushed.start()
    pushed.start()
    with Queue.open(pushed.url, "orders") as queue:
        queue.offer("a", {"n": 1})
        found = queue.response("a", timeout=20)
        assert found is not None
        assert found.value == {"ok": True}
        for number in range(100):
            queue.offer(f"k{number}", number)
        until(lambda: queue.stats().total == 0)
    keys = [call.headers["duequeue-key"] for call in receiver.calls]
    assert len(keys) == 102
    assert len(set(keys)) == 101
    assert pushed.run(pushed.records.remove("shop"))
