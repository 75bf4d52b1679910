"""Calls on a queue, blocking or awaited, each recorded before it begins and after it ends."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from duequeue import DueQueueError, Message
from duequeue.instants import from_millis, to_millis
from tests.fire.entries import Call, Delivered
from tests.fire.recorder import Recorder


def _revive_one(queue: Any, call: Call) -> bool:
    """Revive the only burial of a key that has a certain payload."""
    found = [
        each for each in queue.buried(1000) if (each.key, each.payload) == (call.key, call.payload)
    ]
    return len(found) == 1 and bool(queue.revive(call.key, from_millis(call.due), found[0].id))


def _listed(queue: Any, call: Call) -> Iterator[list[Any]]:
    """Read all pages, and return of each message what the log keeps."""
    state, cursor, is_last = call.facts["state"] or None, None, False
    while not is_last:
        page = queue.list(state, prefix=call.key, after=cursor, limit=call.limit)
        for each in page.messages:
            instants = (to_millis(each.due_at), to_millis(each.deliver_at))
            yield [each.key, each.payload, *instants, each.attempts, each.state.value]
        cursor, is_last = page.next, page.next is None


# What each kind of call calls on a queue or a delivery, and what the log keeps of the answer.
ASK: dict[str, Callable[[Any, Call], Any]] = {
    "offer": lambda queue, call: queue.offer(
        call.key, call.payload, from_millis(call.due), replace=call.replace
    ),
    "offer_batch": lambda queue, call: queue.offer_batch(list(map(_message, call.items))),
    "poll": lambda queue, call: (
        queue.poll_many(call.limit, call.timeout)
        if call.timeout
        else queue.try_poll_many(call.limit)
    ),
    "drop": lambda queue, call: queue.drop(call.key),
    "revive": lambda queue, call: queue.revive(call.key, from_millis(call.due)),
    "revive_one": _revive_one,
    "reschedule": lambda queue, call: queue.reschedule(call.key, from_millis(call.due)),
    "run_now": lambda queue, call: queue.run_now(call.key),
    "list": lambda queue, call: list(_listed(queue, call)),
    "contains": lambda queue, call: queue.contains(call.key),
    "stats": lambda queue, _: queue.stats(),
    "buried": lambda queue, call: queue.buried(call.limit),
    "history": lambda queue, call: queue.history(call.limit),
}
SETTLE: dict[str, Callable[[Any, Call], Any]] = {
    "ack": lambda delivery, _: delivery.ack(),
    "extend": lambda delivery, _: delivery.extend(),
    "release": lambda delivery, call: delivery.release(timedelta(milliseconds=call.delay)),
    "bury": lambda delivery, _: delivery.bury("as it came"),
}
KEPT: dict[str, Callable[[Any], Any]] = {
    "offer": lambda outcome: outcome.value,
    "offer_batch": lambda outcomes: [outcome.value for outcome in outcomes],
    "stats": lambda stats: {"total": stats.total, "waiting": stats.due + stats.leased},
    "buried": lambda burials: [[each.key, each.payload] for each in burials],
    "history": lambda rows: [[each.key, each.outcome.value] for each in rows],
}


@dataclass
class Caller:
    """One actor on one queue, which is a `Queue` or an `AsyncQueue`, and what it holds."""

    recorder: Recorder
    process: str
    actor: str
    queue_name: str
    queue: Any
    read_clock: Callable[[], int]
    held: dict[str, Any] = field(default_factory=dict)

    def call(self, call: Call) -> Any:
        """Make a blocking call and return its answer, or None if it failed."""
        number = self._begin(call)
        try:
            value = self._invoke(call)
        except DueQueueError as error:
            self.recorder.failed(number, self.read_clock(), error)
            return None
        return self._end(number, call, value)

    async def call_async(self, call: Call) -> Any:
        """Make an awaited call and return its answer, or None if it failed or took too long."""
        number = self._begin(call)
        try:
            async with asyncio.timeout(call.facts.get("give_up")):
                value = await self._invoke(call)
        except (DueQueueError, TimeoutError) as error:
            self.recorder.failed(number, self.read_clock(), error)
            return None
        return self._end(number, call, value)

    def _begin(self, call: Call) -> int:
        return self.recorder.invoked(self.actor, self.queue_name, self.read_clock(), call)

    def _end(self, number: int, call: Call, value: Any) -> Any:
        answer = self._answer(number, call, value)
        self.recorder.answered(number, self.read_clock(), answer)
        return answer

    def _invoke(self, call: Call) -> Any:
        if call.do in SETTLE:
            return SETTLE[call.do](self.held[call.delivery], call)
        if call.do == "ack_many":
            return self.queue.ack_many([self.held[each] for each in call.deliveries])
        return ASK[call.do](self.queue, call)

    def _answer(self, number: int, call: Call, value: Any) -> Any:
        """Return what the log keeps of an answer."""
        if call.do == "poll":
            return [self.keep(number, index, each) for index, each in enumerate(value)]
        if call.do == "extend":
            until = to_millis(self.held[call.delivery].lease_until)
            return {"won": value, "until": until}
        return KEPT[call.do](value) if call.do in KEPT else value

    def keep(self, number: int, index: int, delivery: Any) -> Delivered:
        """Remember a delivery under a name, and return what the log keeps of it."""
        name = f"{self.process}#{number}.{index}"
        self.held[name] = delivery
        return described(name, delivery)


def described(name: str, delivery: Any) -> Delivered:
    """Return what the log keeps of a delivery."""
    return Delivered(
        id=name,
        key=delivery.key,
        payload=delivery.payload,
        due=to_millis(delivery.due_at),
        attempt=delivery.attempt,
        at=to_millis(delivery.delivered_at),
        until=to_millis(delivery.lease_until),
    )


def _message(item: Call) -> Message[str]:
    return Message(item.key, item.payload, from_millis(item.due), item.replace)
