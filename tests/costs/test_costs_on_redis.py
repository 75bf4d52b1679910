"""What each call costs on Redis: a change that makes one dearer must say so here."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median_high
from typing import Any, NamedTuple

import pytest

from duequeue import Daily, ManualClock, Queue
from duequeue.contract.phrases import DEFAULT_POLL_INTERVAL
from duequeue.contract.stage import until
from duequeue.stores.redis.keys import QueueKeys
from tests.costs.calls import (
    Calls,
    acks,
    acks_of_many,
    batches,
    extensions,
    fill,
    offers,
    polls,
    polls_in_vain,
    polls_of_many,
    releases,
    repeated_offers,
)
from tests.costs.frames import Frames
from tests.costs.test_frames import assert_at_most, cost_when_warm
from tests.costs.test_frames import fill as fill_a_little
from tests.fixtures.redis_server import RedisServer


class Cost(NamedTuple):
    """The scripts that a call sends, which are its round trips, and the commands in them."""

    scripts: int
    commands: int


class Meter:
    """Reads what the server counts."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server

    def counted(self) -> Counter[str]:
        lines = self._server.ask("INFO", "commandstats").decode().splitlines()
        pairs = [line.split(":", 1) for line in lines if line.startswith("cmdstat_")]
        return Counter(
            {
                name.removeprefix("cmdstat_"): int(about.split(",")[0].removeprefix("calls="))
                for name, about in pairs
            }
        )

    def cost_of(self, call: Callable[[], object]) -> Cost:
        before = self.counted()
        call()
        spent = self.counted() - before
        own = sum(spent[name] for name in ("info", "auth", "select", "client|setinfo", "hello"))
        return Cost(spent["evalsha"], spent.total() - spent["evalsha"] - own)


@pytest.fixture
def meter(redis_server: RedisServer) -> Meter:
    return Meter(redis_server)


@pytest.fixture
def queue(redis_url: str, clock: ManualClock) -> Iterator[Queue[Any]]:
    with Queue.open(redis_url, "orders", clock=clock) as queue:
        yield queue


# A call is one script, however many messages it is about. The number of commands in it does not
# grow with the number of messages, except that a message may have to be replaced by itself.
LIMITS: dict[Calls, Cost] = {
    offers: Cost(1, 4),
    repeated_offers: Cost(1, 3),
    batches: Cost(1, 6),
    polls: Cost(1, 10),
    polls_of_many: Cost(1, 10),
    polls_in_vain: Cost(1, 3),
    acks: Cost(1, 4),
    acks_of_many: Cost(1, 4),
    extensions: Cost(1, 3),
    releases: Cost(1, 4),
}


@pytest.mark.parametrize(
    ("calls", "limit"), LIMITS.items(), ids=[calls.__name__ for calls in LIMITS]
)
def test_a_call_costs_no_more_than(
    meter: Meter, queue: Queue[Any], clock: ManualClock, calls: Calls, limit: Cost
) -> None:
    fill(queue, clock)
    laps = [meter.cost_of(call) for call in calls(queue)]
    usual = Cost(*map(median_high, zip(*laps, strict=True)))
    assert usual.scripts == limit.scripts
    assert usual.commands <= limit.commands


def test_the_look_of_an_idle_consumer_is_one_script(
    meter: Meter, redis_server: RedisServer, redis_url: str, queue: Queue[Any], clock: ManualClock
) -> None:
    looks, database = 20, int(redis_url.rpartition("/")[2])

    def stay_idle() -> None:
        for _ in range(looks):
            sent = meter.counted()["evalsha"]
            clock.advance(DEFAULT_POLL_INTERVAL)
            until(partial(has_sent_more, meter, sent))

    listeners = QueueKeys("orders|json").named("listeners")
    with queue.consume(lambda _: None):
        # Its first look begins before there is a line to others, and does not enter it.
        until(lambda: redis_server.ask("SCARD", listeners, database=database) == 1)
        cost = meter.cost_of(stay_idle)
    assert cost.scripts == looks
    assert cost.commands <= 4 * looks


def has_sent_more(meter: Meter, than: int) -> bool:
    return meter.counted()["evalsha"] > than


def test_an_installation_is_a_read_and_a_commit(meter: Meter, queue: Queue[Any]) -> None:
    queue.cron.install_daily_schedule("warm", Daily(["09:00"], "Europe/Berlin"), "hello").close()
    schedule = Daily(["07:00", "12:00", "19:00"], "Europe/Berlin")
    install = partial(queue.cron.install_daily_schedule, "reports", schedule, "hello")
    assert meter.cost_of(install).scripts <= 3  # with the look that comes first


@pytest.fixture
def timely_queue(redis_url: str) -> Iterator[Queue[Any]]:
    """A queue on the machine's clock, which costs fewer frames than one that is moved by hand."""
    with Queue.open(redis_url, "orders") as queue:
        yield queue


def test_frames_of_an_offer(timely_queue: Queue[Any]) -> None:
    numbers = iter(range(100))
    queue = timely_queue

    def offer() -> None:
        queue.offer(f"order-{next(numbers)}", {"total": 1})

    assert_at_most(Frames(50, 25), cost_when_warm(offer))


def test_frames_of_a_poll_and_an_ack(timely_queue: Queue[Any]) -> None:
    queue = timely_queue
    fill_a_little(queue)
    assert_at_most(Frames(38, 22), cost_when_warm(queue.try_poll))
    fill_a_little(queue)
    deliveries = iter(queue.try_poll_many(8))
    assert_at_most(Frames(32, 21), cost_when_warm(lambda: next(deliveries).ack()))
