"""Delay queues, blocking and awaiting: due order, waiting, many takers, and no item lost."""

import _thread
import asyncio
import inspect
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from duequeue import ManualClock, QueueClosed, timers
from duequeue.contract.faces import Blocking, LoopThread
from duequeue.contract.fixtures import START
from duequeue.contract.phrases import PATIENCE
from duequeue.contract.stage import until
from duequeue.timers import AsyncDelayQueue, DelayQueue, SimpleWheel
from tests.race.interrupting import Interrupter, TimeIsUp
from tests.timers.test_timers import TIMERS

SECOND = timedelta(seconds=1)
PACKAGE = str(Path(inspect.getfile(timers)).parent)

# Any face of a queue; the awaiting one blocks here too, on a loop in another thread.
Make = Callable[..., Any]


@pytest.fixture(params=["sync", "async"])
def make(request: pytest.FixtureRequest) -> Make:
    if request.param == "sync":
        return DelayQueue
    loop: LoopThread = request.getfixturevalue("loop_thread")
    return lambda **options: Blocking(AsyncDelayQueue(**options), loop)


@pytest.fixture
def queue(make: Make, clock: ManualClock) -> Any:
    return make(clock=clock)


def plain(queue: Any) -> Any:
    """The queue itself, of either face."""
    return queue.awaited if isinstance(queue, Blocking) else queue


def begin(call: Callable[[], Any]) -> "Future[Any]":
    """Make a call in a thread of its own."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            future.set_exception(error)

    _thread.start_new_thread(run, ())
    return future


def until_waiting(queue: Any, number: int = 1) -> None:
    """Ask until so many calls wait for an item."""
    until(lambda: len(plain(queue)._pending.bell._waiters) >= number)  # noqa: SLF001


def test_items_come_in_due_order_and_ties_in_insertion_order(
    queue: Any, clock: ManualClock
) -> None:
    for item, seconds in [("d", 3), ("b", 1), ("c", 1), ("a", -5)]:
        queue.put(item, seconds * SECOND)
    assert queue.drain() == ["a"]
    clock.advance(3 * SECOND)
    assert [queue.take(), queue.poll(), queue.take(), queue.poll()] == ["b", "c", "d", None]


def test_nothing_comes_early(queue: Any, clock: ManualClock) -> None:
    queue.put("a", SECOND)
    clock.advance(SECOND - timedelta(milliseconds=1))
    assert (queue.poll(), queue.drain(), len(plain(queue))) == (None, [], 1)
    clock.advance(timedelta(milliseconds=1))
    assert queue.poll() == "a"


def test_due_is_an_instant_a_delay_or_now(queue: Any, clock: ManualClock) -> None:
    queue.put("an instant", START + SECOND)
    queue.put("now")
    queue.put("none", None)
    assert queue.drain() == ["now", "none"]
    clock.advance(SECOND)
    assert queue.drain() == ["an instant"]


@pytest.mark.parametrize(
    ("due", "error", "reason"),
    [
        (datetime(2026, 3, 1), ValueError, "due must be timezone-aware"),  # noqa: DTZ001
        (5, TypeError, "due must be a datetime, a timedelta or None, not int"),
        (timedelta(days=9_999_999), ValueError, "years 1 to 9999"),
    ],
)
def test_bad_due_times(queue: Any, due: Any, error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        queue.put("a", due)
    assert len(plain(queue)) == 0


def test_peek_shows_the_first_item_even_before_it_is_due(queue: Any) -> None:
    assert queue.peek() is None
    queue.put("later", SECOND)
    assert queue.peek() == "later"
    queue.put("now")
    assert (queue.peek(), len(plain(queue))) == ("now", 2)


def test_cancel(queue: Any) -> None:
    handle = queue.put("a")
    assert queue.cancel(handle)
    assert not queue.cancel(handle)
    assert queue.poll() is None
    taken = queue.put("b")
    assert queue.take() == "b"
    assert not queue.cancel(taken)


def test_take_waits_until_the_clock_says_so(queue: Any, clock: ManualClock) -> None:
    queue.put("a", SECOND)
    taking = begin(queue.take)
    until_waiting(queue)
    clock.advance(SECOND)
    assert taking.result(PATIENCE) == "a"


def test_an_earlier_item_wakes_a_taker(queue: Any) -> None:
    queue.put("later", SECOND)
    taking = begin(queue.take)
    until_waiting(queue)
    queue.put("now")
    assert taking.result(PATIENCE) == "now"


def test_a_taker_of_an_empty_queue_is_woken(queue: Any) -> None:
    taking = begin(queue.take)
    until_waiting(queue)
    queue.put("a")
    assert taking.result(PATIENCE) == "a"


def test_a_timeout_passes_on_the_injected_clock(queue: Any, clock: ManualClock) -> None:
    queue.put("a", timedelta(hours=2))
    polling = begin(lambda: queue.poll(timedelta(hours=1)))
    until_waiting(queue)
    clock.advance(timedelta(hours=1))
    assert polling.result(PATIENCE) is None
    assert len(plain(queue)) == 1


def test_a_timeout_passes_in_real_time_too(queue: Any) -> None:
    assert queue.poll(0.001) is None
    assert queue.poll(timedelta(milliseconds=1)) is None


@pytest.mark.parametrize(
    ("timeout", "error"), [(-1, ValueError), ("1", TypeError), (True, TypeError)]
)
def test_bad_timeouts(queue: Any, timeout: Any, error: type[Exception]) -> None:
    queue.put("a")
    with pytest.raises(error, match="timeout must"):
        queue.poll(timeout)
    assert len(plain(queue)) == 1


def test_a_clock_set_back_holds_items_back(queue: Any, clock: ManualClock) -> None:
    queue.put("a", SECOND)
    clock.advance(2 * SECOND)
    clock.set(START)
    assert queue.poll() is None
    clock.advance(SECOND)
    assert queue.take() == "a"


def test_the_clock_of_the_machine(make: Make) -> None:
    queue = make()
    due_at = datetime.now(UTC) + timedelta(milliseconds=5)
    queue.put("a", timedelta(milliseconds=5))
    assert queue.take() == "a"
    assert datetime.now(UTC) >= due_at - timedelta(milliseconds=1)


@pytest.mark.parametrize("clock", [None, object()])
def test_a_clock_has_a_time(make: Make, clock: Any) -> None:
    if clock is None:
        assert make(clock=None).poll() is None
    else:
        with pytest.raises(TypeError, match="clock must have a method now"):
            make(clock=clock)


@pytest.mark.parametrize("timer", [SimpleWheel, 5, "heap"])
def test_a_timer_is_one(make: Make, timer: Any) -> None:
    with pytest.raises(TypeError, match=r"timer must be a timer, such as HierarchicalWheel\(\)"):
        make(timer=timer)


@pytest.mark.parametrize("name", TIMERS)
def test_any_timer_will_do(make: Make, clock: ManualClock, name: str) -> None:
    queue = make(clock=clock, timer=TIMERS[name]())
    for seconds in (3, 1, 2, 1):
        queue.put(seconds, seconds * SECOND)
    assert queue.peek() == 1
    clock.advance(2 * SECOND)
    assert queue.drain() == [1, 1, 2]
    assert len(plain(queue)) == 1


def test_a_bounded_timer_refuses(make: Make, clock: ManualClock) -> None:
    queue = make(clock=clock, timer=SimpleWheel())
    queue.put("now")
    with pytest.raises(ValueError, match="at must be at most"):
        queue.put("in a year", timedelta(days=365))
    assert queue.drain() == ["now"]


def take_many(queue: Any, number: int) -> list[Any]:
    return [queue.take() for _ in range(number)]


def test_each_item_is_taken_once(queue: Any, clock: ManualClock) -> None:
    takers, each = 8, 50
    with ThreadPoolExecutor(takers) as threads:
        taking = [threads.submit(take_many, queue, each) for _ in range(takers)]
        for number in range(takers * each):
            queue.put(number, (number % 3) * SECOND)
            if number % 7 == 0:
                clock.advance(SECOND)
        clock.advance(3 * SECOND)
        taken = [item for future in taking for item in future.result(PATIENCE)]
    assert sorted(taken) == list(range(takers * each))


def test_items_that_are_due_at_once_wake_one_taker_each(queue: Any, clock: ManualClock) -> None:
    taking = [begin(queue.take) for _ in range(4)]
    until_waiting(queue, 4)
    for number in range(4):
        queue.put(number)
    assert sorted(future.result(PATIENCE) for future in taking) == [0, 1, 2, 3]


def test_closing_ends_the_waits(queue: Any) -> None:
    waiting = [begin(queue.take), begin(lambda: queue.poll(None))]
    until_waiting(queue, 2)
    queue.close()
    for future in waiting:
        with pytest.raises(QueueClosed, match="closed"):
            future.result(PATIENCE)


def test_a_closed_queue_refuses_everything(make: Make) -> None:
    queue = make()
    with queue:
        handle = queue.put("a")
    queue.close()
    calls = [queue.take, queue.poll, queue.drain, queue.peek]
    for call in [*calls, lambda: queue.put("b"), lambda: queue.cancel(handle)]:
        with pytest.raises(QueueClosed):
            call()


def test_what_it_looks_like(queue: Any) -> None:
    queue.put("secret")
    assert repr(plain(queue)) == f"<{type(plain(queue)).__name__} with 1 items>"


def test_an_interrupt_ends_a_take_and_loses_nothing(clock: ManualClock) -> None:
    queue: DelayQueue[str] = DelayQueue(clock=clock)
    queue.put("a", SECOND)

    def interrupt() -> None:
        until_waiting(queue)
        _thread.interrupt_main()

    interrupting = begin(interrupt)
    with pytest.raises(KeyboardInterrupt):
        queue.take()
    interrupting.result(PATIENCE)
    clock.advance(SECOND)
    assert queue.poll() == "a"


@pytest.mark.parametrize(
    "call",
    [
        lambda queue: [queue.take()],
        lambda queue: [queue.poll(1)],
        lambda queue: queue.drain(),
    ],
    ids=["take", "poll", "drain"],
)
def test_an_interrupt_at_any_moment_loses_nothing(
    clock: ManualClock, call: Callable[[DelayQueue[int]], list[int]]
) -> None:
    for moment in range(10_000):
        queue: DelayQueue[int] = DelayQueue(clock=clock)
        for number in range(3):
            queue.put(number)
        taken: list[int] = []
        with Interrupter(moment, (PACKAGE,)) as interrupter, suppress(TimeIsUp):
            taken = call(queue)
        assert taken + queue.drain() == [0, 1, 2]
        assert (len(queue), queue.poll()) == (0, None)
        if not interrupter.struck:
            assert moment > 10
            return
    raise AssertionError("the call never ends")


def test_an_interrupted_put_leaves_an_item_or_none(clock: ManualClock) -> None:
    queue: DelayQueue[int] = DelayQueue(clock=clock)
    for number in range(10_000):
        with Interrupter(number, (PACKAGE,)) as interrupter, suppress(TimeIsUp):
            queue.put(number)
        assert queue.drain() in ([], [number])
        assert len(queue) == 0
        if not interrupter.struck:
            return
    raise AssertionError("the call never ends")


def test_a_cancelled_take_leaves_the_item_to_another(clock: ManualClock) -> None:
    async def scenario() -> str:
        queue: AsyncDelayQueue[str] = AsyncDelayQueue(clock=clock)
        first = asyncio.create_task(queue.take())
        second = asyncio.create_task(queue.take())
        await asyncio.sleep(0)
        await queue.put("a")  # wakes the first
        first.cancel()
        return await asyncio.wait_for(second, PATIENCE)

    assert asyncio.run(scenario()) == "a"


def test_a_take_that_ends_in_time_is_not_lost_to_a_timeout(clock: ManualClock) -> None:
    async def scenario() -> None:
        queue: AsyncDelayQueue[int] = AsyncDelayQueue(clock=clock)
        taken: list[int] = []
        for number in range(100):
            taking = asyncio.create_task(queue.take())
            for _ in range(number % 4):
                await asyncio.sleep(0)
            await queue.put(number)
            for _ in range(number // 4 % 4):
                await asyncio.sleep(0)
            taking.cancel()
            with suppress(asyncio.CancelledError):
                taken.append(await taking)
        assert sorted(taken + await queue.drain()) == list(range(100))

    asyncio.run(scenario())


def test_tasks_of_several_loops_share_a_queue() -> None:
    queue: AsyncDelayQueue[str] = AsyncDelayQueue()
    taking = begin(lambda: asyncio.run(queue.take()))
    until_waiting(queue)
    asyncio.run(queue.put("a"))
    assert taking.result(PATIENCE) == "a"
