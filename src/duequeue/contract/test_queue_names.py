"""What names may look like, and `queues(url)`, which may list others than those of the test."""

from enum import Enum

from duequeue import ConfigHash, CronMessage, queues
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import claim


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


def test_names_that_are_enums_are_what_they_stand_for(open_queue: OpenQueue) -> None:
    class Name(str, Enum):  # noqa: UP042 - a StrEnum has the text of its value
        ORDERS = "orders"

    queue = open_queue(Name.ORDERS)
    queue.offer(Name.ORDERS, 1)
    queue.cron.install_tick(ConfigHash(Name.ORDERS), Name.ORDERS, [CronMessage(1, START)])
    plain = open_queue("orders")
    keys = {each.key for each in plain.try_poll_many(9)}
    assert keys == {"orders", "orders/orders/2026-03-01T12:00:00.000Z"}
    assert repr(queue).startswith(repr(plain).partition(" at ")[0])


def test_a_queue_name_may_be_long_and_odd(open_queue: OpenQueue) -> None:
    name = "\N{FIRE}%_ '\"/?#" * 10
    queue = open_queue(name[:100])
    queue.offer("a", 1)
    assert claim(queue).queue_name == name[:100]
