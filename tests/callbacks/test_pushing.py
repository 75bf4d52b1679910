"""What the push process makes of the answers of receivers."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import repeat
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from standardwebhooks.webhooks import Webhook

from duequeue import NotAnswered, Queue
from duequeue.callbacks.guard import Guard
from duequeue.callbacks.posting import CallFailed
from duequeue.callbacks.records import QUEUE
from duequeue.contract.stage import until
from duequeue.errors import StoreError
from tests.callbacks import receiver as hostile
from tests.callbacks.pushed import SECRET, START, Pushing, memory_url, pushing
from tests.callbacks.receiver import Receiver, replies, waits_for
from tests.fixtures.watched import Watch


@pytest.fixture(params=["memory", "sqlite"])
def pushed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pushing]:
    url = memory_url() if request.param == "memory" else f"sqlite:///{tmp_path / 'push.db'}"
    with pushing(url, manual=True) as found:
        yield found


@pytest.fixture
def queue(pushed: Pushing) -> Iterator[Queue]:
    with Queue.open(pushed.url, "orders", clock=pushed.clock) as found:
        yield found


def test_a_due_message_is_posted_and_acked(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    pushed.define(receiver.url("/shop"))
    pushed.start()
    due = START + timedelta(seconds=5)
    queue.offer("a/1", {"b": 1, "a": [None, "ü"]}, due, headers={"traceparent": "00-aa-bb-01"})
    assert receiver.calls == []
    pushed.clock.set(due)
    (call,) = receiver.wait_for_calls(1)
    assert call.body == '{"a":[null,"ü"],"b":1}'.encode()
    assert call.headers["content-type"] == "application/json"
    assert call.headers["duequeue-queue"] == "orders"
    assert call.headers["duequeue-key"] == "a/1"
    assert call.headers["duequeue-attempt"] == "1"
    assert call.headers["duequeue-due-at"] == "2030-01-31T09:00:05.000Z"
    assert call.headers["traceparent"] == "00-aa-bb-01"
    # Receivers have no clock but the real one.
    assert Webhook(SECRET).verify(call.body, dict(call.headers)) == {"b": 1, "a": [None, "ü"]}
    assert "." not in call.headers["webhook-id"]
    until(lambda: queue.stats().total == 0)


def settled(queue: Queue) -> None:
    """Wait until the queue is empty."""
    until(lambda: queue.stats().total == 0)


def waits_with_attempts(queue: Queue, key: str, attempts: int) -> None:
    """Wait until a message is free again after this number of attempts."""

    def is_free() -> bool:
        found = queue.read(key)
        return found is not None and found.leased_until is None and found.attempts == attempts

    until(is_free)


@pytest.mark.parametrize(
    ("body", "value"),
    [(b'{"sum":3}', {"sum": 3}), (b"thanks", "thanks"), (b"", None), (b"\xff", None)],
)
def test_the_body_of_the_answer_is_the_response_if_asked_for(
    pushed: Pushing, queue: Queue, receiver: Receiver, body: bytes, value: object
) -> None:
    pushed.define(receiver.will("/shop", replies(201, body)), respond=True, keep=60_000)
    pushed.start()
    queue.offer("a", 1)
    found = queue.response("a", timeout=20)
    assert found is not None
    assert found.value == value
    pushed.clock.advance(timedelta(minutes=1))
    assert queue.response("a", timeout=0) is None


def test_without_being_asked_no_response_is_kept(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    pushed.define(receiver.will("/shop", replies(200, b"1")))
    pushed.start()
    queue.offer("a", 1)
    receiver.wait_for_calls(1)
    settled(queue)
    assert queue.response("a", timeout=0) is None


def test_failures_are_tried_again_with_backoff_and_buried_in_the_end(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    url = receiver.will("/shop", replies(500, b"no stock"))
    pushed.define(url, attempts=3, first_delay=10_000, delay_factor=2.0)
    pushed.start()
    queue.offer("a", 1)
    for attempt, longest in ((1, 10), (2, 20)):
        receiver.wait_for_calls(attempt)
        waits_with_attempts(queue, "a", attempt)
        found = queue.read("a")
        assert found is not None
        assert found.deliver_at is not None
        delay = found.deliver_at - pushed.clock.now()
        assert timedelta(seconds=longest / 2) <= delay <= timedelta(seconds=longest)
        pushed.clock.set(found.deliver_at)
    receiver.wait_for_calls(3)
    until(lambda: bool(queue.buried(10)))
    (buried,) = queue.buried(10)
    assert buried.attempts == 3
    assert buried.reason == (
        "attempts: endpoint shop failed 3 times, the last time: "
        "answered 500 Internal Server Error: no stock"
    )
    assert [call.headers["duequeue-attempt"] for call in receiver.calls] == ["1", "2", "3"]
    assert len({call.headers["webhook-id"] for call in receiver.calls}) == 1
    with pytest.raises(NotAnswered, match="no stock"):
        queue.response("a", timeout=0)


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (hostile.redirects_to("http://169.254.169.254/"), "a redirect to"),
        (hostile.resets, "the connection"),
        (hostile.hangs_up, "closed before an answer"),
        (hostile.hangs, "no answer within"),
        (hostile.drips_its_headers, "no answer within"),
        (hostile.drips_its_body, "did not end within"),
        (hostile.sends_no_http, "not valid HTTP"),
        (replies(404), "answered 404 Not Found"),
        (replies(202, headers={"duequeue-extend": "soon"}), "not a duration"),
    ],
    ids=[
        "redirect",
        "reset",
        "hang-up",
        "hang",
        "slow-headers",
        "slow-body",
        "not-http",
        "404",
        "bad-extend",
    ],
)
@pytest.mark.parametrize("pushed", ["memory"], indirect=True)
def test_what_counts_as_a_failure(
    pushed: Pushing,
    queue: Queue,
    receiver: Receiver,
    behaviour: hostile.Behaviour,
    reason: str,
) -> None:
    timeout = 2_000 if reason.startswith("did not end") else 30_000
    pushed.define(receiver.will("/shop", behaviour), attempts=1, timeout=timeout)
    pushed.start()
    queue.offer("a", 1)
    receiver.wait_for_calls(1)
    if reason.startswith("no answer"):
        pushed.let_pass(30)
    until(lambda: bool(queue.buried(1)))
    (buried,) = queue.buried(1)
    assert reason in buried.reason


def test_the_guard_is_asked(pushed: Pushing, queue: Queue, receiver: Receiver) -> None:
    pushed.define(receiver.url("/shop"), attempts=1)
    pushed.start(Guard("public"))
    queue.offer("a", 1)
    until(lambda: bool(queue.buried(1)))
    (buried,) = queue.buried(1)
    assert "callbacks to 127.0.0.1 are refused" in buried.reason
    assert receiver.calls == []


def test_a_receiver_may_abort_a_message(pushed: Pushing, queue: Queue, receiver: Receiver) -> None:
    url = receiver.will("/shop", replies(400, headers={"webhook-delivery": "abort-message"}))
    pushed.define(url)
    pushed.start()
    queue.offer("a", 1)
    until(lambda: bool(queue.buried(1)))
    (buried,) = queue.buried(1)
    assert buried.attempts == 1
    assert "abort-message" in buried.reason


@pytest.mark.parametrize(
    "answer",
    [replies(410), replies(500, headers={"webhook-delivery": "disable"})],
    ids=["410", "disable"],
)
def test_a_receiver_may_switch_its_endpoint_off(
    pushed: Pushing, queue: Queue, receiver: Receiver, answer: hostile.Behaviour
) -> None:
    pushed.define(receiver.will("/shop", answer, replies(200)))
    pushed.start()
    queue.offer("a", 1)
    until(lambda: pushed.state() == "disabled")
    waits_with_attempts(queue, "a", 0)
    queue.offer("b", 1)
    pushed.clock.advance(timedelta(days=1))
    pushed.let_work()
    assert len(receiver.calls) == 1
    assert pushed.run(pushed.records.switch_on("shop"))
    receiver.wait_for_calls(3)
    settled(queue)
    assert {call.headers["duequeue-attempt"] for call in receiver.calls} == {"1"}
    assert pushed.state() == "active"


def test_an_endpoint_that_is_gone_again_after_it_was_enabled_is_disabled_again(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    pushed.define(receiver.will("/shop", replies(410)))
    pushed.start()
    queue.offer("a", 1)
    until(lambda: pushed.state() == "disabled")
    for calls in (2, 3):
        assert pushed.run(pushed.records.switch_on("shop"))
        receiver.wait_for_calls(calls)
        until(lambda: pushed.state() == "disabled")
        waits_with_attempts(queue, "a", 0)
        assert len(receiver.calls) == calls


def test_a_switch_off_that_could_not_be_stored_counts_and_is_stored_later(
    pushed: Pushing, queue: Queue, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    url = receiver.will("/shop", replies(410))
    pushed.define(url)
    watch = Watch()
    watch.refuse("offer", repeat(StoreError("by a test")), QUEUE)
    pushed.start(watch=watch)
    queue.offer("a", 1)
    until(lambda: "could not store the state of endpoint shop: by a test" in caplog.text)
    assert pushed.state() == "active"
    watch.accept("offer", QUEUE)
    pushed.define(url)  # which makes the push look
    until(lambda: pushed.state() == "disabled")
    assert len(receiver.calls) == 1


def test_a_receiver_may_take_a_message_and_want_no_more(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    pushed.define(receiver.will("/shop", replies(200, headers={"webhook-delivery": "disable"})))
    pushed.start()
    queue.offer("a", 1)
    settled(queue)
    until(lambda: pushed.state() == "disabled")


def test_retry_after_holds_the_whole_endpoint_back(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    url = receiver.will("/shop", replies(429, headers={"Retry-After": "120"}), replies(200))
    pushed.define(url, concurrency=1)
    pushed.start()
    queue.offer("a", 1)
    until(lambda: pushed.state() == "throttled")
    waits_with_attempts(queue, "a", 1)
    queue.offer("b", 1)
    pushed.clock.advance(timedelta(seconds=119))
    pushed.let_work()
    assert len(receiver.calls) == 1
    assert queue.stats().leased == 0
    pushed.clock.advance(timedelta(seconds=1))
    receiver.wait_for_calls(3)
    settled(queue)
    until(lambda: pushed.state() == "active")
    attempts = {
        call.headers["duequeue-key"]: call.headers["duequeue-attempt"] for call in receiver.calls
    }
    assert attempts == {"a": "2", "b": "1"}


def test_retry_after_may_be_a_date_of_the_real_time(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(hours=2), usegmt=True)
    pushed.define(receiver.will("/shop", replies(429, headers={"Retry-After": later})))
    pushed.start()
    queue.offer("a", 1)
    waits_with_attempts(queue, "a", 1)
    found = queue.read("a")
    assert found is not None
    assert found.deliver_at is not None
    assert timedelta(hours=1) < found.deliver_at - START <= timedelta(hours=2)


def test_a_receiver_may_keep_a_message_and_settle_it_later(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    pushed.define(receiver.will("/shop", replies(202, headers={"duequeue-extend": "600"})))
    pushed.start()
    queue.offer("a", 1)
    receiver.wait_for_calls(1)
    until(lambda: leased_until(queue, "a") == START + timedelta(minutes=10))
    pushed.clock.advance(timedelta(seconds=599))
    assert queue.stats().leased == 1

    def comes_again() -> bool:
        pushed.clock.advance(timedelta(seconds=1))  # a push between two polls may miss one move
        return len(receiver.calls) > 1

    until(comes_again)
    assert receiver.calls[1].headers["duequeue-attempt"] == "2"


def leased_until(queue: Queue, key: str) -> datetime | None:
    found = queue.read(key)
    return None if found is None else found.leased_until


def test_an_open_breaker_burns_no_attempts(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    receiver.will("/shop", replies(503))
    pushed.define(receiver.url("/shop"), concurrency=2, first_delay=3_600_000)
    pushed.start()
    for number in range(50):
        queue.offer(f"k{number:02}", number)
    until(lambda: pushed.state() == "open")
    assert "of the last" in pushed.entry().condition(0).reason
    until(lambda: queue.stats().leased == 0)
    called = len(receiver.calls)
    assert called <= 12
    attempts = [each.attempts for each in queue.list(limit=100).messages]
    assert sum(attempts) == called
    pushed.clock.advance(timedelta(seconds=29))
    pushed.let_work()
    assert len(receiver.calls) == called
    pushed.clock.advance(timedelta(seconds=1))  # one probe goes, and fails
    receiver.wait_for_calls(called + 1)
    until(lambda: queue.stats().leased == 0)
    receiver.will("/shop", replies(200))
    pushed.clock.advance(timedelta(seconds=60))
    until(lambda: queue.stats().due == 0)
    until(lambda: pushed.state() == "active")
    pushed.clock.advance(timedelta(hours=1))
    settled(queue)
    assert queue.buried(10) == []


def test_enabling_an_open_endpoint_closes_its_breaker(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    pushed.define(receiver.will("/shop", replies(503)), concurrency=2, first_delay=3_600_000)
    pushed.start()
    for number in range(30):
        queue.offer(f"k{number:02}", number)
    until(lambda: pushed.state() == "open")
    until(lambda: queue.stats().leased == 0)
    receiver.will("/shop", replies(200))
    assert not pushed.run(pushed.records.switch_on("shop"))
    until(lambda: queue.stats().due == 0)
    until(lambda: pushed.state() == "active")


def test_the_rate_is_kept_by_the_clock(pushed: Pushing, queue: Queue, receiver: Receiver) -> None:
    pushed.define(receiver.url("/shop"), rate=2)
    pushed.start()
    for number in range(5):
        queue.offer(f"k{number}", number)
    receiver.wait_for_calls(1)
    until(lambda: queue.stats().total == 4)
    for count in range(2, 6):
        assert queue.stats().leased == 0
        pushed.clock.advance(timedelta(milliseconds=499))
        pushed.let_work()
        assert len(receiver.calls) == count - 1
        pushed.clock.advance(timedelta(milliseconds=1))
        receiver.wait_for_calls(count)
        until(lambda left=5 - count: queue.stats().total == left)  # type: ignore[misc]


def test_no_more_calls_at_a_time_than_allowed(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    opened = threading.Event()
    pushed.define(receiver.will("/shop", waits_for(opened, replies(200))), concurrency=3)
    pushed.start()
    for number in range(20):
        queue.offer(f"k{number}", number)
    receiver.wait_for_calls(3)
    assert len(receiver.calls) == 3
    opened.set()
    receiver.wait_for_calls(20)
    settled(queue)


def test_an_update_takes_the_message_away_from_a_call(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    opened = threading.Event()
    pushed.define(receiver.will("/shop", waits_for(opened, replies(200)), replies(200)))
    pushed.start()
    queue.offer("a", "old")
    receiver.wait_for_calls(1)
    queue.offer("a", "new", START + timedelta(seconds=1))
    opened.set()
    pushed.clock.advance(timedelta(seconds=1))
    old, new = receiver.wait_for_calls(2)
    assert (old.body, new.body) == (b'"old"', b'"new"')
    assert old.headers["webhook-id"] != new.headers["webhook-id"]
    assert new.headers["duequeue-attempt"] == "1"
    settled(queue)
    assert len(receiver.calls) == 2


def test_a_drop_takes_the_message_away_from_a_call(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    opened = threading.Event()
    pushed.define(
        receiver.will("/shop", waits_for(opened, replies(500)), replies(200)), respond=True
    )
    pushed.start()
    queue.offer("a", 1)
    receiver.wait_for_calls(1)
    assert queue.drop("a")
    opened.set()
    queue.offer("b", 1)
    receiver.wait_for_calls(2)
    settled(queue)
    assert queue.buried(1) == []
    with pytest.raises(NotAnswered, match="dropped"):
        queue.response("a", timeout=0)


def test_a_call_whose_lease_is_lost_is_broken_off(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    pushed.define(
        receiver.will("/shop", hostile.hangs, replies(200)), concurrency=1, timeout=60_000
    )
    pushed.start()
    queue.offer("a", "old")
    receiver.wait_for_calls(1)
    queue.offer("a", "new")
    pushed.clock.advance(timedelta(seconds=40))  # the lease is looked at, and found to be lost
    assert receiver.wait_for_calls(2)[1].body == b'"new"'
    settled(queue)


def test_an_unexpected_error_counts_as_a_failed_call(
    pushed: Pushing, queue: Queue, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    pushed.define(receiver.url("/shop"), concurrency=1, attempts=2)
    pushed.start(failures=[RuntimeError("a secret")])
    queue.offer("a", 1)
    waits_with_attempts(queue, "a", 1)
    queue.offer("b", 1)  # the lane goes on
    receiver.wait_for_calls(1)
    assert "unexpected RuntimeError at pushed.py:" in caplog.text
    assert "a secret" not in caplog.text
    pushed.clock.advance(timedelta(seconds=10))
    settled(queue)


def test_a_call_that_could_not_be_made_uses_up_no_attempt(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    pushed.define(receiver.url("/shop"), attempts=1)
    # Hundreds of lookups would have to hang before one fails like this by itself.
    pushed.start(failures=[CallFailed("by a test", blames_endpoint=False)] * 2)
    queue.offer("a", 1)
    (call,) = receiver.wait_for_calls(1)
    assert call.headers["duequeue-attempt"] == "1"
    settled(queue)
    assert queue.buried(1) == []


def test_leases_are_kept_and_messages_settled_after_unexpected_errors_of_the_store(
    pushed: Pushing, queue: Queue, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    opened = threading.Event()
    url = receiver.will("/shop", waits_for(opened, replies(200)), replies(200))
    pushed.define(url, concurrency=1)
    watch = Watch()
    for operation in ("extend", "ack"):
        watch.refuse(operation, [RuntimeError("by a test")])
    pushed.start(watch=watch)
    queue.offer("a", 1)
    receiver.wait_for_calls(1)
    pushed.clock.advance(timedelta(seconds=20))
    until(lambda: "could not extend leases: unexpected RuntimeError" in caplog.text)
    pushed.clock.advance(timedelta(seconds=1))
    until(lambda: (leased_until(queue, "a") or START) > START + timedelta(minutes=1))
    opened.set()
    until(lambda: "could not settle 1 messages: unexpected RuntimeError" in caplog.text)
    pushed.let_pass(1)
    settled(queue)
    assert len(receiver.calls) == 1


def test_a_payload_that_cannot_be_read_is_buried(
    pushed: Pushing, queue: Queue, receiver: Receiver
) -> None:
    pushed.define(receiver.url("/shop"))
    pushed.start()

    class NotJson:
        type_name = "json"

        def encode(self, value: bytes, /) -> bytes:
            return value

        def decode(self, data: bytes, /) -> bytes:
            return data

    with Queue.open(pushed.url, "orders", codec=NotJson(), clock=pushed.clock) as other:
        other.offer("a", b"{")
        other.offer("b", b"{}")
        receiver.wait_for_calls(1)
        settled(queue)
        (buried,) = other.buried(2)
    assert buried.key == "a"
    assert len(receiver.calls) == 1


@pytest.mark.parametrize("type_name", ["text", "bytes"])
def test_texts_and_bytes_are_posted_as_they_are(
    pushed: Pushing, receiver: Receiver, type_name: str
) -> None:
    pushed.define(receiver.url("/shop"), type=type_name)
    pushed.start()
    codec: Any = {"text": str, "bytes": bytes}[type_name]
    with Queue.open(pushed.url, "orders", codec=codec, clock=pushed.clock) as queue:
        queue.offer("a", "ü" if type_name == "text" else b"\x00\xff")
        (call,) = receiver.wait_for_calls(1)
        settled(queue)
    expected = {
        "text": ("ü".encode(), "text/plain; charset=utf-8"),
        "bytes": (b"\x00\xff", "application/octet-stream"),
    }
    assert (call.body, call.headers["content-type"]) == expected[type_name]


def test_odd_keys_survive_in_a_header(pushed: Pushing, queue: Queue, receiver: Receiver) -> None:
    pushed.define(receiver.url("/shop"))
    pushed.start()
    key = " 50%\r\nX-Injected: 1\tü "
    queue.offer(key, 1)
    (call,) = receiver.wait_for_calls(1)
    assert "x-injected" not in call.headers
    assert unquote(call.headers["duequeue-key"]) == key
    settled(queue)
