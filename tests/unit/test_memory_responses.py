"""The responses of the memory store, which do not grow for ever."""

from duequeue.port.store import StoredResponse
from duequeue.stores.memory.table import MemoryResponses
from tests.timers.containers import containers_of

RESPONSE = StoredResponse(b"1", None, 0)


def size(responses: MemoryResponses) -> int:
    return max(len(each) for each in containers_of(responses))


def test_keys_that_are_answered_again_and_again_take_no_more_room() -> None:
    responses = MemoryResponses()
    for number in range(10_000):
        responses.put(f"k{number % 10}", RESPONSE, 1_000_000 + number, now=number)
    assert size(responses) < 200
    assert all(responses.find(f"k{number}", now=10_000) for number in range(10))


def test_forgotten_responses_take_no_room() -> None:
    responses = MemoryResponses()
    for number in range(10_000):
        responses.put(f"k{number}", RESPONSE, 1_000_000, now=number)
        responses.forget(f"k{number}")
    assert size(responses) < 200


def test_responses_expire_after_the_heap_was_built_anew() -> None:
    responses = MemoryResponses()
    for number in range(300):
        responses.put("again", RESPONSE, 1_000 + number, now=0)
    responses.put("late", RESPONSE, 5_000, now=1_299)
    assert responses.find("again", now=0) is None
    assert responses.find("late", now=1_299) is RESPONSE
