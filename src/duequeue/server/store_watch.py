"""Asks the store whether it answers, for `/readyz`, and to find out when an outage is over.

Many callers cost one look, and without callers nobody looks.
"""

import asyncio
import logging
import secrets
from datetime import timedelta
from functools import partial
from time import monotonic

from duequeue.errors import DueQueueError, StoreUnavailable
from duequeue.process.contact import contact_with, one_line
from duequeue.queue_names import CRONS_OF_SERVICE
from duequeue.retry_policy import RetryPolicy
from duequeue.server.problems import Problem, unavailable
from duequeue.server.queues import Queues

logger = logging.getLogger("duequeue.server")

# A look begins at most this often, and whoever asks waits for it at most this long.
SECONDS = 1.0
# The connections that are left from before an outage fail one by one, so a look tries again.
RETRY = RetryPolicy(budget=timedelta(seconds=SECONDS))
# After an outage, not all clients should come back at the same moment.
SPREAD_SECONDS = 3


class StoreWatch:
    """Whether the store answers."""

    def __init__(self, queues: Queues) -> None:
        self._queues = queues
        self._contact = contact_with(queues.place, queues.address)
        self._began_at = 0.0
        self._look: asyncio.Task[bool] | None = None

    async def answers(self) -> bool:
        """Return whether the store has answered a look that began within the last second."""
        look = self._begin_to_look()
        await asyncio.wait([look], timeout=max(0.0, self._began_at + SECONDS - monotonic()))
        if look.done():
            return look.result()
        # If the store serves others meanwhile, this look only waits for its turn.
        return self._contact.reached_at > self._began_at

    def refuse_in_an_outage(self) -> None:
        """Raise at once if the store is known to be lost, and look whether it still is."""
        if self._contact.is_lost:
            _ = self._begin_to_look()
            raise unavailable(1 + secrets.randbelow(SPREAD_SECONDS))

    def is_lost(self, problem: Problem) -> bool:
        """Return whether a problem is that of an outage, which the log tells of already."""
        return problem.kind == "unavailable" and self._contact.is_lost

    async def close(self) -> None:
        """Stop looking."""
        if self._look is not None:
            self._look.cancel()
            await asyncio.wait([self._look])

    def _begin_to_look(self) -> "asyncio.Future[bool]":
        now = monotonic()
        if self._look is None or (self._look.done() and now >= self._began_at + SECONDS):
            self._began_at = now
            self._look = asyncio.create_task(self._ask())
        return self._look

    async def _ask(self) -> bool:
        try:
            # This reads nearly nothing, whatever the database holds.
            count = partial(self._queues.backend.count_types, CRONS_OF_SERVICE, 1)
            await self._queues.look(count, RETRY)
        except StoreUnavailable:
            return False
        except DueQueueError as error:
            logger.warning("the server is not ready: %s", one_line(error))
            return False
        return True
