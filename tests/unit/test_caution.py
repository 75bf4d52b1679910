"""Which messages a consumer handles alone."""

import pytest

from duequeue.consumer.solitude import Caution
from duequeue.leased import LeasedMessage
from duequeue.port.fencing import LEAST, LOST_IN_HAND
from duequeue.port.store import Claimed, Lease

Message = LeasedMessage[bytes]


def message(losses: int, attempt: int) -> Message:
    lease = Lease(1, LEAST + losses, 0, "a")
    return Message("orders", Claimed(lease, "a", b"1", 0, attempt, None, 0), b"1", 1000)


@pytest.mark.parametrize(
    ("losses", "attempt", "max_attempts", "alone"),
    [
        (0, 9, None, False),
        (0, 3, 3, False),
        (1, 2, None, False),
        (1, 2, 3, False),
        (1, 3, 3, True),
        (2, 3, None, True),
        (3, 4, None, True),
        (LOST_IN_HAND, 2, None, True),
    ],
)
def test_a_message_that_may_kill_its_process_is_given_back_until_nothing_else_is_in_hand(
    losses: int, attempt: int, max_attempts: int | None, alone: bool
) -> None:
    caution, found = Caution[Message](max_attempts, concurrency=9), message(losses, attempt)
    assert caution.sort([found]) == (([], [found]) if alone else ([found], []))
    assert caution.limits is alone
    if alone:
        assert (caution.room(1), caution.room(0)) == (0, 1)
        assert caution.sort([found]) == ([found], [])
