"""The errors about an argument: their texts, and the way to another process."""

import copy
import pickle

import pytest

from duequeue import InvalidArgument, InvalidType, PayloadTooLarge

REFUSALS = [
    InvalidArgument("due", "must be timezone-aware"),
    InvalidType("due", "must be a datetime"),
    InvalidArgument("url", text="pool_size in the url must be a whole number"),
    PayloadTooLarge("payload of 'k' has 9 bytes"),
]


def test_the_text_begins_with_the_argument() -> None:
    assert str(InvalidArgument("due", "must be timezone-aware")) == "due must be timezone-aware"
    assert str(InvalidType("due", "must be a datetime")) == "due must be a datetime"


def test_a_text_may_be_given_whole() -> None:
    refusal = InvalidArgument("url", text="pool_size in the url must be a whole number")
    assert (refusal.argument, str(refusal)) == (
        "url",
        "pool_size in the url must be a whole number",
    )


def test_a_payload_that_is_too_large_is_a_refused_argument() -> None:
    refusal = PayloadTooLarge("payload of 'k' has 9 bytes")
    assert (refusal.argument, str(refusal)) == ("payload", "payload of 'k' has 9 bytes")


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_it_reaches_another_process(refusal: InvalidArgument | InvalidType, protocol: int) -> None:
    refusal.add_note("a note")
    arrived = pickle.loads(pickle.dumps(refusal, protocol))  # noqa: S301 - our own bytes
    assert type(arrived) is type(refusal)
    assert (str(arrived), arrived.args) == (str(refusal), refusal.args)
    assert (arrived.argument, arrived.__notes__) == (refusal.argument, refusal.__notes__)


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
def test_it_can_be_copied(refusal: InvalidArgument | InvalidType) -> None:
    copied = copy.copy(refusal)
    assert (type(copied), str(copied), copied.argument) == (
        type(refusal),
        str(refusal),
        refusal.argument,
    )
