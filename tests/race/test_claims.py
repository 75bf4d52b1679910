"""Many consumers: disjoint claims, within the limit, that wait for nobody."""

from functools import partial
from itertools import chain

from duequeue import Message
from duequeue.contract.fixtures import START
from tests.race.conftest import OpenRival
from tests.race.crew import Crew
from tests.race.parts import claim_all, drain
from tests.race.together import together

KEYS = [f"order-{number:04}" for number in range(1500)]
LIMIT = 7


def test_threads_claim_every_message_once(open_rival: OpenRival) -> None:
    queues = [open_rival() for _ in range(4)]
    queues[0].offer_batch([Message(key, 1) for key in KEYS])
    by_thread = together(*[partial(claim_all, queue, LIMIT) for queue in queues * 2])
    claims = list(chain.from_iterable(by_thread))
    assert sorted(chain.from_iterable(claims)) == [(key, 1) for key in KEYS]
    assert max(map(len, claims)) == LIMIT


def test_processes_claim_every_message_once(
    open_rival: OpenRival, store_url: str, crew: Crew
) -> None:
    open_rival().offer_batch([Message(key, 1) for key in KEYS])
    by_process = crew.together([partial(drain, store_url, LIMIT)] * 4)
    claims = list(chain.from_iterable(by_process))
    assert sorted(chain.from_iterable(claims)) == [(key, 1) for key in KEYS]
    assert max(map(len, claims)) == LIMIT


def test_a_claim_leases_no_more_than_it_returns(open_rival: OpenRival) -> None:
    queues = [open_rival() for _ in range(4)]
    queues[0].offer_batch([Message(key, 1) for key in KEYS])
    claims = together(*[partial(queue.try_poll_many, 5) for queue in queues * 2])
    assert [len(claim) for claim in claims] == [5] * 8
    assert len({delivery.key for claim in claims for delivery in claim}) == 40
    assert (queues[0].stats().leased, queues[0].stats().due) == (40, len(KEYS) - 40)


def test_one_message_has_one_taker(open_rival: OpenRival) -> None:
    queues = [open_rival() for _ in range(4)]
    for number in range(40):
        queues[0].offer("the only one", number, START)
        found = [one for one in together(*[queue.try_poll for queue in queues]) if one]
        assert [(one.payload, one.attempt) for one in found] == [(number, 1)]


def test_consumers_settle_what_they_claimed(open_rival: OpenRival) -> None:
    queues = [open_rival() for _ in range(4)]
    queues[0].offer_batch([Message(key, 1) for key in KEYS])

    def consume(number: int) -> int:
        acked = 0
        while deliveries := queues[number].try_poll_many(50):
            acked += queues[number].ack_many(deliveries)
        return acked

    assert sum(together(*[partial(consume, number) for number in range(4)])) == len(KEYS)
    assert queues[0].stats().total == 0
