"""Keeps the leases of a push process alive, and breaks off calls whose lease is lost."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from datetime import timedelta
from hashlib import blake2b
from typing import Any

from duequeue.callbacks.failures import words_about
from duequeue.callbacks.waits import Changes
from duequeue.consumer.keeper import BUSY_SECONDS, extend_leases
from duequeue.drive.actions import Flow
from duequeue.flows import settling
from duequeue.flows.context import Context
from duequeue.leased import LeasedMessage
from duequeue.port.store import Claimed

logger = logging.getLogger("duequeue.push")


class Held(LeasedMessage[bytes]):
    """A leased message, and the call that is under way for it."""

    __slots__ = ("call", "scheduled_at")

    def __init__(self, queue_name: str, claimed: Claimed, payload: bytes, lease_until: int) -> None:
        super().__init__(queue_name, claimed, payload, lease_until)
        self.scheduled_at = claimed.due_at
        self.call: asyncio.Task[None] | None = None

    def webhook_id(self, kind: str) -> str:
        """Return the id of this incarnation: the same over all attempts, another after an update.

        An update keeps the id of a row, so the id alone would make a receiver that remembers ids
        ignore the new content.
        """
        parts = (kind, self.key, str(self.lease.id), str(self.due_millis))
        digest = blake2b("\0".join(parts).encode() + b"\0" + self.payload, digest_size=16)
        return f"msg_{digest.hexdigest()}"


class LeaseKeeper:
    """Extends each lease when a third of it is over.

    A call is usually over by then, so most of these leases are of messages that wait.
    """

    def __init__(
        self,
        context: Callable[[], Context[bytes]],
        drive: Callable[[Flow[Any]], Awaitable[Any]],
        held: Callable[[], Collection[Held]],
        on_lost: Callable[[Held], None],
    ) -> None:
        self._context = context
        self._drive = drive
        self._held = held
        self._on_lost = on_lost
        self._changes = Changes()
        self._idle = asyncio.Event()  # set unless leases are being extended
        self._idle.set()
        self._task = asyncio.create_task(self._run())

    def note(self) -> None:
        """Find out again how long leases last."""
        self._changes.note()

    async def extend_once(self, message: Held, lease: timedelta) -> None:
        """Extend the lease of a message for its receiver, who settles it from now on."""
        message.settled = True
        await self._idle.wait()  # else an extension that has begun could replace this longer one
        await self._drive(settling.extend(self._context(), message, lease))

    async def close(self) -> None:
        """Stop extending leases."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        some_busy = False
        with self._changes.following(self._context().clock):
            while True:
                third = self._context().lease / 3000
                await self._changes.wait(min(BUSY_SECONDS, third) if some_busy else third)
                self._idle.clear()
                try:
                    some_busy = await self._extend()
                finally:
                    self._idle.set()

    async def _extend(self) -> bool:
        """Extend what is held, and return whether some leases are to be tried again soon."""
        lost: list[Held] = []
        busy: list[Held] = []
        messages = [each for each in self._held() if not (each.lost or each.settled)]
        try:
            await self._drive(extend_leases(self._context(), messages, lost, busy))
        except Exception as error:  # noqa: BLE001 - the next try may succeed
            words = "queue %r: could not extend leases: %s"
            logger.warning(words, self._context().name, words_about(error))
        for message in lost:
            message.lost = True
            self._on_lost(message)
        return bool(busy)
