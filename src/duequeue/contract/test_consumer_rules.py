"""Consumers with rules: which exceptions are retried, which bury, and calls of `on_buried`."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from typing import Any

import pytest

from duequeue import Backoff, BurialNotice, Bury, Handled, ManualClock, Message, Retry
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import Consume, OpenQueue
from duequeue.contract.phrases import (
    DEFAULT_LEASE,
    HOUR,
    MILLISECOND,
    PATIENCE,
    PickyCodec,
    claim,
)
from duequeue.contract.stage import Stage, until, until_gone
from duequeue.message import State

LATER = Backoff(first=HOUR, longest=HOUR)


class BankError(Exception):
    """A failure of the bank."""


class NoSuchAccount(BankError):
    """A failure that no retry can repair."""


RULES: dict[str, tuple[dict[str, Any], dict[type[BaseException], State]]] = {
    "neither": ({}, {BankError: State.FUTURE, KeyError: State.FUTURE}),
    "bury_on": (
        {"bury_on": (KeyError, NoSuchAccount)},
        {NoSuchAccount: State.BURIED, BankError: State.FUTURE, ValueError: State.FUTURE},
    ),
    "retry_on": (
        {"retry_on": (BankError,)},
        {NoSuchAccount: State.FUTURE, BankError: State.FUTURE, ValueError: State.BURIED},
    ),
    "one type each": (
        {"retry_on": BankError, "bury_on": LookupError},
        {BankError: State.FUTURE, KeyError: State.BURIED, ValueError: State.BURIED},
    ),
    "nothing is retried": (
        {"retry_on": ()},
        {BankError: State.BURIED, Retry: State.FUTURE, SystemExit: State.FUTURE},
    ),
    "the more specific buries": (
        {"retry_on": BankError, "bury_on": NoSuchAccount},
        {NoSuchAccount: State.BURIED, BankError: State.FUTURE},
    ),
    "the more specific retries": (
        {"retry_on": NoSuchAccount, "bury_on": BankError},
        {NoSuchAccount: State.FUTURE, BankError: State.BURIED},
    ),
    "what is not an Exception buries only by name": (
        {"retry_on": BankError, "bury_on": SystemExit},
        {SystemExit: State.BURIED},
    ),
}


@pytest.mark.parametrize(("rules", "states"), RULES.values(), ids=RULES)
def test_rules_by_exception(
    queue: QueueFace,
    consume: Consume,
    rules: dict[str, Any],
    states: dict[type[BaseException], State],
) -> None:
    by_name = {each.__name__: each for each in states}

    def fail(delivery: Any) -> None:
        raise by_name[delivery.key]

    queue.offer_batch([Message(name, 1) for name in by_name])
    consume(queue, fail, backoff=LATER, **rules)
    for name, raised in by_name.items():
        until(partial(has_state, queue, name, states[raised]))


def has_state(queue: QueueFace, key: str, state: State) -> bool:
    found = queue.read(key)
    return found is not None and (found.state, found.attempts) == (state, 1)


def test_the_reason_says_which_rule_and_what_happened(
    queue: QueueFace, consume: Consume, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(delivery: Any) -> None:
        raise NoSuchAccount("account 7") if delivery.key == "a" else ValueError("eight")

    queue.offer_batch([Message("a", 1), Message("b", 1)])
    consume(queue, fail, retry_on=BankError, bury_on=NoSuchAccount)
    until(lambda: queue.stats().buried == 2)
    reasons = {message.key: message.reason for message in queue.buried(10)}
    assert reasons["a"].startswith("bury_on: NoSuchAccount is not retried")
    assert "account 7" in reasons["a"]
    assert reasons["b"].startswith("retry_on: ValueError is not one of its types")
    assert "ValueError: eight" in reasons["b"]
    assert "'a' failed (attempt 1 of 25) and is buried because of bury_on: " in caplog.text
    assert "'b' failed (attempt 1 of 25) and is buried because of retry_on: " in caplog.text


def test_a_decision_of_the_handler_comes_before_the_rules(
    queue: QueueFace, consume: Consume
) -> None:
    def decide(delivery: Any) -> None:
        raise Bury("as decided") if delivery.key == "bury" else Retry(HOUR)

    queue.offer_batch([Message("bury", 1), Message("retry", 1)])
    consume(queue, decide, retry_on=Bury, bury_on=Retry)
    until(partial(has_state, queue, "retry", State.FUTURE))
    until(partial(has_state, queue, "bury", State.BURIED))
    assert queue.buried(1)[0].reason == "as decided"


def test_max_attempts_holds_for_what_is_retried(queue: QueueFace, consume: Consume) -> None:
    queue.offer("a", 1)
    consume(queue, lambda _: BankError("closed"), retry_on=BankError, max_attempts=1)
    until(partial(has_state, queue, "a", State.BURIED))
    assert queue.buried(1)[0].reason.startswith("max_attempts: failed 1 times")


def test_a_timeout_counts_as_a_timeout_error(
    queue: QueueFace, stage: Stage, consume: Consume
) -> None:
    queue.offer("a", 1)
    consume(queue, timeout=20 * MILLISECOND, bury_on=TimeoutError)
    stage.next()
    until(partial(has_state, queue, "a", State.BURIED))
    assert queue.buried(1)[0].reason.startswith("bury_on: TimeoutError is not retried")


@pytest.mark.argument_checks
@pytest.mark.parametrize("argument", ["retry_on", "bury_on"])
@pytest.mark.parametrize("types", [ValueError("boom"), "ValueError", [ValueError], (ValueError, 7)])
def test_rules_must_be_exception_types(
    queue: QueueFace, consume: Consume, argument: str, types: object
) -> None:
    rules: dict[str, Any] = {argument: types}
    with pytest.raises(TypeError, match=f"{argument} must be an exception type"):
        consume(queue, **rules)


@pytest.mark.argument_checks
def test_the_same_type_cannot_be_both_retried_and_buried(
    queue: QueueFace, consume: Consume
) -> None:
    with pytest.raises(ValueError, match="must not both name KeyError"):
        consume(queue, retry_on=(KeyError, OSError), bury_on=KeyError)


# on_buried


class Hook:
    """A hook of either face, which keeps what it is given."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._notices: SimpleQueue[BurialNotice[Any]] = SimpleQueue()

    def next(self) -> BurialNotice[Any]:
        return self._notices.get(timeout=PATIENCE)

    @property
    def is_empty(self) -> bool:
        return self._notices.empty()

    @property
    def suited(self) -> Callable[[BurialNotice[Any]], object]:
        return suited(self._notices.put, self._stage)


def suited(
    call: Callable[[BurialNotice[Any]], object], stage: Stage
) -> Callable[[BurialNotice[Any]], object]:
    async def awaited(notice: BurialNotice[Any]) -> object:
        return call(notice)

    return call if stage.on_threads else awaited


BURYING: dict[str, tuple[Callable[[Any], object], dict[str, Any]]] = {
    "by the handler": (lambda _: Bury("enough"), {}),
    "by attempts": (lambda _: BankError("enough"), {"max_attempts": 1}),
    "by a rule": (lambda _: BankError("enough"), {"bury_on": BankError}),
}


@pytest.mark.parametrize(("handler", "rules"), BURYING.values(), ids=BURYING)
def test_the_hook_learns_of_a_burial(
    queue: QueueFace,
    stage: Stage,
    consume: Consume,
    clock: ManualClock,
    handler: Callable[[Any], object],
    rules: dict[str, Any],
) -> None:
    hook = Hook(stage)
    queue.offer("a", {"total": 40}, headers={"trace": "1"})
    consume(queue, handler, on_buried=hook.suited, **rules)
    notice = hook.next()
    assert (notice.queue_name, notice.key, notice.payload) == ("orders", "a", {"total": 40})
    assert (notice.attempts, notice.due_at, notice.headers) == (1, clock.now(), {"trace": "1"})
    assert "enough" in notice.reason
    assert queue.buried(1)[0].reason == notice.reason
    assert hook.is_empty


def test_the_hook_learns_of_a_burial_by_the_delivery_itself(
    queue: QueueFace, stage: Stage, consume: Consume
) -> None:
    hook = Hook(stage)
    queue.offer("a", 1)
    consume(queue, on_buried=hook.suited)
    scene = stage.next()
    assert scene.delivery.bury("enough")
    assert (hook.next().reason, hook.is_empty) == ("enough", True)


def test_the_hook_learns_of_what_cannot_be_decoded(
    open_queue: OpenQueue, stage: Stage, consume: Consume
) -> None:
    hook = Hook(stage)
    queue = open_queue(codec=PickyCodec())
    queue.offer("bad", "rotten")
    consume(queue, lambda _: None, on_buried=hook.suited)
    notice = hook.next()
    assert (notice.key, notice.payload, notice.attempts) == ("bad", None, 1)
    assert "undecodable payload" in notice.reason


def test_the_hook_learns_of_what_was_delivered_too_often(
    queue: QueueFace, stage: Stage, consume: Consume, clock: ManualClock
) -> None:
    hook = Hook(stage)
    queue.offer("deadly", {"total": 40})
    claim(queue)
    clock.advance(DEFAULT_LEASE)
    consume(queue, lambda _: None, max_attempts=1, on_buried=hook.suited)
    notice = hook.next()
    assert (notice.key, notice.payload, notice.attempts) == ("deadly", {"total": 40}, 1)
    assert "delivered 1 times without an ack" in notice.reason


def test_a_burial_that_did_not_win_is_not_reported(
    queue: QueueFace, stage: Stage, consume: Consume
) -> None:
    hook = Hook(stage)
    queue.offer("a", 1)
    with consume(queue, on_buried=hook.suited):
        scene = stage.next()
        queue.drop("a")
        scene.end(Bury("too late"))
    assert hook.is_empty
    assert queue.buried(1) == []


def test_an_error_in_the_hook_does_no_harm(
    queue: QueueFace, stage: Stage, consume: Consume, caplog: pytest.LogCaptureFixture
) -> None:
    called: SimpleQueue[str] = SimpleQueue()

    errors: dict[str, BaseException] = {
        "a": SystemExit(),
        "b": asyncio.CancelledError("what the hook waited for"),
        "c": ValueError("the hook is broken"),
    }

    def fail(notice: BurialNotice[Any]) -> None:
        called.put(notice.key)
        raise errors[notice.key]

    queue.offer_batch([Message(key, 1) for key in errors])
    with (
        caplog.at_level(logging.ERROR, "duequeue.consumer"),
        consume(queue, lambda _: Bury("no"), on_buried=suited(fail, stage), concurrency=1),
    ):
        assert {called.get(timeout=PATIENCE) for _ in errors} == {"a", "b", "c"}
    assert queue.stats().buried == 3
    for key in errors:
        assert f"on_buried failed for {key!r}, which stays buried" in caplog.text


def test_a_slow_hook_delays_no_handler_but_a_stop_waits_for_it(
    queue: QueueFace, stage: Stage, consume: Consume
) -> None:
    may_go_on: Future[None] = Future()
    began: SimpleQueue[str] = SimpleQueue()
    ended: list[str] = []

    def wait(notice: BurialNotice[Any]) -> None:
        began.put(notice.key)
        may_go_on.result(PATIENCE)
        ended.append(notice.key)

    async def wait_async(notice: BurialNotice[Any]) -> None:
        began.put(notice.key)
        await asyncio.wrap_future(may_go_on)
        ended.append(notice.key)

    queue.offer("bury", 1)
    hook = wait if stage.on_threads else wait_async
    with consume(queue, lambda each: Bury("no") if each.key == "bury" else None, on_buried=hook):
        assert began.get(timeout=PATIENCE) == "bury"
        queue.offer("ack", 1)
        until_gone(queue, "ack")
        assert ended == []
        may_go_on.set_result(None)
    assert ended == ["bury"]


def test_a_hook_may_stop_the_queue(queue: QueueFace, stage: Stage, consume: Consume) -> None:
    closed: Future[None] = Future()
    awaited: Any = getattr(queue, "awaited", queue)

    def close(_: BurialNotice[Any]) -> None:
        awaited.close()
        closed.set_result(None)

    async def close_async(_: BurialNotice[Any]) -> None:
        await awaited.close()
        closed.set_result(None)

    queue.offer("a", 1)
    hook = close if stage.on_threads else close_async
    consume(queue, lambda _: Bury("no"), on_buried=hook)
    closed.result(PATIENCE)


class PlainHook:
    def learn(self, notice: object) -> None: ...


class AwaitedHook:
    async def learn(self, notice: object) -> None: ...
    async def __call__(self, notice: object) -> None: ...


def test_the_hook_must_suit_the_face(queue: QueueFace, stage: Stage, consume: Consume) -> None:
    def plain(_: object) -> None: ...

    async def coroutine_function(_: object) -> None: ...

    awaited = (coroutine_function, AwaitedHook().learn, AwaitedHook())
    wrong: tuple[Any, ...] = awaited if stage.on_threads else (plain, PlainHook().learn)
    for hook in (*wrong, "not a function"):
        with pytest.raises(TypeError, match="on_buried must be a"):
            consume(queue, on_buried=hook)


def test_handled_events_show_what_a_rule_did(queue: QueueFace, consume: Consume) -> None:
    handled: SimpleQueue[Handled] = SimpleQueue()
    queue_of_either_face: Any = queue
    queue_of_either_face.events.subscribe(
        lambda event: handled.put(event) if isinstance(event, Handled) else None
    )
    queue.offer("a", 1)
    consume(queue, lambda _: BankError("closed"), bury_on=BankError)
    assert handled.get(timeout=PATIENCE).outcome == "buried"
