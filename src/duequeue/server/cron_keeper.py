"""Keeps the crons running that were defined over HTTP, on every server and after every restart.

The definitions are messages of a queue of their own, far in the future. So every store can keep
them, and every server of a database finds them. Each server runs all of them, and the keys of the
ticks make sure that each tick comes once.
"""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from duequeue.callbacks.failures import words_about
from duequeue.cron.cron_async import AsyncCronHandle
from duequeue.cron.installing import any_schedule
from duequeue.errors import DueQueueError
from duequeue.queue_names import CRONS_OF_SERVICE
from duequeue.server import wire
from duequeue.server.cron_schedules import options_of, schedule_of
from duequeue.server.failures import traceback_of
from duequeue.server.payloads import JSON, value_to_stored
from duequeue.server.problems import Problem
from duequeue.server.queues import Queues, ServedQueue

logger = logging.getLogger("duequeue.server")

QUEUE = CRONS_OF_SERVICE
NEVER = datetime(9999, 1, 1, tzinfo=UTC)
# How often a server looks for what others have defined or removed.
LOOK_EVERY = timedelta(seconds=15)
_SEPARATOR = "\x1f"


@dataclass
class RunningCron:
    """A cron that this server runs, and the definition that it was started with."""

    stored: bytes
    definition: wire.CronDefinition
    handle: AsyncCronHandle
    queue: ServedQueue


class CronKeeper:
    """The crons of one server."""

    def __init__(self, queues: Queues, *, looks: bool = True) -> None:
        self._queues = queues
        self._looks = looks
        self._running: dict[str, RunningCron] = {}
        self._lock = asyncio.Lock()
        self._looking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look for definitions from now on, unless that has begun already or is not wanted."""
        if self._looking is None and self._looks:
            self._looking = asyncio.create_task(self._look_again_and_again())

    async def close(self) -> None:
        """Stop looking; closing the queues stops the crons."""
        if self._looking is not None:
            self._looking.cancel()
            with suppress(asyncio.CancelledError):
                await self._looking

    async def define(self, name: str, definition: wire.CronDefinition) -> None:
        """Store a definition and start it; raise if it is not valid."""
        stored = msgspec.json.encode(definition)
        key = _key(definition.queue, name)
        async with self._queues.using(definition.queue, JSON) as queue, self._lock:
            _check(queue, name, definition)
            async with self._queues.using(QUEUE, JSON) as definitions:
                # First, because a cron without a stored definition would stop at the next look.
                await definitions.queue.offer(key, stored, NEVER)
            handle = await self._install(queue, name, definition)
            await self._keep(key, RunningCron(stored, definition, handle, queue))

    async def remove(self, queue_name: str, name: str) -> bool:
        """Remove a cron and its undelivered ticks; return whether there was one."""
        key = _key(queue_name, name)
        async with self._lock, self._queues.using(QUEUE, JSON) as definitions:
            await definitions.queue.drop(key)
            await self._stop(key)
        async with self._queues.using(queue_name, JSON) as queue:
            installed = [each for each in await queue.queue.cron.list() if each.prefix == name]
            for each in installed:
                await queue.queue.cron.uninstall_tick(each.config_hash, name)
        return bool(installed)

    async def find(self, queue_name: str, name: str) -> RunningCron | None:
        """Return a cron that was defined over HTTP, perhaps by another server just now."""
        key = _key(queue_name, name)
        if key not in self._running:
            await self.look()
        return self._running.get(key)

    def is_defined(self, queue_name: str, name: str) -> bool:
        """Return whether this server runs the cron."""
        return _key(queue_name, name) in self._running

    async def look(self) -> None:
        """Start what others have defined, and stop what they have removed."""
        async with self._lock:
            stored = await self._stored()
            for key in self._running.keys() - stored.keys():
                await self._stop(key)
            for key, data in stored.items():
                running = self._running.get(key)
                if running is None or running.stored != data or not running.handle.active:
                    await self._restart(key, data)

    async def _restart(self, key: str, data: bytes) -> None:
        queue_name, _, name = key.partition(_SEPARATOR)
        try:
            definition = msgspec.json.decode(data, type=wire.CronDefinition)
            async with self._queues.using(queue_name, JSON) as queue:
                handle = await self._install(queue, name, definition)
                await self._keep(key, RunningCron(data, definition, handle, queue))
        except (Problem, msgspec.DecodeError, DueQueueError) as error:
            logger.warning("cron %r of queue %r cannot run: %s", name, queue_name, error)
        except Exception as error:  # noqa: BLE001 - the other crons still run
            words = traceback_of(error)
            logger.error("cron %r of queue %r cannot run:\n%s", name, queue_name, words)  # noqa: TRY400 - without its text

    async def _install(
        self, queue: ServedQueue, name: str, definition: wire.CronDefinition
    ) -> AsyncCronHandle:
        payload = value_to_stored(definition.payload, JSON, "payload")
        return await queue.queue.cron.install_schedule(
            name, schedule_of(definition), payload, **options_of(definition)
        )

    async def _keep(self, key: str, running: RunningCron) -> None:
        await self._stop(key)
        running.queue.users += 1
        self._running[key] = running

    async def _stop(self, key: str) -> None:
        running = self._running.pop(key, None)
        if running is not None:
            running.queue.users -= 1
            await running.handle.close()

    async def _stored(self) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        cursor: str | None = None
        async with self._queues.using(QUEUE, JSON) as definitions:
            while True:
                page = await definitions.queue.list(after=cursor, limit=1000)
                found.update((each.key, each.payload) for each in page.messages)
                cursor = page.next
                if cursor is None:
                    return found

    async def _look_again_and_again(self) -> None:
        while True:
            try:
                await self.look()
            except Exception as error:  # noqa: BLE001 - the next look may succeed
                logger.warning("could not look for crons: %s", words_about(error))
            await asyncio.sleep(LOOK_EVERY.total_seconds())


def _check(queue: ServedQueue, name: str, definition: wire.CronDefinition) -> None:
    """Raise for what could not be installed, before it is stored for all servers."""
    payload = value_to_stored(definition.payload, JSON, "payload")
    schedule, options = schedule_of(definition), options_of(definition)
    any_schedule(queue.context, name, schedule, payload, None, options)


def _key(queue_name: str, name: str) -> str:
    return f"{queue_name}{_SEPARATOR}{name}"
