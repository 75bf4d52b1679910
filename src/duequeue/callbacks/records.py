"""The endpoints of a database, and their states.

They are messages of a queue of their own, due far in the future, so every store can keep them.
Each endpoint has up to five messages with different keys. So a change of the definition, a change
of the secret and a note about a failure do not overwrite each other.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from secrets import token_hex
from typing import Literal, NamedTuple, TypeVar

import msgspec

from duequeue.callbacks.endpoint import LONGEST_FULL_ID, Endpoint
from duequeue.callbacks.signing import SigningKeys
from duequeue.flows.context import Context
from duequeue.message import OfferOutcome
from duequeue.parts import AsyncParts, QueueSettings
from duequeue.payloads.stored_bytes import StoredBytes
from duequeue.queue_async import AsyncQueue
from duequeue.queue_names import ENDPOINTS_OF_SERVICE

QUEUE = ENDPOINTS_OF_SERVICE
# How long a note about an open breaker counts after the instant of the next call.
SLACK = 60_000
NEVER = datetime(9999, 1, 1, tzinfo=UTC)

_DEFINITION, _KEYS = "endpoint/", "secrets/"
_SWITCH, _ENABLED, _HEALTH = "switched-off/", "enabled/", "health/"

logger = logging.getLogger("duequeue.push")

StateName = Literal["active", "throttled", "open", "disabled"]
R = TypeVar("R")


class Condition(msgspec.Struct, frozen=True):
    """What keeps callbacks from an endpoint, why, since when, and perhaps until when."""

    state: StateName
    reason: str
    since: int
    until: int | None = None


class StoredEndpoint(NamedTuple):
    """An endpoint with everything that is stored about it."""

    endpoint: Endpoint
    keys: SigningKeys
    switched_off: Condition | None = None
    health: Condition | None = None
    enabled: str | None = None  # a new text each time that somebody enables it

    def condition(self, now: int) -> Condition:
        """Return the state to show; the note of a push process counts for as long as it says."""
        if self.switched_off is not None:
            return self.switched_off
        health = self.health
        if health is not None and health.until is not None:
            # A process that has ended cannot take its note back.
            slack = self.endpoint.timeout + SLACK if health.state == "open" else 0
            if now < health.until + slack:
                return health
        return Condition("active", "", 0)


class FoundEndpoints(NamedTuple):
    """The endpoints of a database by their ids, and the ids of those that cannot be read."""

    entries: dict[str, StoredEndpoint]
    unreadable: set[str]


async def open_records(settings: QueueSettings) -> AsyncParts[bytes]:
    """Open the queue in which a database keeps its endpoints."""
    return await replace(settings, history=False, retention=None).open(QUEUE, StoredBytes("json"))


class Records:
    """Reads and writes the endpoints of a database."""

    def __init__(self, queue: AsyncQueue[bytes], context: Context[bytes]) -> None:
        self._queue = queue
        self.context = context

    async def all(self) -> dict[str, StoredEndpoint]:
        """Return by its id every endpoint that can be read."""
        return (await self.find_all()).entries

    async def find_all(self) -> FoundEndpoints:
        """Return every endpoint, and the ids of those that perhaps a newer version can read."""
        found: dict[str, bytes] = {}
        cursor: str | None = None
        while True:
            page = await self._queue.list(after=cursor, limit=1000)
            found.update((each.key, each.payload) for each in page.messages)
            cursor = page.next
            if cursor is None:
                break
        ids = [key.removeprefix(_DEFINITION) for key in found if key.startswith(_DEFINITION)]
        every = FoundEndpoints({}, set())
        for identity in sorted(ids):
            try:
                entry = _entry(identity, found.get)
            except msgspec.DecodeError as error:
                logger.warning("endpoint %s cannot be read: %s", identity, error)
                every.unreadable.add(identity)
                continue
            if entry is not None:
                every.entries[identity] = entry
        return every

    async def get(self, identity: str) -> StoredEndpoint | None:
        """Return one endpoint."""
        if len(identity) > LONGEST_FULL_ID:
            return None
        found: dict[str, bytes] = {}
        for prefix in (_DEFINITION, _KEYS, _SWITCH, _ENABLED, _HEALTH):
            message = await self._queue.read(prefix + identity)
            if message is not None and message.reason is None:
                found[prefix + identity] = message.payload
        return _entry(identity, found.get)

    async def put(self, endpoint: Endpoint, keys: SigningKeys | None = None) -> None:
        """Store a definition, and new secrets if there are any."""
        if not await self._queue.contains(_DEFINITION + endpoint.id):
            # A push process may have stored a note after an earlier endpoint was removed.
            await self._forget(_SWITCH + endpoint.id, _HEALTH + endpoint.id)
        if keys is not None:  # first, because a definition without secrets does not count
            await self._store(_KEYS + endpoint.id, keys)
        await self._store(_DEFINITION + endpoint.id, endpoint)
        await self._announce()

    async def put_keys(self, identity: str, keys: SigningKeys) -> None:
        """Store other secrets."""
        await self._store(_KEYS + identity, keys)
        await self._announce()

    async def remove(self, identity: str) -> bool:
        """Remove an endpoint and all that is stored about it."""
        if len(identity) > LONGEST_FULL_ID:
            return False
        removed = await self._queue.drop(_DEFINITION + identity)
        await self._forget(_KEYS + identity, _ENABLED + identity)
        await self._forget(_SWITCH + identity, _HEALTH + identity)
        await self._announce()
        return removed

    async def switch_off(self, identity: str, condition: Condition) -> bool:
        """Disable an endpoint, and return whether that changed anything."""
        stored = await self._store(_SWITCH + identity, condition, replace=False)
        await self._announce()
        return stored

    async def switch_on(self, identity: str) -> bool:
        """Enable an endpoint, and forget that it failed; return whether it was disabled."""
        # This comes first, so that nothing is deleted that happens after calls have begun again.
        await self._store(_ENABLED + identity, token_hex(8))
        changed = await self._queue.drop(_SWITCH + identity)
        await self._queue.drop(_HEALTH + identity)
        await self._announce()
        return changed

    async def note_health(self, identity: str, condition: Condition | None) -> None:
        """Store what a push process knows about an endpoint, for others to read."""
        if condition is None:
            await self._queue.drop(_HEALTH + identity)
        else:
            await self._store(_HEALTH + identity, condition)

    async def _forget(self, *keys: str) -> None:
        for key in keys:
            await self._queue.drop(key)

    async def _store(self, key: str, value: object, *, replace: bool = True) -> bool:
        data = msgspec.json.encode(value)
        outcome = await self._queue.offer(key, data, NEVER, replace=replace)
        return outcome is not OfferOutcome.IGNORED

    async def _announce(self) -> None:
        """Have push processes look at once, because an offer for the far future wakes nobody."""
        context = self.context
        now = context.now()
        context.bell.ring(now)
        if context.alerts is not None:
            context.alerts.notify(now)


def _entry(identity: str, find: Callable[[str], bytes | None]) -> StoredEndpoint | None:
    def part(prefix: str, kind: type[R]) -> R | None:
        data = find(prefix + identity)
        return None if data is None else msgspec.json.decode(data, type=kind)

    endpoint, keys = part(_DEFINITION, Endpoint), part(_KEYS, SigningKeys)
    if endpoint is None or keys is None:
        return None
    notes = part(_SWITCH, Condition), part(_HEALTH, Condition), part(_ENABLED, str)
    return StoredEndpoint(endpoint, keys, *notes)
