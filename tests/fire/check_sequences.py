"""One actor alone on its queue, on a clock that stands still during each call.

So every answer is known in advance.
"""

from collections.abc import Callable, Iterator
from typing import Any

from tests.fire.entries import Call, Delivered
from tests.fire.logs import Logs, Made
from tests.fire.model import Sequential
from tests.fire.violations import Broken, Violation

SHOWN = 12


def judge_sequence(queue: str, calls: list[Made], logs: Logs) -> Iterator[Violation]:
    """Compare the answers with the model, up to the first call whose outcome is not certain."""
    model = Sequential(calls[0].call.delay)
    deliveries: dict[str, Delivered] = {}
    may_skip = _has_neighbours(logs)
    for index, made in enumerate(calls[1:], 1):
        if not made.known or _uncertain(made, logs):
            return
        if made.call.do == "poll":
            broken = _compare_poll(model, made, deliveries, may_skip=may_skip)
        else:
            broken = _compare(model, made, deliveries)
        if broken is not None:
            lines = map(str, calls[max(1, index - SHOWN) : index + 1])
            yield Violation(broken, queue, made.call.key, "\n".join(lines))
            return


def _has_neighbours(logs: Logs) -> bool:
    """Return whether polls of other queues may lock messages of this one.

    On MariaDB, a poll that finds everything that is due also locks the next entry of the index,
    which may be that of the first message in another queue.
    """
    stores = {note.facts.get("store") for _, note in logs.events("started")}
    return "mariadb" in stores and len(logs.of_queues()) > 1


def _uncertain(made: Made, logs: Logs) -> bool:
    return any(
        window.meets(made.began, made.ended, made.process)
        for window in logs.windows
        if window.loses_replies or window.undoes_leases
    )


# What each call that concerns no delivery returns, by the model, at an instant.
ANSWERS: dict[str, Callable[[Sequential, Call, int], Any]] = {
    "offer": lambda model, call, _: model.offer(call),
    "offer_batch": lambda model, call, _: [model.offer(item) for item in call.items],
    "drop": lambda model, call, _: model.drop(call.key),
    "revive": lambda model, call, _: model.revive(call.key, call.due),
    "revive_one": lambda model, call, _: model.revive_one(call.key, call.payload, call.due),
    "reschedule": lambda model, call, _: model.reschedule(call.key, call.due),
    "run_now": lambda model, call, now: model.reschedule(call.key, now),
    "list": lambda model, call, now: model.listing(call.key, call.facts["state"], now),
}


def _compare(model: Sequential, made: Made, deliveries: dict[str, Delivered]) -> Broken | None:
    call, now = made.call, made.clock_low
    match call.do:
        case "ack" | "extend" | "release" | "bury":
            won = made.answer["won"] if call.do == "extend" else made.answer
            return _compare_settling(model.settle(deliveries[call.delivery].key, call, now), won)
        case "ack_many":
            acks = [Call("ack", delivery=each) for each in dict.fromkeys(call.deliveries)]
            wins = [model.settle(deliveries[ack.delivery].key, ack, now) for ack in acks]
            return _compare_settling(sum(wins), made.answer)
        case "contains":
            return None if made.answer == model.of(call.key).present else Broken.LOST
        case do if do in ANSWERS:
            return None if made.answer == ANSWERS[do](model, call, now) else Broken.OUTCOME
        case _:
            return None


def _compare_settling(expected: int, won: int) -> Broken | None:
    if won == expected:
        return None
    return Broken.STALE if won > expected else Broken.REFUSED


def _compare_poll(
    model: Sequential, made: Made, deliveries: dict[str, Delivered], *, may_skip: bool
) -> Broken | None:
    now = made.clock_low
    expected = model.due_order(now)[: None if may_skip else made.call.limit]
    for delivered in made.delivered():
        if may_skip and delivered.key in expected:
            del expected[: expected.index(delivered.key)]
        wanted = expected.pop(0) if expected else None
        if delivered.key != wanted:
            return _misplaced(model, delivered.key, now)
        broken = _wrong_fact(model.expected(wanted, now), delivered)
        if broken is not None:
            return broken
        deliveries[delivered.id] = delivered
        model.deliver(delivered)
    return Broken.STUCK if expected and not may_skip else None


def _misplaced(model: Sequential, key: str, now: int) -> Broken:
    """Name what is wrong with a message that should not have come here."""
    stored = model.of(key)
    if not stored.present:
        return Broken.CAME_BACK
    if stored.due > now:
        return Broken.EARLY
    return Broken.OVERLAP if stored.until > now else Broken.ORDER


def _wrong_fact(expected: tuple[Any, ...], delivered: Delivered) -> Broken | None:
    facts = (delivered.payload, delivered.due, delivered.attempt, delivered.at, delivered.until)
    names = (Broken.PAYLOAD, Broken.PAYLOAD, Broken.ATTEMPT, Broken.OUTCOME, Broken.OUTCOME)
    differences = zip(expected, facts, names, strict=True)
    return next((name for wanted, got, name in differences if wanted != got), None)
