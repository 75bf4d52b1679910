"""`duequeue.testing.drain` does at once what a consumer would do with the due messages."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from duequeue import Backoff, Bury, DeliveryLost, Handled, ManualClock, Message, Queue, Retry
from duequeue.contract.cron_phrases import periodic_keys
from duequeue.contract.faces import Blocking, QueueFace
from duequeue.contract.fixtures import OpenQueue
from duequeue.contract.phrases import DAY, HOUR, MINUTE, SECOND, claim, snapshot
from duequeue.message import State
from duequeue.testing import async_drain, drain

Handler = Callable[[Any], object]


def drained(queue: Any, handler: Handler, **options: Any) -> int:
    """Drain a queue of either face with a plain function."""
    if not isinstance(queue, Blocking):
        return drain(queue, handler, **options)

    async def awaited(delivery: Any) -> object:
        return handler(delivery)

    count: int = queue.blocking(async_drain)(queue.awaited, awaited, **options)
    return count


def raising(error: BaseException) -> Handler:
    def handler(_: object) -> object:
        raise error

    return handler


def test_what_is_due_is_handled_in_order_and_acked(queue: QueueFace) -> None:
    queue.offer_batch([Message(f"order-{number}", number, -number * MINUTE) for number in range(5)])
    queue.offer("tomorrow", 1, DAY)
    seen: list[Any] = []
    assert drained(queue, lambda delivery: seen.append(delivery.payload)) == 5
    assert seen == [4, 3, 2, 1, 0]
    assert (queue.stats().total, queue.contains("tomorrow")) == (1, True)
    assert drained(queue, seen.append) == 0


def test_messages_that_the_handler_offers_are_handled_too(queue: QueueFace) -> None:
    queue.offer("order-0", 0)
    seen: list[int] = []

    def handler(delivery: Any) -> None:
        seen.append(delivery.payload)

    for _ in range(3):
        drained(queue, handler)
        queue.offer(f"order-{len(seen)}", len(seen))
    assert seen == [0, 1, 2]


def test_a_failure_puts_a_message_off(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("order-7", 7)
    backoff = Backoff(first=MINUTE, longest=MINUTE)
    assert drained(queue, raising(ValueError("no")), raise_errors=False, backoff=backoff) == 1
    assert drained(queue, raising(ValueError("no")), backoff=backoff) == 0
    clock.advance(MINUTE)
    attempts: list[int] = []
    assert drained(queue, lambda delivery: attempts.append(delivery.attempt)) == 1
    assert attempts == [2]
    assert queue.stats().total == 0


def test_the_first_failure_is_raised_after_its_message_was_released(
    queue: QueueFace, clock: ManualClock
) -> None:
    queue.offer_batch([Message("order-7", 7), Message("order-8", 8)])
    error = AssertionError("the total is wrong")
    backoff = Backoff(first=MINUTE, longest=MINUTE)
    with pytest.raises(AssertionError, match="the total is wrong") as raised:
        drained(queue, raising(error), backoff=backoff)
    assert raised.value is error
    found = snapshot(queue, "order-7")
    assert (found.state, found.attempts) == (State.FUTURE, 1)
    assert found.deliver_at is not None
    assert clock.now() < found.deliver_at <= clock.now() + MINUTE
    assert snapshot(queue, "order-8").attempts == 0


def test_a_failure_is_raised_after_its_burial(queue: Any) -> None:
    heard: list[str] = []

    async def awaited(notice: Any) -> None:
        heard.append(notice.key)

    on_buried = awaited if isinstance(queue, Blocking) else lambda notice: heard.append(notice.key)
    queue.offer("order-7", 7)
    with pytest.raises(LookupError):
        drained(queue, raising(LookupError()), max_attempts=1, on_buried=on_buried)
    assert (queue.stats().buried, heard) == (1, ["order-7"])


def test_a_returned_exception_is_raised_like_any_other(queue: QueueFace) -> None:
    queue.offer("order-7", 7)
    with pytest.raises(ValueError, match="no"):
        drained(queue, lambda _: ValueError("no"))
    queue.offer("order-8", 8)
    with pytest.raises(LookupError):
        drained(queue, lambda _: LookupError)


def test_a_handler_that_fails_after_its_ack_is_raised_too(queue: Any) -> None:
    if isinstance(queue, Blocking):
        pytest.skip("a plain function cannot await the ack")
    queue.offer("order-7", 7)

    def handler(delivery: Any) -> None:
        assert delivery.ack()
        raise ValueError("afterwards")

    with pytest.raises(ValueError, match="afterwards"):
        drained(queue, handler)
    assert queue.stats().total == 0


@pytest.mark.parametrize(
    "verdict", [Retry(HOUR), Bury("enough"), DeliveryLost("dropped")], ids=repr
)
def test_a_verdict_is_never_raised(queue: QueueFace, verdict: Exception) -> None:
    queue.offer_batch([Message("order-7", 7), Message("order-8", 8)])
    assert drained(queue, raising(verdict), max_attempts=1) == 2
    assert queue.stats().due == 0


def test_a_message_that_is_due_again_at_once_counts_again(queue: QueueFace) -> None:
    queue.offer("order-7", 7)
    attempts: list[int] = []

    def handler(delivery: Any) -> object:
        attempts.append(delivery.attempt)
        return Retry(timedelta(0)) if delivery.attempt < 4 else None

    assert drained(queue, handler) == 4
    assert attempts == [1, 2, 3, 4]
    assert queue.stats().total == 0


def test_a_retry_with_a_delay(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("order-7", 7)
    assert drained(queue, raising(Retry(HOUR))) == 1
    assert snapshot(queue, "order-7").attempts == 1
    clock.advance(HOUR)
    assert drained(queue, lambda _: None) == 1


@pytest.mark.parametrize("returned", [True, False], ids=["returned", "raised"])
def test_a_handler_may_bury(queue: QueueFace, returned: bool) -> None:
    queue.offer("order-7", 7)
    bury = Bury("not ours")
    assert drained(queue, (lambda _: bury) if returned else raising(bury)) == 1
    (buried,) = queue.buried(10)
    assert (buried.key, buried.reason) == ("order-7", "not ours")


def test_after_too_many_attempts_a_message_is_buried(open_queue: OpenQueue) -> None:
    queue = open_queue(max_attempts=5)
    queue.offer("order-7", 7)
    again = raising(Retry(timedelta(0)))
    assert drained(queue, again, max_attempts=2) == 2
    assert "max_attempts: failed 2 times" in queue.buried(1)[0].reason
    queue.offer("order-8", 8)
    assert drained(queue, again) == 5


def test_a_message_that_kept_ending_its_process_is_buried_unseen(
    queue: QueueFace, clock: ManualClock
) -> None:
    queue.offer("order-7", 7)
    for _ in range(2):
        claim(queue)
        clock.advance(HOUR)
    assert drained(queue, raising(AssertionError("never called")), max_attempts=2) == 0
    assert len(queue.buried(10)) == 1


def test_rules_by_exception(queue: QueueFace) -> None:
    queue.offer("order-7", 7)
    assert (
        drained(
            queue,
            raising(LookupError("no such order")),
            raise_errors=False,
            bury_on=LookupError,
        )
        == 1
    )
    assert queue.buried(1)[0].reason.startswith("bury_on: LookupError")


def test_the_hook_hears_of_burials(queue: Any) -> None:
    heard: list[str] = []

    async def awaited(notice: Any) -> None:
        heard.append(notice.key)

    on_buried = awaited if isinstance(queue, Blocking) else lambda notice: heard.append(notice.key)
    queue.offer_batch([Message("order-7", 7), Message("order-8", 8)])
    assert drained(queue, lambda _: Bury("not ours"), on_buried=on_buried) == 2
    assert heard == ["order-7", "order-8"]


def test_a_decorated_handler_brings_its_options(queue: Any) -> None:
    decorate = queue.handler(max_attempts=3)

    def again(_: object) -> object:
        return Retry(timedelta(0))

    async def again_awaited(_: object) -> object:
        return Retry(timedelta(0))

    cases: list[tuple[int, Any]] = [(3, {}), (2, {"max_attempts": 2})]
    for most, options in cases:
        queue.offer("order-7", 7)
        if isinstance(queue, Blocking):
            count = queue.blocking(async_drain)(queue.awaited, decorate(again_awaited), **options)
        else:
            count = drain(queue, decorate(again), **options)
        assert count == most


def test_going_in_circles_ends_at_the_limit(queue: QueueFace) -> None:
    queue.offer("order-7", 7)
    calls: list[object] = []

    def handler(delivery: object) -> object:
        calls.append(delivery)
        return Retry(timedelta(0))

    with pytest.raises(RuntimeError, match=r"after 50 messages, queue 'orders' .* 'order-7'"):
        drained(queue, handler, limit=50, max_attempts=None)
    assert len(calls) == 50


def test_ticks_of_a_moved_clock_are_handled(queue: QueueFace, clock: ManualClock) -> None:
    queue.cron.install_periodic_tick("reports", MINUTE, "hello")
    seen: list[str] = []
    for _ in range(10):
        clock.advance(MINUTE)
        assert drained(queue, lambda delivery: seen.append(delivery.key)) == 1
    assert seen == periodic_keys(*range(1, 11))


def test_listeners_hear_of_it(queue: Any) -> None:
    queue.offer("order-7", 7)
    heard: list[Any] = []
    awaited = queue.awaited if isinstance(queue, Blocking) else queue
    awaited.events.subscribe(heard.append)
    drained(queue, raising(ValueError("no")), raise_errors=False, backoff=Backoff(first=SECOND))
    (handled,) = [event for event in heard if isinstance(event, Handled)]
    assert (handled.key, type(handled.error)) == ("order-7", ValueError)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), GeneratorExit()], ids=repr)
def test_an_interruption_is_not_a_failure(open_queue: OpenQueue, error: BaseException) -> None:
    queue = open_queue()
    if isinstance(queue, Blocking):
        pytest.skip("it would end the loop that all tests share")
    queue.offer("order-7", 7)
    with pytest.raises(type(error)):
        drained(queue, raising(error))
    assert queue.stats().leased == 1


@pytest.mark.argument_checks
def test_bad_arguments_are_refused(queue: QueueFace) -> None:
    queue.offer("order-7", 7)
    nothing: Any = None
    some: list[tuple[type[Exception], str, Callable[[], object]]] = [
        (TypeError, "limit", lambda: drained(queue, lambda _: None, limit="10")),
        (TypeError, "backoff", lambda: drained(queue, lambda _: None, backoff=1)),
        (ValueError, "max_attempts", lambda: drained(queue, lambda _: None, max_attempts=0)),
    ]
    if not isinstance(queue, Blocking):
        some.append((TypeError, "handler must be", lambda: drained(queue, nothing)))
    for error, words, call in some:
        with pytest.raises(error, match=words):
            call()
    assert queue.stats().due == 1


@pytest.mark.argument_checks
def test_a_misspelt_option_is_refused(store_url: str) -> None:
    with Queue[Any].open(store_url, "orders") as queue:
        options: Any = {"max_attemps": 3}
        with pytest.raises(TypeError, match="no option 'max_attemps'; did you mean 'max_attempts'"):
            drain(queue, lambda _: None, **options)
