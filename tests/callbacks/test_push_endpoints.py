"""Several endpoints of one queue, and changes of endpoints while a push runs."""

import asyncio
import json
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import repeat
from typing import Any

import pytest
from msgspec.structs import replace

from duequeue import Message, Queue
from duequeue.callbacks.pushing import Push
from duequeue.callbacks.records import NEVER, QUEUE, Condition
from duequeue.callbacks.signing import new_secret, parse_secret, signature
from duequeue.contract.stage import until
from duequeue.errors import StoreError
from duequeue.port.store import Store
from tests.callbacks import receiver as hostile
from tests.callbacks.pushed import SECRET, Pushing, memory_url, pushing
from tests.callbacks.receiver import Call, Receiver, replies, waits_for
from tests.fixtures.watched import Watch


@pytest.fixture
def pushed() -> Iterator[Pushing]:
    with pushing(memory_url(), manual=True) as found:
        yield found


@pytest.fixture
def queue(pushed: Pushing) -> Iterator[Queue]:
    with Queue.open(pushed.url, "orders", clock=pushed.clock) as found:
        yield found


def to(identity: str) -> dict[str, str]:
    return {"duequeue-endpoint": identity}


def is_empty(queue: Queue) -> bool:
    return queue.stats().total == 0


def test_a_message_may_name_an_endpoint_of_its_queue(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    pushed.define(receiver.url("/a"), "a")
    pushed.define(receiver.url("/b"), "b", default=False)
    pushed.define(receiver.url("/c"), "c", queue="others")
    pushed.start()
    queue.offer("1", 1)
    queue.offer("2", 2, headers=to("b"))
    queue.offer("3", 3, headers=to("c"))
    queue.offer("4", 4, headers=to("http://169.254.169.254/"))
    until(lambda: is_empty(queue))
    calls = {call.headers["duequeue-key"]: call.path for call in receiver.calls}
    assert calls == {"1": "/a", "2": "/b"}
    reasons = {each.key: each.reason for each in queue.buried(10)}
    assert reasons.keys() == {"3", "4"}
    assert "which is not an endpoint of this queue" in reasons["3"]


def test_a_name_means_the_endpoint_with_the_longest_prefix(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    pushed.define(receiver.url("/all"), "a", default=False)
    pushed.define(receiver.url("/ord"), "ord/a", default=False)
    pushed.define(receiver.url("/orders"), "orders/a", default=False)
    pushed.define(receiver.url("/b"), "or/b", default=False)
    pushed.start()
    queue.offer_batch(Message(key, 1, headers=to(key)) for key in ("a", "b"))
    until(lambda: is_empty(queue))
    calls = {call.headers["duequeue-endpoint"]: call.path for call in receiver.calls}
    assert calls == {"a": "/orders", "b": "/b"}


def test_a_hanging_endpoint_delays_no_other(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    pushed.define(receiver.will("/slow", hostile.hangs), "slow", concurrency=2)
    pushed.define(receiver.url("/quick"), "quick", default=False)
    pushed.start()
    for number in range(300):
        queue.offer(f"s{number}", number)
    for number in range(50):
        queue.offer(f"q{number}", number, headers=to("quick"))
    receiver.wait_for_calls(50, "/quick")
    assert len(receiver.wait_for_calls(2, "/slow")) == 2
    until(lambda: queue.stats().total == 300)


def test_a_disabled_endpoint_delays_no_other_and_burns_no_attempts(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    pushed.define(receiver.will("/off", replies(410), replies(200)), "off", concurrency=1)
    pushed.define(receiver.url("/on"), "on", default=False)
    push = pushed.start()
    for number in range(20):
        queue.offer(f"off{number}", number)
    until(lambda: pushed.state("off") == "disabled")
    queue.offer("on", 1, headers=to("on"))
    receiver.wait_for_calls(1, "/on")
    pushed.stop(push)
    assert {each.attempts for each in queue.list().messages} == {0}
    pushed.run(pushed.records.switch_on("off"))
    pushed.start()
    until(lambda: is_empty(queue))


def test_waiting_messages_keep_their_lease_after_the_timeout_became_shorter(
    receiver: Receiver,
) -> None:
    with (
        pushing(memory_url()) as pushed,
        Queue.open(pushed.url, "orders", clock=pushed.settings.clock) as queue,
    ):
        pushed.define(receiver.url("/on"), "on", timeout=600_000)
        pushed.define(receiver.url("/off"), "off", default=False)
        pushed.run(pushed.records.switch_off("off", Condition("disabled", "by a test", 0)))
        watch = Watch()
        push = pushed.start(watch=watch)
        pushed.define(receiver.url("/on"), "on", timeout=20_000)
        until(lambda: all(lane.endpoint.timeout <= 30_000 for lane in push.lanes()))
        watch.refuse("listed", repeat(StoreError("by a test")), QUEUE)  # a look would extend it
        queue.offer("a", 1, headers=to("off"))
        until(lambda: leased_until(queue, "a") is not None)
        end = leased_until(queue, "a")
        assert end is not None
        pushed.let_pass(15)  # of the 35 seconds of its lease
        until(lambda: (leased_until(queue, "a") or end) > end)
        assert attempts_of(queue, "a") == 1


def leased_until(queue: Queue, key: str) -> datetime | None:
    found = queue.read(key)
    return None if found is None else found.leased_until


def test_a_message_that_is_leased_again_waits_once(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    pushed.define(receiver.url("/on"), "on")
    pushed.define(receiver.url("/off"), "off", default=False)
    pushed.run(pushed.records.switch_off("off", Condition("disabled", "by a test", 0)))
    watch = Watch()
    watch.refuse("extend", repeat(StoreError("by a test")))
    push = pushed.start(watch=watch)
    queue.offer("a", 1, headers=to("off"))
    for attempt in (1, 2, 3):
        until(lambda attempt=attempt: attempts_of(queue, "a") == attempt)  # type: ignore[misc]
        pushed.clock.advance(timedelta(minutes=1))
    until(lambda: attempts_of(queue, "a") == 4)
    until(lambda: waiting_attempts(push) == [4])


def waiting_attempts(push: Push) -> list[int]:
    """Return which attempts the messages are at that wait for their endpoint."""
    return [message.attempt for lane in push.lanes() for message in lane.waiting]


def attempts_of(queue: Queue, key: str) -> int:
    found = queue.read(key)
    assert found is not None
    return found.attempts


def test_an_endpoint_defined_after_its_message_was_leased_is_found(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    pushed.define(receiver.url("/a"), "a")
    pushed.start()
    pushed.define(receiver.url("/late"), "late", default=False)
    queue.offer("1", 1, headers=to("late"))
    receiver.wait_for_calls(1, "/late")
    until(lambda: is_empty(queue))


def test_messages_for_an_endpoint_that_only_a_newer_version_can_read_stay_in_the_queue(
    pushed: Pushing, queue: Queue, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duequeue.callbacks.queue_push.PAUSE_SECONDS", 0.01)
    pushed.define(receiver.url("/old"), "old", default=False)
    pushed.define(receiver.url("/new"), "new")
    newer = {"id": "new", "queue": "orders", "url": ["https://shop.example.com"]}
    pushed.run(pushed.stored.offer("endpoint/new", json.dumps(newer).encode(), NEVER))
    pushed.start()
    offers = {"1": to("new"), "2": to("old"), "3": to("unknown"), "4": None}
    queue.offer_batch(Message(key, 1, headers=headers) for key, headers in offers.items())
    until(lambda: queue.stats().total == 2)
    assert [call.headers["duequeue-key"] for call in receiver.calls] == ["2"]
    assert [each.key for each in queue.buried(10)] == ["3"]
    pushed.define(receiver.url("/new"), "new")
    until(lambda: is_empty(queue))
    calls = receiver.wait_for_calls(2, "/new")
    assert {call.headers["duequeue-key"] for call in calls} == {"1", "4"}
    assert {call.headers["duequeue-attempt"] for call in calls} == {"1"}


def test_a_look_for_endpoints_that_fails_is_made_again_and_logs_no_secret(
    pushed: Pushing, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    watch = Watch()
    push = pushed.start(watch=watch)
    watch.refuse("listed", [RuntimeError("a secret")], QUEUE)
    pushed.define(receiver.url("/shop"))
    until(lambda: "could not look for endpoints: unexpected RuntimeError at" in caplog.text)
    assert "a secret" not in caplog.text
    pushed.define(receiver.url("/shop"))
    until(lambda: bool(push.lanes()))


def test_a_queue_that_cannot_be_opened_holds_up_no_other(
    pushed: Pushing, queue: Queue, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    failing = True

    class RefusesOne(Watch):
        def around(self, queue: str, store: Store) -> Store:
            if failing and queue == "broken":
                raise StoreError("by a test")
            return store

    pushed.define(receiver.url("/first"), "first", queue="broken")
    pushed.define(receiver.url("/shop"))
    pushed.start(watch=RefusesOne())
    assert "queue 'broken' could not be opened: by a test" in caplog.text
    queue.offer("a", 1)
    until(lambda: is_empty(queue))
    failing = False
    pushed.define(receiver.url("/shop"))  # which makes the push look again
    with Queue.open(pushed.url, "broken", clock=pushed.clock) as other:
        other.offer("b", 1)
        until(lambda: is_empty(other))
    assert [call.path for call in receiver.calls] == ["/shop", "/first"]


def test_a_changed_url_counts_at_once(pushed: Pushing, queue: Queue, receiver: Receiver) -> None:
    pushed.define(receiver.url("/old"))
    pushed.start()
    queue.offer("1", 1)
    receiver.wait_for_calls(1, "/old")
    pushed.run(pushed.records.put(replace(pushed.entry().endpoint, url=receiver.url("/new"))))
    until(lambda: reaches(queue, receiver, "/new"))


def reaches(queue: Queue, receiver: Receiver, path: str) -> bool:
    queue.offer("again", len(receiver.calls))
    return any(call.path == path for call in receiver.calls)


def test_a_removed_endpoint_leaves_its_messages_in_the_queue(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    opened = threading.Event()
    pushed.define(receiver.will("/a", waits_for(opened, replies(200))), concurrency=1)
    pushed.start()
    for number in range(3):
        queue.offer(str(number), number)
    receiver.wait_for_calls(1)
    pushed.run(pushed.records.remove("shop"))
    until(lambda: queue.stats().due == 2)
    opened.set()
    until(lambda: queue.stats().total == 2)
    assert {each.attempts for each in queue.list().messages} == {0}


def test_a_removed_endpoint_with_a_call_under_way_delays_no_change_and_no_stop(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    pushed.define(receiver.will("/hangs", hostile.hangs), timeout=600_000)
    push = pushed.start()
    queue.offer("a", 1)
    receiver.wait_for_calls(1, "/hangs")
    pushed.run(pushed.records.remove("shop"))
    pushed.define(receiver.url("/other"), "other", queue="others")
    with Queue.open(pushed.url, "others", clock=pushed.clock) as others:
        others.offer("b", 1)
        receiver.wait_for_calls(1, "/other")
    pushed.stop(push, 0)
    (left,) = queue.list().messages
    assert (left.leased_until, left.attempts) == (None, 1)
    assert pushed.run(other_tasks()) == []


async def other_tasks() -> list[asyncio.Task[Any]]:
    """Return the tasks of the push, of which none may be left."""
    return [task for task in asyncio.all_tasks() if "QueuePush" in repr(task.get_coro())]


@pytest.mark.parametrize("looks_before", [True, False])
def test_a_late_answer_to_a_removed_endpoint_does_not_disable_its_successor(
    pushed: Pushing, queue: Queue, receiver: Receiver, *, looks_before: bool
) -> None:
    opened = threading.Event()
    pushed.define(receiver.will("/a", waits_for(opened, replies(410)), replies(200)))
    push = pushed.start()
    queue.offer("a", 1)
    receiver.wait_for_calls(1)
    pushed.run(pushed.records.remove("shop"))
    if looks_before:
        until(lambda: not push.lanes())
    else:
        condition = Condition("disabled", "by a process that has not looked", 0)
        pushed.run(pushed.records.switch_off("shop", condition))
    opened.set()
    until(lambda: queue.stats().leased == 0)
    pushed.define(receiver.url("/a"))
    assert pushed.state() == "active"
    until(lambda: is_empty(queue))


def test_both_secrets_sign_during_the_overlap(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    entry = pushed.define(receiver.url("/a"))
    new = new_secret("v1a")
    now = int(pushed.clock.now().timestamp() * 1000)
    keys = entry.keys.rotated(new, timedelta(hours=1), now)
    pushed.run(pushed.records.put_keys("shop", keys))
    pushed.start()
    queue.offer("1", 1)
    (both,) = receiver.wait_for_calls(1)
    assert is_signed(both, new)
    assert is_signed(both, SECRET)
    pushed.clock.advance(timedelta(hours=1))
    queue.offer("2", 2)
    after = receiver.wait_for_calls(2)[1]
    assert is_signed(after, new)
    assert not is_signed(after, SECRET)


def is_signed(call: Call, secret: str) -> bool:
    headers = call.headers
    identity, timestamp = headers["webhook-id"], int(headers["webhook-timestamp"])
    expected = signature([parse_secret(secret)], identity, timestamp, call.body)
    return expected in headers["webhook-signature"].split(" ")


def test_no_more_calls_at_a_time_than_the_process_may_make(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    opened = threading.Event()
    for identity in ("a", "b"):
        answer = waits_for(opened, replies(200))
        pushed.define(receiver.will(f"/{identity}", answer), identity, default=identity == "a")
    pushed.start(calls=3)
    for number in range(20):
        queue.offer(str(number), number, headers=to("b") if number % 2 else None)
    receiver.wait_for_calls(3)
    assert len(receiver.calls) == 3
    opened.set()
    until(lambda: is_empty(queue))


def test_queues_and_endpoints_take_turns_when_all_calls_are_taken(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    opened = threading.Event()
    pushed.define(receiver.will("/many", waits_for(opened, replies(200)), replies(200)), "many")
    pushed.define(receiver.url("/few"), "few", queue="others")
    push = pushed.start(calls=1)
    for number in range(100):
        queue.offer(str(number), number)
    receiver.wait_for_calls(1, "/many")
    with Queue.open(pushed.url, "others", clock=pushed.clock) as others:
        others.offer("a", 1)
        until(lambda: others.stats().leased == 1)  # it waits for its turn
        until(lambda: all(lane.waiting for lane in push.lanes()))
        opened.set()
        receiver.wait_for_calls(1, "/few")
        until(lambda: is_empty(others))
    until(lambda: is_empty(queue))
    paths = [call.path for call in receiver.calls]
    assert paths.index("/few") <= 2


def test_a_queue_that_makes_all_calls_leases_many_messages_at_a_time(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    pushed.define(receiver.url("/shop"), concurrency=40)
    watch = Watch()
    pushed.start(calls=40, watch=watch)
    queue.offer_batch(Message(str(number), number) for number in range(400))
    until(lambda: is_empty(queue))
    rooms = [each.arguments[0] for each in watch.asked if each.operation == "claim"]
    assert min(rooms) >= 20


def test_an_idle_push_asks_the_store_seldom(pushed: Pushing, receiver: Receiver) -> None:
    """Nothing is polled for an endpoint that gets no calls."""
    pushed.define(receiver.url("/a"))
    pushed.run(pushed.records.switch_off("shop", Condition("disabled", "by a test", 0)))
    watch = Watch()
    pushed.start(watch=watch)
    with Queue.open(pushed.url, "orders", clock=pushed.clock) as queue:
        for number in range(20):
            queue.offer(str(number), number)
            pushed.clock.advance(timedelta(minutes=1))
            pushed.let_work()
        assert queue.stats().leased == 0
    assert [each.operation for each in watch.asked if each.queue == "orders"] == []
