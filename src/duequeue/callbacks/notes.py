"""Stores the states of endpoints, for people to read and for other push processes to obey."""

import asyncio
import logging
from collections.abc import Callable

from duequeue.callbacks.failures import words_about
from duequeue.callbacks.lane import Lane
from duequeue.callbacks.records import Condition, Records

logger = logging.getLogger("duequeue.push")


class Notes:
    """Compares lanes with what is stored about them, and stores what is new.

    A task that reads the endpoints and updates lanes holds `lock` while it does so. Otherwise, it
    could undo a note that was stored after it had read.
    """

    def __init__(self, records: Records, now: Callable[[], int]) -> None:
        self._records = records
        self._now = now
        self._failed: set[Lane] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.lock = asyncio.Lock()

    def on_change(self, lane: Lane) -> None:
        """Store the state of an endpoint soon, if it has changed."""
        if self._is_new(lane):
            task = asyncio.create_task(self._note(lane))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def repeat(self) -> None:
        """Try again to store what could not be stored."""
        failed, self._failed = self._failed, set()
        for lane in failed:
            self.on_change(lane)

    async def close(self) -> None:
        """Wait until everything is stored, or could not be stored."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _note(self, lane: Lane) -> None:
        try:
            async with self.lock:
                if self._is_new(lane):
                    await self._store(lane, lane.condition(self._now()))
        except Exception as error:  # noqa: BLE001 - the next try may succeed
            self._failed.add(lane)
            words = "could not store the state of endpoint %s: %s"
            logger.warning(words, lane.endpoint.id, words_about(error))

    async def _store(self, lane: Lane, condition: Condition | None) -> None:
        identity = lane.endpoint.id
        if condition is not None and condition.state == "disabled":
            if await self._records.switch_off(identity, condition):
                logger.error("endpoint %s is disabled: %s", identity, condition.reason)
        else:
            await self._records.note_health(identity, condition)
            if condition is not None:
                words = "endpoint %s is %s: %s"
                logger.warning(words, identity, condition.state, condition.reason)
        lane.stored(condition)

    def _is_new(self, lane: Lane) -> bool:
        if lane.is_gone:
            return False
        stored = lane.entry.switched_off or lane.entry.health
        return _about(lane.condition(self._now())) != _about(stored)


def _about(condition: Condition | None) -> tuple[str, int | None] | None:
    """Return what distinguishes a condition from the one before."""
    return None if condition is None else (condition.state, condition.until)
