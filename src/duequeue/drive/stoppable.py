"""Runs a flow whose waits can be ended from outside."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from duequeue.drive.actions import Action, Flow, Listen, Pause
from duequeue.drive.steps import drive_async

R = TypeVar("R")


class Stopped(Exception):
    """A wait was ended from outside."""


class StoppableFlow:
    """Runs a flow whose waits can be ended, but whose operations cannot.

    So the caller always knows which messages were leased, and can give them back.
    """

    def __init__(self, perform: Callable[[Action], Awaitable[object]]) -> None:
        self._perform = perform
        self._waiting: asyncio.Future[object] | None = None
        self._stopped = False

    async def run(self, flow: Flow[R]) -> R:
        """Run a flow to its end, or raise `Stopped`."""
        return await drive_async(flow, self._perform_unless_stopped)

    def stop(self) -> None:
        """End the wait."""
        self._stopped = True
        if self._waiting is not None:
            self._waiting.cancel()

    async def wait(self, action: Listen | Pause) -> object:
        """Perform an action that can be ended, or raise `Stopped`."""
        self._waiting = asyncio.ensure_future(self._perform(action))
        try:
            return await self._waiting
        except asyncio.CancelledError:
            if self._stopped:
                raise Stopped from None
            raise
        finally:
            self._waiting = None

    async def _perform_unless_stopped(self, action: Action) -> object:
        if not isinstance(action, Listen | Pause):
            return await self._perform(action)
        if self._stopped:
            raise Stopped
        return await self.wait(action)
