"""`queues(url)`: which queues a store holds. It may hold others than those of the test."""

from duequeue import queues
from duequeue.contract.fixtures import OpenQueue


def test_every_queue_is_listed_by_name_with_its_payload_type(
    open_queue: OpenQueue, store_url: str
) -> None:
    for name, codec in (("listed", str), ("listed", None), ("a list", bytes), ("Listed", None)):
        open_queue(name, codec=codec)
    found = [each for each in queues(store_url) if "list" in each.name.lower()]
    assert found == [
        ("Listed", "json"),
        ("a list", "bytes"),
        ("listed", "json"),
        ("listed", "text"),
    ]
    assert (found[1].name, found[1].payload_type) == ("a list", "bytes")


def test_to_list_the_queues_leaves_them_as_they_are(open_queue: OpenQueue, store_url: str) -> None:
    queue = open_queue()
    queue.offer("a", 1)
    before = queues(store_url)
    assert ("orders", "json") in before
    assert queues(store_url) == before
    assert queue.contains("a")
