"""What the outcomes of calls mean for the calls that follow to the same endpoint."""

from duequeue.callbacks.answer import Accepted, Meaning, TryLater
from duequeue.callbacks.endpoint import Endpoint
from duequeue.callbacks.lane import Lane
from duequeue.callbacks.records import Entry
from duequeue.callbacks.signing import new_secret
from duequeue.callbacks.signing_keys import new_keys

START = 1_790_000_000_000
PAUSE = 30_000


def lane() -> Lane:
    endpoint = Endpoint(id="shop", queue="orders", url="https://shop.example.com")
    return Lane(Entry(endpoint, new_keys(new_secret())), START)


def call(lane: Lane, meaning: Meaning, now: int) -> None:
    permit = lane.begin(now)
    assert permit is not None
    lane.end(permit, meaning, now)


def state_of(lane: Lane, now: int) -> str:
    condition = lane.condition(now)
    return "active" if condition is None else condition.state


def opened() -> Lane:
    found = lane()
    for _ in range(10):
        call(found, TryLater("answered 500"), START)
    assert state_of(found, START) == "open"
    return found


def test_a_probe_that_was_never_made_does_not_close_the_breaker() -> None:
    found = opened()
    ours = TryLater("not looked up", blames_endpoint=False, was_called=False)
    call(found, ours, START + PAUSE)
    assert state_of(found, START + PAUSE) == "open"
    call(found, Accepted(None), START + PAUSE)  # another probe may be made at once
    assert state_of(found, START + PAUSE) == "active"


def test_a_refused_message_shows_that_the_endpoint_works() -> None:
    found = opened()
    call(found, TryLater("answered 422", blames_endpoint=False), START + PAUSE)
    assert state_of(found, START + PAUSE) == "active"
