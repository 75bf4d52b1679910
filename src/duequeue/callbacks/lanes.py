"""The endpoints of one queue, and how many messages may be leased for them."""

from collections.abc import Collection, Iterable

from duequeue.callbacks.endpoint import ENDPOINT_HEADER
from duequeue.callbacks.lane import Lane
from duequeue.callbacks.lease_keeper import Held
from duequeue.callbacks.records import StoredEndpoint

# How many messages one poll leases.
BATCH = 100
# Messages for endpoints that get no calls stay leased, so that polls find the messages behind them.
# These limits say how many may stay leased, in messages and in bytes. Beyond them, the queue waits.
MOST_WAITING = 10_000
MOST_BYTES = 64 * 1024 * 1024


class Lanes:
    """The lanes of one queue by the ids of their endpoints."""

    def __init__(self, most_waiting: int = MOST_WAITING, most_bytes: int = MOST_BYTES) -> None:
        self._most_waiting = most_waiting
        self._most_bytes = most_bytes
        self._lanes: dict[str, Lane] = {}
        self._by_name: dict[str, Lane] = {}
        self._default: Lane | None = None
        self._busy: dict[str, Lane] = {}  # those with messages that wait
        self._waiting = 0
        self._bytes = 0

    def update(self, entries: Iterable[StoredEndpoint], now: int) -> list[Held]:
        """Use new definitions, and return the messages of endpoints that are gone."""
        found = {entry.endpoint.id: entry for entry in entries}
        gone = [each for each in self._lanes if each not in found]
        left: list[Held] = []
        for identity in gone:
            lane = self._lanes.pop(identity)
            lane.is_gone = True
            left += self.empty(lane)
        for identity, entry in found.items():
            if identity in self._lanes:
                self._lanes[identity].update(entry, now)
            else:
                self._lanes[identity] = Lane(entry, now)
        # If two have one name, the one with the longer prefix is meant.
        by_prefix = sorted(self._lanes.values(), key=lambda lane: len(lane.endpoint.prefix))
        self._by_name = {lane.endpoint.name: lane for lane in by_prefix}
        defaults = sorted(each for each, lane in self._lanes.items() if lane.endpoint.default)
        self._default = self._lanes[defaults[0]] if defaults else None
        return left

    def lane_of(self, message: Held) -> Lane | None:
        """Return the lane of the endpoint that a message goes to, if there is one."""
        named = message.headers.get(ENDPOINT_HEADER)
        return self._default if named is None else self._by_name.get(named)

    def add(self, lane: Lane, message: Held) -> None:
        """Let a message wait for its endpoint."""
        lane.waiting.append(message)
        self._busy[lane.endpoint.id] = lane
        self._waiting += 1
        self._bytes += len(message.payload)

    def take(self, lane: Lane) -> Held:
        """Return the next message of a lane, which no longer waits."""
        message = lane.waiting.popleft()
        self._count_out(lane, message)
        return message

    def remove(self, message: Held) -> None:
        """Forget a message that waits."""
        for lane in list(self._busy.values()):
            if message in lane.waiting:
                lane.waiting.remove(message)
                self._count_out(lane, message)

    def empty(self, lane: Lane) -> list[Held]:
        """Return all messages that wait in a lane, and forget them."""
        return [self.take(lane) for _ in range(len(lane.waiting))]

    def all(self) -> list[Lane]:
        """Return the lanes of all endpoints."""
        return list(self._lanes.values())

    def busy(self) -> list[Lane]:
        """Return the lanes in which messages wait."""
        return list(self._busy.values())

    def all_shut(self, now: int) -> bool:
        """Return whether no endpoint gets calls for now."""
        return all(lane.is_shut(now) for lane in self._lanes.values())

    def free(self, now: int) -> int:
        """Return how many messages to lease whose calls begin at once."""
        if len(self._lanes) == 1:
            return next(iter(self._lanes.values())).free(now)
        return 1 if any(lane.free(now) for lane in self._lanes.values()) else 0

    def room(self, now: int) -> int:
        """Return how many messages to lease now.

        With a single endpoint, these are the ones that it can take. With several, nobody knows
        which endpoint a message is for before it is leased.
        """
        if self._waiting >= self._most_waiting or self._bytes >= self._most_bytes:
            return 0
        if len(self._lanes) == 1:
            return min(BATCH, next(iter(self._lanes.values())).room(now))
        return BATCH if any(lane.room(now) for lane in self._lanes.values()) else 0

    def seconds_to_wait(self, now: int, *, for_room: bool) -> float | None:
        """Return after how long a call that has to wait may begin, or None if nobody knows."""
        lanes = self._lanes if for_room else self._busy
        waits = [wait for lane in lanes.values() if (wait := lane.wait(now))]
        return min(waits) / 1000 if waits else None

    def longest_timeout(self) -> int:
        """Return the longest timeout of an endpoint, in milliseconds."""
        return max((lane.endpoint.timeout for lane in self._lanes.values()), default=0)

    def _count_out(self, lane: Lane, message: Held) -> None:
        self._waiting -= 1
        self._bytes -= len(message.payload)
        if not lane.waiting:
            self._busy.pop(lane.endpoint.id, None)


def may_be_for(message: Held, unreadable: Collection[str]) -> bool:
    """Return whether a message without a lane may be for an endpoint that cannot be read."""
    named = message.headers.get(ENDPOINT_HEADER)
    names = {identity.rpartition("/")[2] for identity in unreadable}
    return bool(names) if named is None else named in names


def no_endpoint(message: Held) -> str:
    """Return the reason why a message has no lane."""
    named = message.headers.get(ENDPOINT_HEADER)
    if named is None:
        return "the queue has no default endpoint, and the message names none"
    return f"the header {ENDPOINT_HEADER} names {named!r}, which is not an endpoint of this queue"
