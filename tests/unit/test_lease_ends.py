"""The ends of leases: what is remembered of them, and for how long."""

import tracemalloc

from duequeue.stores.sql.watermark import LeaseEnds

CLAIMS = 5_000


def test_claims_that_are_settled_behind_one_that_is_not_take_no_memory() -> None:
    ends = LeaseEnds()
    ends.add(0, 1, end=100)
    tracemalloc.start()
    try:
        for token in range(1, CLAIMS):
            ends.add(token, 1, end=100 + token)
            ends.settle([token])
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < CLAIMS * 10
    assert not ends.ran_out(99)
    assert ends.ran_out(100)


def test_what_is_held_is_remembered_among_much_that_is_settled() -> None:
    ends = LeaseEnds()
    for token in range(CLAIMS):
        ends.add(token, 2, end=1_000 - token % 100)
        ends.move(token, 2_000 + token)
        ends.settle([token, token] if token % 1_000 else [token])
    assert ends.ran_out(1_000)
    for number in range(5):  # those that were settled in part
        assert not ends.ran_out(1_999 + 1_000 * number)
        assert ends.ran_out(2_000 + 1_000 * number)
    assert not ends.ran_out(10_000)
