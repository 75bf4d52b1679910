"""What feeder, keeper and stop decide, step by step, without a thread."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import pytest

from duequeue import (
    Backoff,
    Delivery,
    ManualClock,
    Message,
    QueueClosed,
    RetryPolicy,
    State,
    StoreError,
    StoreUnavailable,
)
from duequeue.consumer import roles, stopping
from duequeue.consumer.feeder import Feeder
from duequeue.consumer.handover import Handover
from duequeue.consumer.keeper import GATHER_SECONDS, Keeper
from duequeue.consumer.roles import (
    CLEAN_UP_SECONDS,
    LEAST_SECONDS,
    PAUSE_AFTER_ERROR,
    AwaitFeeder,
    AwaitHandlers,
    AwaitKeeper,
    AwaitRoom,
    AwaitUnsettled,
    CancelHandlers,
    EndHook,
    RoleAction,
    RoleFlow,
)
from duequeue.consumer.stopping import Stopping
from duequeue.consumer.workload import Workload
from duequeue.contract.parts import open_parts
from duequeue.contract.phrases import PickyCodec
from duequeue.drive.actions import Listen, Pause, Run, performer
from duequeue.drive.steps import drive
from duequeue.events.events import Event, LeaseLost, StoreFailed
from duequeue.parts import Parts
from duequeue.verdict import ACKED, Parked, Rules

LEASE = timedelta(minutes=1)
DAY = timedelta(days=1)


class Play:
    """One consumer without threads: its roles, its workload, and a real queue in memory."""

    def __init__(self, parts: Parts, clock: ManualClock) -> None:
        self.queue = parts.queue
        self.perform = performer(parts.session)
        self.clock = clock
        self.handover: Handover[Delivery[Any]] = Handover(10)
        context = parts.context
        deliver = partial(Delivery[Any], partial(drive, perform=self.perform), context)
        self.feeder = Feeder(context, self.handover, deliver)
        self.keeper = Keeper(context, self.handover, Rules(Backoff(), None))
        self.stopping = Stopping(context, self.handover)
        self.events: list[Event] = []
        self.queue.events.subscribe(self.events.append)

    @property
    def workload(self) -> Workload[Delivery[Any]]:
        return self.handover.workload

    def fetched(self, *keys: str) -> list[Delivery[Any]]:
        """Offer messages, and put them where a feeder would."""
        self.queue.offer_batch([Message(key, "fine") for key in keys])
        deliveries = self.queue.try_poll_many(len(keys))
        self.workload.add(deliveries, 10)
        return deliveries

    def running(self, *keys: str) -> list[Delivery[Any]]:
        """Have handlers begin with messages."""
        deliveries = self.fetched(*keys)
        assert [self.workload.take() for _ in keys] == deliveries
        return deliveries

    def told(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]

    def state_of(self, key: str) -> State | None:
        found = self.queue.read(key)
        return None if found is None else found.state


class Actor:
    """Plays a role action by action; operations of the store are really run."""

    def __init__(self, play: Play, role: RoleFlow[None]) -> None:
        self._role = role
        self._perform = play.perform
        self.action: RoleAction | None = None
        self._go_on(lambda: next(role))

    def answer(self, reply: object = None) -> None:
        """Take the action for performed."""
        self._go_on(lambda: self._role.send(reply))

    def fail(self, error: BaseException) -> None:
        """Have the action fail."""
        self._go_on(lambda: self._role.throw(error))

    def run(self) -> None:
        """Run an operation of the store."""
        assert isinstance(self.action, Run)
        self.answer(self._perform(self.action))

    def run_all(self) -> None:
        """Run operations of the store until the role wants something else."""
        while isinstance(self.action, Run):
            self.run()

    def expect(self, action: RoleAction) -> None:
        """Compare the action, and its type too: all that is equal for tuples are the values."""
        assert (type(self.action), self.action) == (type(action), action)

    @property
    def has_ended(self) -> bool:
        return self.action is None

    def _go_on(self, step: Any) -> None:
        try:
            self.action = step()
        except StopIteration:
            self.action = None


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime(2026, 3, 1, 12, tzinfo=UTC))


@pytest.fixture
def retry() -> RetryPolicy:
    return RetryPolicy.never()


@pytest.fixture
def play(clock: ManualClock, retry: RetryPolicy) -> Iterator[Play]:
    url = f"memory:{uuid4().hex}"
    parts = open_parts(url, clock=clock, lease=LEASE, retry=retry, codec=PickyCodec())
    with parts.queue:
        yield Play(parts, clock)


PATIENT = pytest.mark.parametrize("retry", [RetryPolicy(budget=DAY)])


# The feeder.
def test_a_feeder_fetches_what_there_is_room_for(play: Play) -> None:
    play.queue.offer_batch([Message(str(n), "fine") for n in range(5)])
    feeder = Actor(play, play.feeder.run())
    feeder.expect(AwaitRoom())
    feeder.answer(3)
    feeder.run_all()
    feeder.expect(AwaitRoom())
    assert (play.workload.waiting, play.queue.stats().leased) == (3, 3)


def test_a_feeder_without_room_for_ever_ends(play: Play) -> None:
    feeder = Actor(play, play.feeder.run())
    feeder.answer(0)
    assert feeder.has_ended


def test_no_poll_is_begun_once_stopping(play: Play) -> None:
    feeder = Actor(play, play.feeder.run())
    play.workload.stop(hard=False)
    feeder.answer(10)
    assert feeder.has_ended


def test_a_poll_that_waits_is_ended(play: Play) -> None:
    feeder = Actor(play, play.feeder.run())
    feeder.answer(10)
    feeder.run_all()
    assert isinstance(feeder.action, Listen)
    play.workload.stop(hard=False)
    feeder.answer()
    assert feeder.has_ended


def test_a_poll_that_has_claimed_returns_what_it_has(play: Play) -> None:
    play.queue.offer_batch([Message("bad", "rotten"), Message("good", "fine")])
    feeder = Actor(play, play.feeder.run())
    feeder.answer(2)
    feeder.run()  # the claim
    play.workload.stop(hard=False)
    feeder.run_all()  # the burial of what cannot be decoded
    feeder.expect(AwaitRoom())
    assert [message.key for message in play.workload.held()] == ["good"]


@PATIENT
def test_a_poll_that_retries_is_ended(play: Play) -> None:
    feeder = Actor(play, play.feeder.run())
    feeder.answer(10)
    feeder.fail(StoreUnavailable("out for lunch"))
    assert isinstance(feeder.action, Pause)
    play.workload.stop(hard=False)
    feeder.answer()
    assert feeder.has_ended


def test_a_failure_is_reported_and_polling_goes_on(play: Play) -> None:
    feeder = Actor(play, play.feeder.run())
    feeder.answer(10)
    error = StoreError("no such table")
    feeder.fail(error)
    feeder.expect(Pause(PAUSE_AFTER_ERROR))
    assert play.told(StoreFailed) == [StoreFailed("orders", error)]
    feeder.answer()
    feeder.expect(AwaitRoom())


def test_a_closed_queue_ends_every_role(play: Play) -> None:
    feeder = Actor(play, play.feeder.run())
    feeder.answer(10)
    feeder.fail(QueueClosed("closed"))
    assert feeder.has_ended
    workload = play.workload
    assert (workload.stopping, workload.last_round, workload.stopped) == (True, True, True)


def begin_round(keeper: Actor, *, last: bool = False) -> None:
    keeper.expect(AwaitUnsettled(LEASE.total_seconds() / 3))
    keeper.answer(last)
    if not last:
        keeper.expect(Pause(GATHER_SECONDS))
        keeper.answer()


# The keeper.
def test_a_keeper_settles_what_is_handled(play: Play) -> None:
    first, second = play.running("a", "b")
    play.workload.finish(first, ACKED)
    play.workload.finish(second, Parked("enough"))
    keeper = Actor(play, play.keeper.run())
    begin_round(keeper)
    keeper.run_all()
    assert isinstance(keeper.action, AwaitUnsettled)
    assert (play.state_of("a"), play.state_of("b")) == (None, State.BURIED)
    assert play.workload.in_hand == 0


def test_what_fails_is_kept_and_the_others_are_settled(play: Play) -> None:
    first, second = play.running("a", "b")
    play.workload.finish(first, ACKED)
    play.workload.finish(second, Parked("enough"))
    keeper = Actor(play, play.keeper.run())
    begin_round(keeper)
    keeper.fail(StoreError("no acks today"))
    keeper.expect(Pause(PAUSE_AFTER_ERROR))
    keeper.answer()
    keeper.run_all()
    assert (play.state_of("a"), play.state_of("b")) == (State.LEASED, State.BURIED)
    assert play.workload.unsettled == 1
    begin_round(keeper)
    keeper.run_all()
    assert play.state_of("a") is None


def test_leases_that_are_a_third_over_are_extended(play: Play) -> None:
    (delivery,) = play.running("a")
    keeper = Actor(play, play.keeper.run())
    begin_round(keeper)
    assert isinstance(keeper.action, AwaitUnsettled), "it is young"
    play.clock.advance(LEASE / 2)
    begin_round(keeper)
    keeper.run_all()
    assert isinstance(keeper.action, AwaitUnsettled)
    assert delivery.lease_until == play.clock.now() + LEASE


def test_a_lost_lease_is_lost_once_and_never_extended(play: Play) -> None:
    running, waiting = play.fetched("a", "b")
    assert play.workload.take() is running
    keeper = Actor(play, play.keeper.run())
    play.queue.drop_all("orders")
    play.clock.advance(LEASE / 2)
    begin_round(keeper)
    keeper.run_all()
    assert isinstance(keeper.action, CancelHandlers)
    assert {message.key for message in keeper.action.messages} == {"a", "b"}
    assert (running.lost, waiting.lost, play.workload.waiting) == (True, True, 0)
    keeper.answer()
    play.clock.advance(LEASE)
    begin_round(keeper)
    assert isinstance(keeper.action, AwaitUnsettled)
    assert len(play.told(LeaseLost)) == 2


def test_what_is_known_to_be_lost_is_lost_although_the_rest_fails(play: Play) -> None:
    (lost,) = play.running("a")
    play.queue.offer("a", "better")
    (again,) = play.queue.try_poll_many(1)
    assert again.lease.id == lost.lease.id, "so they cannot be extended in one statement"
    play.workload.add([again], 10)
    keeper = Actor(play, play.keeper.run())
    play.clock.advance(LEASE / 2)
    begin_round(keeper)
    keeper.run()
    keeper.fail(StoreError("not today"))
    keeper.expect(Pause(PAUSE_AFTER_ERROR))
    keeper.answer()
    keeper.expect(CancelHandlers([lost], 0))
    assert (lost.lost, again.lost) == (True, False)


def test_a_keeper_ends_after_the_last_round(play: Play) -> None:
    (delivery,) = play.running("a")
    play.workload.finish(delivery, ACKED)
    keeper = Actor(play, play.keeper.run())
    begin_round(keeper, last=True)
    keeper.run_all()
    assert keeper.has_ended
    assert play.state_of("a") is None


@PATIENT
def test_after_a_hard_stop_nothing_is_tried_twice(play: Play) -> None:
    (delivery,) = play.running("a")
    play.workload.finish(delivery, ACKED)
    play.workload.stop(hard=True)
    keeper = Actor(play, play.keeper.run())
    begin_round(keeper, last=True)
    assert isinstance(keeper.action, Run)
    keeper.fail(StoreUnavailable("out for lunch"))
    while isinstance(keeper.action, Pause):  # which ends at once
        keeper.answer()
    assert keeper.has_ended
    assert play.workload.unsettled == 1, "it is left to its lease"


class Time:
    """Real time that passes by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    for module in (roles, stopping):
        monkeypatch.setattr(module, "monotonic", time.monotonic)
    return time


# The stop.
def test_the_order_of_stopping(play: Play, time: Time) -> None:
    overdue, _ = play.fetched("overdue", "waits")
    assert play.workload.take() is overdue
    stop = Actor(play, play.stopping.run(10))
    stop.expect(AwaitFeeder())
    assert play.state_of("waits") is State.LEASED, "the feeder could fetch it again"
    stop.answer()
    stop.run_all()
    assert play.state_of("waits") is State.DUE
    time.now += 4
    stop.expect(AwaitHandlers(10))
    assert (overdue.lost, play.workload.last_round) == (False, False)
    time.now += 6
    stop.answer()
    stop.expect(CancelHandlers([overdue], CLEAN_UP_SECONDS))
    assert (overdue.lost, play.workload.last_round) == (True, True)
    stop.answer()
    stop.expect(AwaitKeeper())
    assert play.state_of("overdue") is State.LEASED, "its handler may still clean up"
    stop.answer()
    stop.run_all()
    stop.expect(EndHook(CLEAN_UP_SECONDS))
    stop.answer()
    assert stop.has_ended
    assert play.state_of("overdue") is State.DUE
    attempts = {each.key: each.attempt for each in play.queue.try_poll_many(2)}
    assert attempts == {"waits": 1, "overdue": 2}


def test_the_grace_begins_with_the_call(play: Play, time: Time) -> None:
    stop = Actor(play, play.stopping.run(10))
    time.now += 4
    stop.answer()
    stop.expect(AwaitHandlers(6))


def test_a_failed_giving_back_does_not_end_a_stop(play: Play) -> None:
    play.fetched("waits")
    stop = Actor(play, play.stopping.run(10))
    stop.answer()
    stop.fail(StoreError("not today"))
    stop.expect(Pause(PAUSE_AFTER_ERROR))
    stop.answer()
    assert isinstance(stop.action, AwaitHandlers)


def test_only_what_is_still_held_is_released(play: Play) -> None:
    settled, lost, overdue = play.running("settled", "lost", "overdue")
    play.workload.lose([lost])
    stop = Actor(play, play.stopping.run(10))
    stop.answer()
    stop.answer()
    assert isinstance(stop.action, CancelHandlers)
    assert stop.action.messages == [settled, overdue], "the other was cancelled before"
    assert settled.ack()  # while it cleans up
    stop.answer()
    stop.answer()
    stop.run_all()
    assert isinstance(stop.action, EndHook)
    stop.answer()
    assert stop.has_ended
    assert play.state_of("lost") is State.LEASED
    assert play.state_of("overdue") is State.DUE
    assert play.told(LeaseLost) == []


@PATIENT
def test_a_stop_gives_up_on_the_store_soon_after_the_grace(play: Play, time: Time) -> None:
    play.fetched("waits")
    stop = Actor(play, play.stopping.run(10))
    stop.answer()
    tries = 0
    while not isinstance(stop.action, AwaitHandlers):
        if isinstance(stop.action, Pause):
            time.now += stop.action.seconds
            stop.answer()
        else:
            assert isinstance(stop.action, Run)
            left = 1000 + 10 + CLEAN_UP_SECONDS - time.now
            assert 0 < stop.action.seconds <= min(CLEAN_UP_SECONDS, max(left, LEAST_SECONDS))
            tries += 1
            stop.fail(StoreUnavailable("out for lunch"))
    assert tries > 2
    assert time.now == 1000 + 10 + CLEAN_UP_SECONDS
    stop.answer()
    stop.expect(CancelHandlers([], 0))


@PATIENT
def test_a_hard_stop_tries_once_and_waits_for_nobody(play: Play) -> None:
    running, _ = play.fetched("runs", "waits")
    assert play.workload.take() is running
    play.workload.stop(hard=True)
    stop = Actor(play, play.stopping.run(3600))
    stop.answer()
    tries = 0
    while not stop.has_ended:
        if isinstance(stop.action, Run):
            tries += 1
            stop.fail(StoreUnavailable("out for lunch"))
        elif isinstance(stop.action, CancelHandlers):
            assert stop.action.seconds == CLEAN_UP_SECONDS
            stop.answer()
        else:
            stop.answer()
    assert tries == 2, "once to give back, once to release"


@PATIENT
def test_a_poll_under_way_cannot_delay_a_stop_for_long(play: Play) -> None:
    feeder = Actor(play, play.feeder.run())
    feeder.answer(10)
    assert isinstance(feeder.action, Run)
    assert feeder.action.seconds == CLEAN_UP_SECONDS


def test_a_closed_queue_is_not_asked_again(play: Play) -> None:
    play.fetched("waits")
    stop = Actor(play, play.stopping.run(10))
    stop.answer()
    stop.fail(QueueClosed("closed"))
    assert isinstance(stop.action, AwaitHandlers)
    assert play.told(StoreFailed) == []
