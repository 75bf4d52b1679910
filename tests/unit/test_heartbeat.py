"""What keeps leases alive."""

from threading import Event

from duequeue.spark.heartbeat import Heartbeat
from tests.race.together import PATIENCE


def test_a_beat_under_way_is_waited_for() -> None:
    begun, stopping, over = Event(), Event(), Event()

    def extend() -> None:
        begun.set()
        assert stopping.wait(PATIENCE)
        over.set()

    heartbeat = Heartbeat(extend, PATIENCE)
    assert begun.wait(PATIENCE)
    stopping.set()
    heartbeat.stop()
    assert over.is_set()


def test_a_beat_that_fails_is_not_the_last() -> None:
    beats: list[int] = []
    twice = Event()

    def extend() -> None:
        beats.append(1)
        if len(beats) == 1:
            raise OSError("the network is down")
        twice.set()

    heartbeat = Heartbeat(extend, 0.001)
    assert twice.wait(PATIENCE)
    heartbeat.stop()
