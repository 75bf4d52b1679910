"""How long the memory store of one URL lasts, and who shares it."""

import pytest

from duequeue import ManualClock
from duequeue.contract.faces import Face
from duequeue.contract.fixtures import OpenQueue


@pytest.mark.parametrize("store", ["memory"], indirect=True)
def test_memory_lasts_as_long_as_a_queue_on_it(open_queue: OpenQueue) -> None:
    with open_queue() as producer:
        producer.offer("a", 1)
    assert open_queue().stats().total == 0


@pytest.mark.parametrize("url", ["memory:", "memory:one"])
def test_one_memory_url_is_one_store(face: Face, clock: ManualClock, url: str) -> None:
    with face.open(url, "orders", clock=clock) as first:
        first.offer("a", 1)
        with (
            face.open(url, "orders", clock=clock) as same,
            face.open("memory:two", "orders", clock=clock) as other,
        ):
            assert same.contains("a")
            assert not other.contains("a")
