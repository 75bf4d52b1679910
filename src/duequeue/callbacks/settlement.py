"""Decides what becomes of a message after a callback, without any I/O."""

import msgspec

from duequeue.callbacks.answer import Aborted, Accepted, Kept, Meaning, SwitchedOff, TryLater
from duequeue.callbacks.endpoint import Endpoint
from duequeue.verdict import ACKED, Acked, Parked, Released, Verdict


class GivenBack:
    """The message goes back as if it had never been delivered."""


GIVEN_BACK = GivenBack()


def settlement(meaning: Meaning, endpoint: Endpoint, attempt: int) -> Verdict | Kept | GivenBack:
    """Decide by what the answer means, and by how often the message was delivered."""
    match meaning:
        case Accepted():
            return _acked(meaning, endpoint)
        case Kept():
            return meaning
        case SwitchedOff(accepted=Accepted() as accepted):
            return _acked(accepted, endpoint)
        case SwitchedOff():
            return GIVEN_BACK
        case Aborted(reason):
            return Parked(f"endpoint {endpoint.id} refused it: {reason}")
        case TryLater():
            return _later(meaning, endpoint, attempt)


def _later(failure: TryLater, endpoint: Endpoint, attempt: int) -> Verdict | GivenBack:
    if not failure.was_called:  # it waits at its next lookup, so it needs no delay
        return GIVEN_BACK
    if attempt >= endpoint.attempts:
        times = "once" if attempt == 1 else f"{attempt} times, the last time"
        return Parked(f"attempts: endpoint {endpoint.id} failed {times}: {failure.reason}")
    delay = endpoint.backoff.delay(attempt) if failure.delay is None else failure.delay
    return Released(delay)


def _acked(accepted: Accepted, endpoint: Endpoint) -> Acked:
    return Acked(response_of(accepted.response)) if endpoint.respond else ACKED


def response_of(body: bytes | None) -> bytes:
    """Return the JSON that is kept of the body of an answer.

    JSON stays as it is, and other text becomes a JSON string. A body that is empty, too long,
    compressed or not text is kept as null.
    """
    if not body:
        return b"null"
    try:
        msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    else:
        return body
    try:
        return msgspec.json.encode(body.decode())
    except UnicodeDecodeError:
        return b"null"
