"""Queues on a cluster of three nodes: each in one slot, found wherever that is."""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

from duequeue import Queue, StoreError, StoreUnavailable
from duequeue.contract.faces import Face
from duequeue.contract.phrases import MINUTE, PATIENCE, in_background
from duequeue.stores.redis.connections.alerts import ListenersWire, RedisMailbox
from duequeue.stores.redis.keys import QueueKeys
from duequeue.stores.redis_client.settings import RedisSettings
from tests.fixtures.redis_cluster import RedisCluster
from tests.fixtures.redis_server import RedisServer, calls_of, wait_until
from tests.race.crew import Hand


@pytest.fixture
def cluster(redis_cluster: RedisCluster) -> RedisCluster:
    """The cluster, without a message in it."""
    redis_cluster.flush()
    return redis_cluster


@pytest.fixture
def hand() -> Iterator[Hand]:
    hand = Hand()
    yield hand
    hand.end()


def use(queue: Any, name: str) -> None:
    """Do everything that a queue can do once."""
    queue.offer("a", 1)
    queue.offer("b", 2)
    queue.offer("c", 3)
    first, second, third = queue.try_poll_many(5)
    assert [first.key, second.key, third.key] == ["a", "b", "c"]
    assert first.extend()
    assert first.ack()
    assert second.release()
    assert third.bury("broken")
    assert [burial.key for burial in queue.buried(10)] == ["c"]
    assert queue.revive("c")
    assert [message.key for message in queue.list().messages] == ["b", "c"]
    assert queue.stats().due == 2
    assert queue.contains("b")
    assert queue.drop("b")
    assert queue.drop_all(confirm=name) == 1


def test_every_queue_works_and_is_in_one_slot(face: Face, cluster: RedisCluster) -> None:
    names = [f"queue {number}" for number in range(12)]
    for name in [*names, "{braces}", "}", "100%"]:
        with face.open(cluster.url(), name) as queue:
            use(queue, name)
            queue.offer("left", 1)
    used = {node.port: node.ask("KEYS", "dq:{*") for node in cluster.primaries}
    assert all(used.values())  # they are spread over all nodes
    for keys in used.values():
        tags = {key.partition(b"}")[0] for key in keys}
        slots = {key: cluster.primaries[0].ask("CLUSTER", "KEYSLOT", key) for key in keys}
        for tag in tags:
            assert len({slot for key, slot in slots.items() if key.startswith(tag + b"}")}) == 1


def test_the_url_of_a_single_server_is_refused(face: Face, cluster: RedisCluster) -> None:
    others = [node for node in cluster.primaries if node is not cluster.mortal]
    with pytest.raises(StoreError, match=r"node of a cluster.*redis\+cluster://") as caught:
        face.open(others[0].url(), "letters")
    assert not isinstance(caught.value, StoreUnavailable), "it would be tried again"


def test_an_open_queue_follows_its_slot(face: Face, cluster: RedisCluster) -> None:
    with face.open(cluster.url(), "traveller") as queue:
        queue.offer("a", 1)
        cluster.move_slot("dq:{traveller|json}:waiting")
        assert queue.stats().due == 1
        use_after_move: Any = queue.try_poll()
        assert use_after_move.ack()


def test_a_call_waits_while_the_slot_is_on_the_move(face: Face, cluster: RedisCluster) -> None:
    key = "dq:{underway|json}:waiting"
    source = cluster.node_of(key)
    target = next(node for node in cluster.primaries if node is not source)
    with face.open(cluster.url(), "underway") as queue:
        queue.offer("a", 1)
        with cluster.slot_in_flight(key, source, target):
            asking = in_background(queue.stats)
            wait_until(lambda: calls_of(target, "asking") > 0, "the target was asked")
        assert asking.result(PATIENCE).due == 1


@pytest.mark.parametrize("name", ["first", "second", "third"])
def test_a_poll_is_woken_by_another_process(
    face: Face, cluster: RedisCluster, hand: Hand, name: str
) -> None:
    with face.open(cluster.url(), name, poll_interval=10 * MINUTE) as queue:
        for key in "ab":
            polling = in_background(queue.poll)
            hand.start(partial(offer_to, cluster.url(), name, key))
            assert hand.outcome().error is None
            delivery = polling.result(PATIENCE)
            assert delivery is not None
            assert delivery.ack()


def offer_to(url: str, name: str, key: str) -> None:
    with Queue.open(url, name) as queue:
        queue.offer(key, 1)


def test_wake_ups_are_passed_on_for_queues_on_every_node(cluster: RedisCluster) -> None:
    names = {cluster.node_of(listeners(name)).port: name for name in map(str, range(12))}
    settings, box = RedisSettings.from_url(cluster.url()), RedisMailbox()
    wire = ListenersWire(settings, box.waits)
    with ExitStack() as joined:
        for name in names.values():
            node, key, kind = cluster.node_of(listeners(name)), listeners(name), f"{name}|json"
            with Queue.open(cluster.url(), name) as queue:
                queue.stats()  # from which this process knows the node
            box.join(kind, print)
            joined.callback(box.leave, wire, kind, print)
            box.listen(wire, kind)
            wait_until(partial(hears, node, box), "this process hears the node")
            node.ask("SADD", key, "dq:wake:other")
            node.ask("PUBLISH", box.name, f"0 {kind}")
            passed_on = partial(has_none, node, key)
            wait_until(passed_on, "the wake-up that nobody waits for was passed on")


def test_wake_ups_are_heard_where_the_slot_of_a_queue_has_moved(cluster: RedisCluster) -> None:
    settings, box = RedisSettings.from_url(cluster.url()), RedisMailbox()
    wire = ListenersWire(settings, box.waits)
    kind, key = "nomad|json", listeners("nomad")
    box.join(kind, print)
    try:
        with Queue.open(cluster.url(), "nomad") as queue:
            for node_of in (cluster.node_of, cluster.move_slot):
                node = node_of(key)
                queue.stats()  # from which this process knows the node
                box.listen(wire, kind)
                wait_until(partial(hears, node, box), "this process hears the node")
    finally:
        box.leave(wire, kind, print)


def listeners(name: str) -> str:
    return QueueKeys(f"{name}|json").named("listeners").decode()


def has_none(node: RedisServer, key: str) -> bool:
    return bool(node.ask("SCARD", key) == 0)


def hears(node: RedisServer, box: RedisMailbox) -> bool:
    return bool(node.ask("PUBSUB", "NUMSUB", box.name)[1])


def test_a_history_is_refused(face: Face, cluster: RedisCluster) -> None:
    with pytest.raises(StoreError, match="history=True is not possible on a cluster"):
        face.open(cluster.url(), "orders", history=True)
