"""The bell: nobody sleeps through a ring, and a cancellation is not lost in one."""

import asyncio
import threading

import pytest

from duequeue.wakeups.bell import Bell

LATER = 10_000
PATIENCE = 30.0


class Sleeper(threading.Thread):
    """Waits for the bell in a thread, for a long time."""

    def __init__(self, bell: Bell, heard: int, looks_at: int = LATER) -> None:
        super().__init__(daemon=True)
        self._bell, self._heard, self._looks_at = bell, heard, looks_at
        self.start()

    def run(self) -> None:
        self._bell.wait(self._heard, self._looks_at, PATIENCE)

    def awoke(self) -> bool:
        self.join(PATIENCE / 2)
        return not self.is_alive()


def test_a_ring_before_the_wait_is_not_missed() -> None:
    bell = Bell()
    heard = bell.rings
    bell.ring(0)
    bell.wait(heard, LATER, PATIENCE)
    asyncio.run(bell.wait_async(heard, LATER, PATIENCE))


def test_a_wait_ends_by_itself() -> None:
    bell = Bell()
    bell.wait(bell.rings, LATER, 0.001)
    asyncio.run(bell.wait_async(bell.rings, LATER, 0.001))


def test_ring_all_wakes_everybody() -> None:
    bell = Bell()
    sleepers = [Sleeper(bell, bell.rings) for _ in range(5)]
    bell.ring_all()
    assert all(sleeper.awoke() for sleeper in sleepers)


def test_a_ring_wakes_a_thread() -> None:
    bell = Bell()
    sleeper = Sleeper(bell, bell.rings)
    bell.ring(LATER - 1)
    assert sleeper.awoke()


def test_a_ring_from_a_thread_wakes_a_task() -> None:
    async def scenario() -> None:
        bell = Bell()
        waiting = asyncio.create_task(bell.wait_async(bell.rings, LATER, PATIENCE))
        await asyncio.sleep(0)
        await asyncio.to_thread(bell.ring, 0)
        await asyncio.wait_for(waiting, PATIENCE / 2)

    asyncio.run(scenario())


def test_a_ring_lets_those_sleep_who_look_in_time() -> None:
    async def scenario() -> None:
        bell = Bell()
        early = asyncio.create_task(bell.wait_async(bell.rings, 100, PATIENCE))
        late = asyncio.create_task(bell.wait_async(bell.rings, 200, PATIENCE))
        await asyncio.sleep(0)
        bell.ring(150)
        await asyncio.wait_for(late, PATIENCE / 2)
        assert not early.done()
        early.cancel()

    asyncio.run(scenario())


def test_a_ring_wakes_one_of_many() -> None:
    async def scenario() -> None:
        bell = Bell()
        waiting = [
            asyncio.create_task(bell.wait_async(bell.rings, LATER, PATIENCE)) for _ in range(3)
        ]
        await asyncio.sleep(0)
        bell.ring(0)
        done, asleep = await asyncio.wait(waiting, return_when="FIRST_COMPLETED")
        assert (len(done), len(asleep)) == (1, 2)
        for task in asleep:
            task.cancel()

    asyncio.run(scenario())


@pytest.mark.parametrize("turns", range(6))
def test_a_cancellation_beside_a_ring_is_not_lost(turns: int) -> None:
    async def scenario() -> bool:
        bell = Bell()
        waiting = asyncio.create_task(bell.wait_async(bell.rings, LATER, PATIENCE))
        await asyncio.sleep(0)
        bell.ring_all()
        for _ in range(turns):
            await asyncio.sleep(0)
        had_ended = waiting.done()
        waiting.cancel()
        await asyncio.wait([waiting])
        return waiting.cancelled() is not had_ended

    assert asyncio.run(scenario())


def test_a_bell_outlives_the_loop_it_wakes() -> None:
    bell = Bell()

    async def scenario() -> None:
        task = asyncio.create_task(bell.wait_async(bell.rings, LATER, PATIENCE))
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(scenario())
    bell.ring_all()
    bell.ring(0)
    assert bell.rings == 2
