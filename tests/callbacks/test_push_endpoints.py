"""Several endpoints of one queue, and changes of endpoints while a push runs."""

import asyncio
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from duequeue import Message, Queue
from duequeue.callbacks.lane import Lane
from duequeue.callbacks.opened_queue import OpenedQueue
from duequeue.callbacks.pushing import Push
from duequeue.callbacks.queue_push import QueuePush
from duequeue.callbacks.records import Condition
from duequeue.callbacks.signing import new_secret, parse_secret, signature
from duequeue.contract.stage import until
from duequeue.errors import StoreError
from tests.callbacks import receiver as hostile
from tests.callbacks.pushed import SECRET, Pushing, memory_url, pushing
from tests.callbacks.receiver import Call, Receiver, replies, waits_for


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
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    pushed.define(receiver.url("/on"), "on", timeout=600_000)
    pushed.define(receiver.url("/off"), "off", default=False)
    pushed.run(pushed.records.switch_off("off", Condition("disabled", "by a test", 0)))
    push = pushed.start()
    keeper = queue_push_of(push)._keeper  # noqa: SLF001 - its waits are not seen from outside
    waits: list[float | None] = []
    wait = keeper._changes.wait  # noqa: SLF001

    async def noted(seconds: float | None) -> None:
        waits.append(seconds)
        await wait(seconds)

    keeper._changes.wait = noted  # type: ignore[method-assign]  # noqa: SLF001
    pushed.define(receiver.url("/on"), "on", timeout=30_000)
    until(lambda: waits[-1:] == [15.0])


def test_a_message_that_is_leased_again_waits_once(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    pushed.define(receiver.url("/on"), "on")
    pushed.define(receiver.url("/off"), "off", default=False)
    pushed.run(pushed.records.switch_off("off", Condition("disabled", "by a test", 0)))
    push = pushed.start()
    found = queue_push_of(push)
    pushed.run(found._keeper.close())  # noqa: SLF001 - as if it came too late
    queue.offer("a", 1, headers=to("off"))
    for attempt in (1, 2, 3):
        until(lambda attempt=attempt: attempts_of(queue, "a") == attempt)  # type: ignore[misc]
        pushed.clock.advance(timedelta(minutes=1))
    until(lambda: attempts_of(queue, "a") == 4)
    until(lambda: [each.attempt for each in found._held.values()] == [4])  # noqa: SLF001
    assert found._lanes._waiting == 1  # noqa: SLF001


def attempts_of(queue: Queue, key: str) -> int:
    found = queue.read(key)
    assert found is not None
    return found.attempts


def queue_push_of(push: Push) -> QueuePush:
    """Return the push of the only queue that has endpoints."""
    ((_, found),) = push._pushes.values()  # noqa: SLF001 - it is not seen from outside
    return found


def test_a_lease_that_is_lost_before_its_call_begins_holds_up_no_other_call(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    pushed.define(receiver.url("/shop"), concurrency=1)
    found = queue_push_of(pushed.start(calls=1))
    begin = found._begin_calls_of  # noqa: SLF001 - no other thread can come in between

    def loses_the_first(lane: Lane, now: int) -> None:
        begin(lane, now)
        (message,) = found._held.values()  # noqa: SLF001
        assert message.call is not None
        found._begin_calls_of = begin  # type: ignore[method-assign] # noqa: SLF001
        message.lost = True
        found._on_lost(message)  # noqa: SLF001

    found._begin_calls_of = loses_the_first  # type: ignore[method-assign] # noqa: SLF001
    queue.offer("a", 1)
    until(lambda: attempts_of(queue, "a") == 1)
    queue.offer("b", 2)
    (call,) = receiver.wait_for_calls(1)
    assert call.headers["duequeue-key"] == "b"
    until(lambda: queue.stats().total == 1)  # the lease of the other one has not ended yet


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
    pushed.run(pushed.records._store("endpoint/new", newer))  # noqa: SLF001 - no version can do so
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
    push = pushed.start()
    records = push._records  # noqa: SLF001 - only the push must fail
    look = records.all

    async def fails_once() -> Any:
        records.all = look  # type: ignore[method-assign]
        raise RuntimeError("a secret")

    records.all = fails_once  # type: ignore[method-assign]
    pushed.define(receiver.url("/shop"))
    until(lambda: "could not look for endpoints: unexpected RuntimeError at" in caplog.text)
    assert "a secret" not in caplog.text
    pushed.define(receiver.url("/shop"))
    until(lambda: bool(push._pushes))  # noqa: SLF001 - it is not seen from outside


def test_a_queue_that_cannot_be_opened_holds_up_no_other(
    pushed: Pushing,
    queue: Queue,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    opens, failing = OpenedQueue.open, True

    async def fails_for_one(settings: Any, name: str, *more: Any, **options: Any) -> OpenedQueue:
        if failing and name == "broken":
            raise StoreError("by a test")
        return await opens(settings, name, *more, **options)

    monkeypatch.setattr(OpenedQueue, "open", fails_for_one)
    pushed.define(receiver.url("/first"), "first", queue="broken")
    pushed.define(receiver.url("/shop"))
    pushed.start()
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
        until(lambda: not push._pushes)  # noqa: SLF001 - it is not seen from outside
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
        pushes = [each for _, each in push._pushes.values()]  # noqa: SLF001
        until(lambda: all(each._lanes.busy() for each in pushes))  # noqa: SLF001
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
    queue_push = queue_push_of(pushed.start(calls=40))
    rooms: list[int] = []
    fetch = queue_push._fetch  # noqa: SLF001

    async def counted(room: int, seconds: float | None) -> None:
        rooms.append(room)
        await fetch(room, seconds)

    queue_push._fetch = counted  # type: ignore[method-assign] # noqa: SLF001
    queue.offer_batch(Message(str(number), number) for number in range(400))
    until(lambda: is_empty(queue))
    assert min(rooms) >= 20


def test_an_idle_push_asks_the_store_seldom(pushed: Pushing, receiver: Receiver) -> None:
    """Nothing is polled for an endpoint that gets no calls."""
    pushed.define(receiver.url("/a"))
    pushed.run(pushed.records.switch_off("shop", Condition("disabled", "by a test", 0)))
    push = pushed.start()
    queue_push = queue_push_of(push)
    looks: list[Any] = []
    perform = queue_push._perform  # noqa: SLF001

    async def counted(action: Any) -> object:
        looks.append(action)
        return await perform(action)

    queue_push._perform = counted  # noqa: SLF001
    with Queue.open(pushed.url, "orders", clock=pushed.clock) as queue:
        for number in range(20):
            queue.offer(str(number), number)
            pushed.clock.advance(timedelta(minutes=1))
            pushed.let_work()
        assert queue.stats().leased == 0
    assert looks == []
