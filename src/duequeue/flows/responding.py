"""Answers to messages, and waiting for them."""

from datetime import timedelta
from functools import partial
from math import inf
from time import monotonic
from typing import Any, TypeVar

from duequeue.clock import ManualClock
from duequeue.drive.actions import Flow, Listen
from duequeue.drive.retrying import retrying
from duequeue.errors import InvalidArgument, InvalidType, NotAnswered, UndecodablePayload
from duequeue.flows.arguments import DEFAULT, keep_millis
from duequeue.flows.context import Context
from duequeue.flows.settling import store_answers
from duequeue.instants import nearest_instant, timeout_millis
from duequeue.leased import LeasedMessage
from duequeue.message import checked_key, checked_payload
from duequeue.port.store import Answer, Lease, ResponseLook, StoredResponse
from duequeue.response import Response
from duequeue.wakeups.bell import Bell
from duequeue.wakeups.next_look import pause_before_next_look

T = TypeVar("T")


def answer(
    context: Context[T], message: LeasedMessage[T], response: object, keep: timedelta | None
) -> Flow[bool]:
    """Delete the message, and store the response to it."""
    if response is DEFAULT:
        raise InvalidArgument("keep", "must come with a response, because nothing else is kept")
    answered = answer_of(context, message.lease, response, keep)
    if message.handler_began is not None:
        message.handler_ended(context.now())
        answered = answered._replace(lease=message.lease)
    return _answer(context, message, answered, context.now())


def answer_of(
    context: Context[T], lease: Lease, response: object, keep: timedelta | None
) -> Answer:
    """Return the answer to the message of a lease."""
    payload = encoded_response(context, lease.key, response)
    kept = context.keep if keep is None else keep_millis(keep)
    return Answer(lease, payload, context.now() + kept)


def _answer(context: Context[T], message: LeasedMessage[T], answer: Answer, now: int) -> Flow[bool]:
    message.in_doubt = True
    won = yield from store_answers(context, [answer], now)
    message.in_doubt = False
    return bool(won)


def encoded_response(context: Context[T], key: str, response: object) -> bytes:
    """Encode a response, or raise if that is impossible."""
    try:
        data = context.response_codec.encode(response)
    except (TypeError, ValueError) as error:
        kind = InvalidType if isinstance(error, TypeError) else InvalidArgument
        text = f"the response to {key!r} cannot be encoded: {error}"
        raise kind("response", text=text) from error
    return checked_payload(data, key, "response")


def forget_response(context: Context[T], key: str) -> Flow[bool]:
    """Delete the response of a key."""
    key = checked_key(key)
    return context.run(partial(context.store.forget_response, key, context.now()))


def response(
    context: Context[T], key: str, timeout: timedelta | float | None
) -> Flow[Response | None]:
    """Return the response of a key, waiting for it if need be."""
    millis = None if timeout is None else timeout_millis(timeout)
    return _wait(context, checked_key(key), millis)


def _wait(context: Context[T], key: str, timeout: float | None) -> Flow[Response | None]:
    clock = context.clock
    with context.awaited.bell(key) as bell:
        # A clock that is moved by hand wakes those who wait for it.
        unsubscribe = clock.subscribe(bell.ring_all) if isinstance(clock, ManualClock) else None
        try:
            found = yield from _look_until(context, key, bell, timeout)
        finally:
            if unsubscribe is not None:
                unsubscribe()
    return None if found is None else _response(context, key, found)


def _look_until(
    context: Context[T], key: str, bell: Bell, timeout: float | None
) -> Flow[StoredResponse | None]:
    """Look after each ring of the bell, and every `poll_interval`.

    If the message was there and is gone without a response, none will come.
    """
    began, began_at = monotonic(), context.now()
    gives_up_at = inf if timeout is None else began + timeout / 1000
    was_pending = False
    while True:
        heard = bell.rings
        is_pending, found = yield from _look(context, key, gives_up_at)
        if not is_pending and (found is not None or was_pending):
            return found
        was_pending = is_pending
        now = context.now()
        # As for polls, time passes by the injected clock or by the real one.
        passed = max((monotonic() - began) * 1000, now - began_at)
        left = None if timeout is None else timeout - passed
        next_look = now + context.poll_interval
        pause = pause_before_next_look(now, next_look, left)
        if pause is None:
            return None
        if context.alerts is not None:
            context.alerts.listen(pause, for_answers=True)
        yield Listen(bell, heard, next_look, pause)


def _look(context: Context[T], key: str, gives_up_at: float) -> Flow[ResponseLook]:
    look = partial(context.store.response, key, context.now())
    return retrying(context.retry, look, gives_up_at=gives_up_at, contact=context.contact)


def _response(context: Context[T], key: str, found: StoredResponse) -> Response:
    if found.payload is None:
        raise NotAnswered(found.reason or "")
    try:
        value: Any = context.response_codec.decode(found.payload)
    except Exception as error:
        raise UndecodablePayload(f"the response of {key!r} cannot be decoded: {error!r}") from error
    return Response(value, nearest_instant(found.responded_at))
