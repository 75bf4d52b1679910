"""What a queue must answer, written a second time and independently of the program.

`Stored` is all there is to know about one key, and the functions below say how each call changes
it. `search.py` uses them where calls of several processes overlap, and `Sequential` where one
process makes one call after the other, so that every answer is known in advance.
"""

from typing import Any, NamedTuple, TypeAlias

from tests.fire.entries import Call, Delivered

LONG_AGO = -(2**62)

# Key, payload, due time as asked for and as it is now, attempts, and state.
Listed: TypeAlias = list[list[Any]]

NOBODY = ""
SOMEBODY = "?"  # a poll whose answer nobody saw


class Stored(NamedTuple):
    """A key: the message that it has in the queue, if any, and its burials.

    Where the time of an effect is known only roughly, `due` and `until` are the earliest possible.
    `undone` holds the leases that a crash of the server may bring back, and `gone` is the message
    that left the queue last.
    """

    present: bool = False
    payload: str = ""
    asked: int = 0
    due: int = LONG_AGO
    attempt: int = 0
    until: int = LONG_AGO
    holder: str = NOBODY
    burials: tuple[str, ...] = ()
    undone: tuple[tuple[int, int, str], ...] = ()
    gone: tuple[str, int, int] | None = None


NOTHING = Stored()


def offered(stored: Stored, call: Call) -> tuple[str, Stored]:
    """Return the outcome of an offer, and what is stored then."""
    if not stored.present:
        return "created", written(stored, call)
    same = stored.payload == call.payload and stored.asked == call.due
    if same or not call.replace:
        return "ignored", stored
    return "updated", written(stored, call)


def written(stored: Stored, call: Call) -> Stored:
    """Return what is stored after an offer that was not ignored."""
    return stored._replace(
        present=True,
        payload=call.payload,
        asked=call.due,
        due=call.due,
        attempt=0,
        until=LONG_AGO,
        holder=NOBODY,
        undone=(),
    )


def claimable(stored: Stored, now: int) -> bool:
    """Return whether a poll at `now` may deliver it."""
    return stored.present and stored.due <= now and stored.until <= now


def claimed(stored: Stored, delivery: str, until: int) -> Stored:
    """Return what is stored after a delivery."""
    lease = (stored.attempt, stored.until, stored.holder)
    return stored._replace(
        attempt=stored.attempt + 1,
        until=until,
        holder=delivery,
        undone=(*stored.undone, lease),
    )


def holds(stored: Stored, delivery: str) -> bool:
    """Return whether this delivery has the current lease."""
    return stored.present and stored.holder == delivery


def removed(stored: Stored) -> Stored:
    """Return what is stored once the message has left the queue."""
    left = NOTHING._replace(burials=stored.burials)
    if not stored.present:
        return left._replace(gone=stored.gone)
    return left._replace(gone=(stored.payload, stored.asked, stored.attempt))


def extended(stored: Stored, until: int) -> Stored:
    """Return what is stored after an extension."""
    return stored._replace(until=until, undone=())


def released(stored: Stored, due: int) -> Stored:
    """Return what is stored after a release."""
    return stored._replace(due=due, until=LONG_AGO, holder=NOBODY, undone=())


def buried(stored: Stored) -> Stored:
    """Return what is stored after a burial."""
    return removed(stored)._replace(burials=(*stored.burials, stored.payload))


def revived(stored: Stored, due: int) -> tuple[bool, Stored]:
    """Return whether a revival succeeds, and what is stored then."""
    if stored.present or not stored.burials:
        return False, stored
    *older, newest = stored.burials
    call = Call("offer", payload=newest, due=due)
    return True, offered(stored._replace(burials=tuple(older)), call)[1]


def revived_one(stored: Stored, payload: str, due: int) -> tuple[bool, Stored]:
    """Return whether a certain burial can be revived, and what is stored then."""
    if stored.present or stored.burials.count(payload) != 1:
        return False, stored
    others = tuple(each for each in stored.burials if each != payload)
    call = Call("offer", payload=payload, due=due)
    return True, offered(stored._replace(burials=others), call)[1]


def rescheduled(stored: Stored, due: int) -> tuple[bool, Stored]:
    """Return whether there is a message to reschedule, and what is stored then."""
    if not stored.present:
        return False, stored
    return True, released(stored, due)._replace(asked=due)


class Sequential:
    """A whole queue, for one process that makes one call after the other."""

    def __init__(self, lease: int) -> None:
        self.lease = lease
        self.keys: dict[str, Stored] = {}
        self._created: dict[str, int] = {}
        self._serial = 0

    def of(self, key: str) -> Stored:
        return self.keys.get(key, NOTHING)

    def offer(self, call: Call) -> str:
        outcome, self.keys[call.key] = offered(self.of(call.key), call)
        if outcome == "created":
            self._place_last(call.key)
        return outcome

    def due_order(self, now: int) -> list[str]:
        """Return the keys that polls at `now` deliver, in this order."""
        found = [key for key, stored in self.keys.items() if claimable(stored, now)]
        return sorted(found, key=lambda key: (self.keys[key].due, self._created[key]))

    def deliver(self, delivered: Delivered) -> None:
        """Note a delivery that was as expected."""
        stored = self.of(delivered.key)
        self.keys[delivered.key] = claimed(stored, delivered.id, delivered.until)

    def expected(self, key: str, now: int) -> tuple[str, int, int, int, int]:
        """Return the payload, due time, attempt, instant and end of lease of the next delivery."""
        stored = self.of(key)
        return (stored.payload, stored.asked, stored.attempt + 1, now, now + self.lease)

    def settle(self, key: str, call: Call, now: int) -> bool:
        """Return whether a call by the holder of a delivery wins."""
        stored = self.of(key)
        won = holds(stored, call.delivery)
        if won:
            self.keys[key] = self._settled(stored, call, now)
        return won

    def drop(self, key: str) -> bool:
        stored = self.of(key)
        self.keys[key] = removed(stored)
        return stored.present

    def revive(self, key: str, due: int) -> bool:
        won, self.keys[key] = revived(self.of(key), due)
        if won:
            self._place_last(key)
        return won

    def revive_one(self, key: str, payload: str, due: int) -> bool:
        won, self.keys[key] = revived_one(self.of(key), payload, due)
        if won:
            self._place_last(key)
        return won

    def reschedule(self, key: str, due: int) -> bool:
        found, self.keys[key] = rescheduled(self.of(key), due)
        return found

    def listing(self, prefix: str, state: str, now: int) -> Listed:
        """Return all that a listing shows, in its order."""
        found = [
            (stored.due, self._created[key], key)
            for key, stored in self.keys.items()
            if stored.present and key.startswith(prefix)
        ]
        shown = [self._listed(key, now) for _, _, key in sorted(found)]
        return [each for each in shown if state in {"", each[-1]}]

    def _listed(self, key: str, now: int) -> list[Any]:
        stored = self.of(key)
        free = "due" if stored.due <= now else "future"
        state = "leased" if stored.until > now else free
        return [key, stored.payload, stored.asked, stored.due, stored.attempt, state]

    def _settled(self, stored: Stored, call: Call, now: int) -> Stored:
        match call.do:
            case "ack":
                return removed(stored)
            case "extend":
                return extended(stored, now + (call.delay or self.lease))
            case "release":
                return released(stored, now + call.delay)
            case _:
                return buried(stored)

    def _place_last(self, key: str) -> None:
        self._serial += 1
        self._created[key] = self._serial
