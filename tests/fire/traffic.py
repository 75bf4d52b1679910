"""What actors do with their queues, as generators: they yield calls and are sent the answers.

So the same traffic runs on blocking and on awaited queues. A number is a pause in seconds.
"""

from collections.abc import Callable, Generator
from random import Random
from typing import Any, TypeAlias

from tests.fire.entries import Call, Delivered
from tests.fire.recorder import instant

Traffic: TypeAlias = Generator[Call | float, Any, None]

# How often each call is made, in relation to the others.
MIXED = {
    "offer": 30,
    "offer_batch": 6,
    "poll": 24,
    "wait": 6,
    "settle": 34,
    "ack_many": 6,
    "drop": 4,
    "revive": 5,
    "reschedule": 4,
    "contains": 3,
}
# On a clock that stands still during a call, by an actor that is alone.
ALONE = {**MIXED, "run_now": 3, "revive_one": 6, "list": 6}
PRODUCING = {"offer": 60, "offer_batch": 10, "drop": 4, "revive": 10, "reschedule": 4}
# All that do this use the same key at a time.
CLASHING = {"offer": 50, "drop": 50}
POLLING = {"poll": 20, "wait": 20, "settle": 40}

SETTLEMENTS = {"ack": 60, "extend": 14, "release": 18, "bury": 10}
# Each key is in use for about two seconds, so that its history stays short.
KEYS_PER_SECOND = 40


class Mixed:
    """Random calls on random keys, which come out the same for the same seed and answers."""

    def __init__(
        self, name: str, seed: int, lease: int, read_clock: Callable[[], int], mix: dict[str, int]
    ) -> None:
        self._name = name
        self._random = Random(seed)
        self._lease = lease
        self._read_clock = read_clock
        self._mix = mix
        self._offers = 0
        self._last: Call | None = None
        self._held: list[Delivered] = []
        self._buried: list[Delivered] = []
        clashes = mix is CLASHING
        self.key: Callable[[], str] = _key_of_this_moment if clashes else self._key_of_this_second
        self.rest = 0.001 if clashes else 0.008
        self.longest_wait = 0.1

    def run(self, stopping: Callable[[], bool]) -> Traffic:
        """Make one call after the other until `stopping` returns true."""
        kinds, weights = list(self._mix), list(self._mix.values())
        while not stopping():
            kind = self._random.choices(kinds, weights)[0]
            if call := self._call(kind):
                answer = yield call
                if call.do == "poll" and answer:
                    self._held += answer
            if self.rest:
                yield self._random.expovariate(1 / self.rest)

    def _call(self, kind: str) -> Call | None:
        random = self._random
        match kind:
            case "offer":
                call: Call | None = self._offer()
            case "offer_batch":
                call = Call(kind, items=[self._offer() for _ in range(random.randint(2, 6))])
            case "poll":
                call = Call(kind, limit=random.randint(1, 5))
            case "wait":
                call = Call("poll", limit=1, timeout=random.uniform(0.01, self.longest_wait))
            case "settle":
                call = self._settle()
            case "ack_many":
                taken = [self._take().id for _ in range(min(len(self._held), 3))]
                call = Call(kind, deliveries=taken) if taken else None
            case "revive" | "reschedule":
                call = Call(kind, self.key(), due=self._due())
            case "revive_one":
                call = self._revive_one()
            case "list":
                call = self._list()
            case _:
                call = Call(kind, self.key())
        return call

    def _offer(self) -> Call:
        if self._last is not None and self._random.random() < 0.15:
            return self._last  # the very same, which must be ignored while it is stored
        self._offers += 1
        payload = f"{self._name}-{self._offers}"
        replace = self._random.random() < 0.8
        self._last = Call("offer", self.key(), payload, self._due(), replace)
        return self._last

    def _settle(self) -> Call | None:
        if not self._held:
            return None
        do = self._random.choices(list(SETTLEMENTS), list(SETTLEMENTS.values()))[0]
        if do == "extend":
            return Call(do, delivery=self._random.choice(self._held).id, delay=self._lease)
        taken = self._take()
        if do == "bury":
            self._buried.append(taken)
        delay = self._random.choice([0, 0, 40, 200]) if do == "release" else 0
        return Call(do, delivery=taken.id, delay=delay)

    def _revive_one(self) -> Call | None:
        if not self._buried:
            return None
        burial = self._random.choice(self._buried)
        return Call("revive_one", burial.key, burial.payload, self._due())

    def _list(self) -> Call:
        prefix = self.key()[: self._random.choice([0, 0, 3, 7])]
        state = self._random.choice(["", "due", "leased", "future"])
        return Call("list", prefix, limit=self._random.choice([1, 2, 100]), facts={"state": state})

    def _take(self) -> Delivered:
        """Choose a delivery to settle; an old one may have lost its lease by now."""
        index = self._random.randrange(len(self._held))
        # Some are settled twice.
        return self._held[index] if self._random.random() < 0.05 else self._held.pop(index)

    def _due(self) -> int:
        return self._read_clock() + self._random.choice([-300, 0, 0, 0, 30, 150, 400])

    def _key_of_this_second(self) -> str:
        second = instant() // 1_000_000 - self._random.choice([0, 0, 0, 1])
        return f"k{second}-{self._random.randrange(KEYS_PER_SECOND)}"


def _key_of_this_moment() -> str:
    """Return a key for a tenth of a second, so that its history is short."""
    return f"moment-{instant() // 100_000}"
