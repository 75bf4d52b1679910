"""The bells of those who wait for responses."""

from duequeue.wakeups.awaited import Awaited
from tests.timers.containers import containers_of


def test_a_key_that_nobody_waits_for_any_more_takes_no_room() -> None:
    awaited = Awaited()
    for number in range(100):
        with awaited.bell(str(number)), awaited.bell(str(number)):
            pass
    assert max(len(each) for each in containers_of(awaited)) == 0


def test_each_waits_for_its_own_key() -> None:
    awaited = Awaited()
    with awaited.bell("a") as first, awaited.bell("a") as second, awaited.bell("b") as other:
        awaited.ring(["a", "c"])
        assert (first.rings, second.rings, other.rings) == (1, 1, 0)
