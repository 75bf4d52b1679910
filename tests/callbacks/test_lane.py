"""What the outcomes of calls mean for the calls that follow to the same endpoint."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from duequeue.callbacks.answer import Accepted, Meaning, SwitchedOff, TryLater
from duequeue.callbacks.endpoint import Endpoint
from duequeue.callbacks.lane import Lane
from duequeue.callbacks.records import StoredEndpoint
from duequeue.callbacks.signing import new_keys, new_secret

START = 1_790_000_000_000
PAUSE = 30_000


def lane() -> Lane:
    endpoint = Endpoint(id="shop", queue="orders", url="https://shop.example.com")
    return Lane(StoredEndpoint(endpoint, new_keys(new_secret())), START)


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


@pytest.mark.parametrize("change", ["url", "enabled"])
@pytest.mark.parametrize(
    "outcome",
    [
        SwitchedOff("answered 410"),
        TryLater("answered 500"),
        TryLater("answered 429", timedelta(minutes=1)),
    ],
    ids=["410", "500", "retry-after"],
)
def test_a_call_begun_before_a_new_url_or_enabling_says_nothing_about_the_endpoint_after_it(
    change: str, outcome: Meaning
) -> None:
    found = lane()
    permits = [found.begin(START) for _ in range(10)]
    endpoint, entry = found.endpoint, found.entry
    moved = entry._replace(endpoint=replace(endpoint, url="https://new.example.com"))
    found.update(moved if change == "url" else entry._replace(enabled="again"), START)
    for permit in permits:
        assert permit is not None
        found.end(permit, outcome, START)
    assert state_of(found, START) == "active"
    assert found.running == 0
    assert found.free(START) == endpoint.concurrency
