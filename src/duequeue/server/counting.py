"""Counts the messages of every queue of the database in the background, for `/metrics`."""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from time import monotonic

from duequeue.clock import millis_of
from duequeue.errors import DueQueueError, StoreUnavailable
from duequeue.port.store import Counts, Store
from duequeue.process.contact import one_line
from duequeue.queue_names import OWN_QUEUES
from duequeue.retry_policy import RetryPolicy
from duequeue.server.exposition import Labels, Sample, gauge
from duequeue.server.metrics import OTHER
from duequeue.server.queues import Queues

logger = logging.getLogger("duequeue.server")

# A round of counting begins at most this often. It is given up after as much time, and the next
# one goes on with the queues that were counted longest ago.
ROUND_SECONDS = 10.0
# Counting takes at most a tenth of the time.
REST = 9.0
ONCE = RetryPolicy.never()
STATES = ("future", "due", "leased", "buried")


@dataclass(frozen=True)
class Counted:
    """The counts of some queues, and when the oldest of them was made."""

    counts: Counts
    counted_at: float

    def with_other(self, other: "Counted") -> "Counted":
        """Return both together."""
        a, b = self.counts, other.counts
        counts = Counts(
            a.due + b.due,
            a.leased + b.leased,
            a.future + b.future,
            a.buried + b.buried,
            _earliest(a.oldest_due_at, b.oldest_due_at),
            _earliest(a.next_due_at, b.next_due_at),
        )
        return Counted(counts, min(self.counted_at, other.counted_at))


class Counting:
    """The last counts of every queue; while the store is unavailable, they grow old."""

    def __init__(self, queues: Queues, most_queues: int) -> None:
        self._queues = queues
        self._most = most_queues
        self._stores: dict[str, Store] = {}
        self._counted: dict[str, Counted] = {}
        self._tried_at: dict[str, float] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to count, once."""
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Stop counting."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def count(self) -> None:
        """Count each queue once, as far as the time allows; raise if the store is unavailable."""
        async with asyncio.timeout(ROUND_SECONDS):
            own = tuple(f"{name}|" for name in OWN_QUEUES)
            kinds = await self._queues.look(self._queues.backend.kinds, ONCE, ROUND_SECONDS)
            found = [kind for kind in kinds if not kind.startswith(own)]
            for known in (self._stores, self._counted, self._tried_at):
                for gone in known.keys() - set(found):
                    del known[gone]
            for kind in sorted(found, key=lambda each: self._tried_at.get(each, 0.0)):
                self._tried_at[kind] = monotonic()
                await self._count_one(kind)

    def lines(self) -> Iterator[str]:
        """Write the last counts, and how old they are."""
        now, shown = monotonic(), list(self._shown())
        yield from gauge(
            "duequeue_messages",
            "Messages in the store by state.",
            (
                ({**labels, "state": state}, getattr(counted.counts, state))
                for labels, counted in shown
                for state in STATES
            ),
        )
        yield from gauge(
            "duequeue_oldest_due_timestamp_seconds",
            "When the message that is due for the longest time fell due.",
            _instants(shown, "oldest_due_at"),
        )
        yield from gauge(
            "duequeue_next_due_timestamp_seconds",
            "When the next message falls due.",
            _instants(shown, "next_due_at"),
        )
        yield from gauge(
            "duequeue_messages_age_seconds",
            "How long ago the messages were counted.",
            ((labels, now - counted.counted_at) for labels, counted in shown),
        )

    async def _run(self) -> None:
        while True:
            began = monotonic()
            try:
                await self.count()
            except StoreUnavailable:
                pass  # the age of the counts shows it, and others log the outage
            except TimeoutError:
                self._log_slowness()
            except Exception as error:  # noqa: BLE001 - the next round may succeed
                logger.warning("could not count messages: %s", one_line(error))
            took = monotonic() - began
            await asyncio.sleep(max(ROUND_SECONDS - took, REST * took))

    def _log_slowness(self) -> None:
        """Name a queue that cannot be counted in time, because the page may never show it.

        If there are only many queues, later rounds count the others.
        """
        kind = max(self._tried_at, key=self._tried_at.__getitem__, default="")
        if kind and monotonic() - self._tried_at[kind] > ROUND_SECONDS / 2:
            logger.warning("counting the messages of %r takes too long for the metrics", kind)

    async def _count_one(self, kind: str) -> None:
        settings = self._queues.settings
        try:
            if kind not in self._stores:
                open_store = partial(
                    self._queues.backend.open_store, kind, 0, migrate=False, history=False
                )
                self._stores[kind] = await self._queues.look(open_store, ONCE, ROUND_SECONDS)
            count = partial(self._stores[kind].counts, millis_of(settings.clock)())
            counts = await self._queues.look(count, ONCE, ROUND_SECONDS)
        except StoreUnavailable:
            raise
        except DueQueueError as error:
            logger.warning("could not count the messages of %r: %s", kind, one_line(error))
        else:
            self._counted[kind] = Counted(counts, monotonic())

    def _shown(self) -> Iterator[tuple[Labels, Counted]]:
        """Return the counts by queue, and those beyond the limit together."""
        kinds = sorted(self._counted)
        for kind in kinds[: self._most]:
            name, _, type_name = kind.partition("|")
            yield {"queue": name, "type": type_name}, self._counted[kind]
        others = [self._counted[kind] for kind in kinds[self._most :]]
        if others:
            together = others[0]
            for each in others[1:]:
                together = together.with_other(each)
            yield {"queue": OTHER, "type": OTHER}, together


def _instants(shown: list[tuple[Labels, Counted]], field: str) -> Iterator[Sample]:
    for labels, counted in shown:
        millis: int | None = getattr(counted.counts, field)
        if millis is not None:
            yield labels, millis / 1000


def _earliest(one: int | None, other: int | None) -> int | None:
    given = [each for each in (one, other) if each is not None]
    return min(given, default=None)
