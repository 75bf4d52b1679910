"""What another node does between this one's look and its lock: payloads are made just then."""

from collections.abc import Callable
from datetime import datetime

import pytest

from duequeue import ManualClock, Misfire
from duequeue.contract.cron_phrases import (
    ONE,
    after,
    assert_holds,
    keys,
    messages,
    periodic_keys,
    run_everything_due,
)
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import OpenQueue
from duequeue.contract.phrases import HOUR, MINUTE, SECOND

# On the other face a payload is made on the event loop, which cannot wait for another node.
pytestmark = pytest.mark.parametrize("face", ["sync"], indirect=True)


class Meanwhile:
    """A payload during whose making something happens once, when told to."""

    def __init__(self) -> None:
        self.happening: list[Callable[[], object]] = []

    def __call__(self, at: datetime) -> str:
        while self.happening:
            self.happening.pop()()
        return at.isoformat()


@pytest.fixture
def meanwhile() -> Meanwhile:
    return Meanwhile()


def test_a_newer_configuration_is_not_fought(
    open_queue: OpenQueue, clock: ManualClock, meanwhile: Meanwhile
) -> None:
    old, new = open_queue(), open_queue()
    handle = old.cron.install_periodic_tick("reports", MINUTE, meanwhile)
    meanwhile.happening.append(lambda: new.cron.install_tick(ONE, "reports", messages(7)))
    clock.advance(MINUTE)
    handle.refresh()
    assert meanwhile.happening == []
    assert not handle.active
    assert_holds(new, keys(after(7)))


def test_a_pause_is_kept(open_queue: OpenQueue, clock: ManualClock, meanwhile: Meanwhile) -> None:
    node, operator = open_queue(), open_queue()
    handle = node.cron.install_periodic_tick("reports", MINUTE, meanwhile)
    meanwhile.happening.append(lambda: operator.cron.pause("reports"))
    clock.advance(MINUTE)
    handle.refresh()
    assert meanwhile.happening == []
    assert handle.active
    assert_holds(node, [])
    operator.cron.resume("reports")
    handle.refresh()
    assert_holds(node, periodic_keys(2, 3, 4, 5))


def test_a_pause_is_kept_by_a_first_run(open_queue: OpenQueue, meanwhile: Meanwhile) -> None:
    node, operator = open_queue(), open_queue()
    operator.cron.install_tick(ONE, "reports", messages(1))
    meanwhile.happening.append(lambda: operator.cron.pause("reports"))
    handle = node.cron.install_periodic_tick("reports", MINUTE, meanwhile)
    assert_holds(node, [])
    operator.cron.resume("reports")
    handle.refresh()
    assert_holds(node, periodic_keys(1, 2, 3, 4))


def test_an_uninstallation_is_kept(
    open_queue: OpenQueue, clock: ManualClock, meanwhile: Meanwhile
) -> None:
    node, operator = open_queue(), open_queue()
    handle = node.cron.install_periodic_tick("reports", MINUTE, meanwhile)
    (status,) = operator.cron.list()
    meanwhile.happening.append(lambda: operator.cron.uninstall_tick(status.config_hash, "reports"))
    clock.advance(MINUTE)
    handle.refresh()
    assert not handle.active
    assert_holds(node, [])


def test_what_another_node_made_up_for_is_not_made_up_for_again(
    open_queue: OpenQueue, clock: ManualClock, meanwhile: Meanwhile
) -> None:
    once = Misfire.fire_once()

    def install(queue: QueueFace, payload: object) -> None:
        queue.cron.install_periodic_tick("reports", MINUTE, payload, misfire=once)

    with open_queue("another"):
        with open_queue() as queue:
            install(queue, "hello")
        clock.advance(HOUR)
        ahead = ManualClock(clock.now() + 90 * SECOND)
        first, second = open_queue(), open_queue(clock=ahead)
        meanwhile.happening.append(lambda: install(second, "hello"))
        install(first, meanwhile)
        ahead.advance(-30 * SECOND)
        # The second node's latest missed tick, and the ones that the first still had to come.
        assert run_everything_due(second) == periodic_keys(1, 2, 3, 4, 61)


def test_a_tick_that_another_node_made_and_ran_is_over(
    open_queue: OpenQueue, clock: ManualClock, meanwhile: Meanwhile
) -> None:
    ahead = ManualClock(clock.now())
    node, fast = open_queue(), open_queue(clock=ahead)
    ran: list[str] = []

    def make_and_run() -> None:
        fast.cron.install_periodic_tick("reports", MINUTE, "hello")
        ahead.advance(4 * MINUTE)
        ran.extend(run_everything_due(fast))

    meanwhile.happening.append(make_and_run)
    node.cron.install_periodic_tick("reports", MINUTE, meanwhile)
    clock.advance(4 * MINUTE)
    ran += run_everything_due(node)
    assert ran == periodic_keys(1, 2, 3, 4)
