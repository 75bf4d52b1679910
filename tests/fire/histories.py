"""The history of each key, made from the calls of all processes.

A call on many keys counts as one operation on each of them. A call whose outcome is unknown may
have taken effect at any time after it began, or not at all. So it is an operation that need not
happen and has no end.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import msgspec

from tests.fire.entries import Call, Delivered
from tests.fire.logs import FOREVER, Logs, Made, Window

SETTLING = ("ack", "extend", "release", "bury")
ON_ONE_KEY = ("offer", "drop", "revive", "revive_one", "reschedule")
CHANGING = (*ON_ONE_KEY, *SETTLING)


@dataclass(frozen=True, eq=False)
class Operation:
    """One call's work on one key.

    `answer` is None if nobody knows it. `low` is the earliest that the clock can have read.
    """

    do: str
    call: Call
    began: int
    ended: int
    made_by: str
    answer: object = None
    required: bool = True
    delivered: Delivered | None = None
    low: int = 0
    after: "Operation | None" = None

    def __str__(self) -> str:
        ended = "never" if self.ended == FOREVER else f"{self.ended / 1e6:.6f}"
        facts = self.delivered or self.call
        words = f"{self.began / 1e6:.6f} to {ended:>12} {self.made_by:10} {self.do} {facts}"
        return words if self.do == "claim" else f"{words} -> {self.answer}"


@dataclass
class History:
    """The operations on the keys of one queue, and what may have happened unseen.

    From `unseen_since` on there were polls whose answers nobody saw, and which may have leased any
    message. From `given_back_since` on there were consumers, which may lease a message and give it
    back before anybody sees it. So does a poll that its caller gave up, and one whose reply comes
    when the leases are over: `given_up` says when each of these began, and what its clock may have
    read. `ahead` says when each consumer began, and how far its clock may be ahead of the instants
    in the logs, in microseconds.
    """

    queue: str
    keys: dict[str, list[Operation]] = field(default_factory=lambda: defaultdict(list))
    unseen_since: int = FOREVER
    given_back_since: int = FOREVER
    given_up: list[tuple[int, int]] = field(default_factory=list)
    ahead: list[tuple[int, int]] = field(default_factory=list)
    crashes: list[Window] = field(default_factory=list)
    consumers: dict[tuple[str, str], Made] = field(default_factory=dict)
    deliveries: dict[str, Delivered] = field(default_factory=dict)


def history_of(queue: str, calls: list[Made], logs: Logs) -> History:
    """Make the history of one queue."""
    history = History(queue)
    history.crashes = [window for window in logs.windows if window.undoes_leases]
    for made in calls:
        if made.call.do == "consume":
            history.consumers[made.process, made.actor] = made
        for delivered in received_by(made):
            history.deliveries[delivered.id] = delivered
    for made in calls:
        _add(history, made, logs)
    for made in calls:
        if made.call.do in {"stats", "buried"} and made.known:
            _add_for_every_key(history, made)
    return history


def received_by(made: Made) -> list[Delivered]:
    """Return the deliveries that a call handed to its caller."""
    if made.call.do == "run":
        return [made.call.received] if made.call.received else []
    return made.delivered() if made.call.do == "poll" and made.known else []


def _add(history: History, made: Made, logs: Logs) -> None:
    lost_replies = sum(
        window.loses_replies and window.meets(made.began, made.ended, made.process)
        for window in logs.windows
    )
    match made.call.do:
        case "poll":
            _add_poll(history, made)
            if lost_replies or not made.known:
                history.unseen_since = min(history.unseen_since, made.began)
            if made.error or lost_replies:
                history.given_up.append((made.began, made.clock_high))
        case "consume":
            history.given_back_since = min(history.given_back_since, made.began)
            history.unseen_since = min(history.unseen_since, *_mishaps(made, logs), FOREVER)
            if made.call.facts.get("clock_runs"):
                forwards = sum(move for move in _moves(made, logs) if move > 0)
                history.ahead.append((made.began, (made.clock_low + forwards) * 1000 - made.began))
        case "run":
            _add_run(history, made, logs)
        case _:
            for operation in _operations(history, made):
                history.keys[operation.call.key].append(operation)
                # A call whose reply was lost may be made again.
                again = replace(operation, ended=FOREVER, answer=None, required=False, after=None)
                if operation.do in CHANGING:
                    history.keys[operation.call.key] += [again] * min(lost_replies, 2)


def _operations(history: History, made: Made) -> Iterator[Operation]:
    call = made.call
    match call.do:
        case do if do in {*ON_ONE_KEY, "contains"}:
            yield _operation(made, call.do, call, made.answer)
        case "run_now":  # its actor's clock stands still during the call
            moved = msgspec.structs.replace(call, do="reschedule", due=made.clock_low)
            yield _operation(made, moved.do, moved, made.answer)
        case "offer_batch":
            yield from _batch(made)
        case "ack_many":
            answers = {0: False, len(call.deliveries): True}
            for delivery in call.deliveries:
                one = Call("ack", history.deliveries[delivery].key, delivery=delivery)
                yield _operation(made, "ack", one, answers.get(made.answer))
        case "extend":
            won = made.answer and made.answer["won"]
            until = made.answer["until"] if won else made.clock_low + call.delay
            one = Call("extend", history.deliveries[call.delivery].key, delivery=call.delivery)
            yield replace(_operation(made, "extend", one, won), low=until)
        case "ack" | "release" | "bury":
            key = history.deliveries[call.delivery].key
            one = Call(call.do, key, delivery=call.delivery, delay=call.delay)
            yield _operation(made, call.do, one, made.answer)
        case _:
            pass  # it says nothing about single keys


def _operation(made: Made, do: str, call: Call, answer: object) -> Operation:
    if not made.known:
        return Operation(
            do, call, made.began, FOREVER, made.name, None, False, None, made.clock_low
        )
    return Operation(do, call, made.began, made.ended, made.name, answer, low=made.clock_low)


def _batch(made: Made) -> Iterator[Operation]:
    answers = made.answer if made.known else [None] * len(made.call.items)
    latest: dict[str, Operation] = {}
    for item, answer in zip(made.call.items, answers, strict=True):
        operation = _operation(made, "offer", item, answer)
        latest[item.key] = replace(operation, after=latest.get(item.key))
        yield latest[item.key]


def _add_poll(history: History, made: Made) -> None:
    for delivered in made.delivered() if made.known else ():
        call = Call("claim", delivered.key)
        operation = Operation("claim", call, made.began, made.ended, made.name)
        history.keys[delivered.key].append(replace(operation, delivered=delivered))


def _add_run(history: History, made: Made, logs: Logs) -> None:
    """Add what a consumer did around one run of its handler: it polled before, and settled after.

    The log does not say when the consumer settled. It did so at some time before it stopped.
    """
    delivered = made.call.received
    assert delivered is not None
    consumer = history.consumers[made.process, made.actor]
    moves = _moves(consumer, logs)
    set_back = sum(move for move in moves if move < 0)
    # The consumer extends the lease, to an earlier instant if its clock was set back.
    lease = msgspec.structs.replace(delivered, until=delivered.until + set_back)
    call = Call("claim", delivered.key)
    polled = consumer.began if moves else _polled(made, consumer)
    operation = Operation("claim", call, polled, made.began, made.name)
    history.keys[delivered.key].append(replace(operation, delivered=lease))
    if not made.known:
        return
    verdict, delay = made.answer["verdict"], made.answer["delay"]
    call = Call(verdict, delivered.key, delivery=delivered.id, delay=delay)
    stopped = consumer.known and not any(
        window.meets(made.ended, consumer.ended, made.process) for window in logs.windows
    )
    settling = Operation(
        verdict,
        call,
        made.ended,
        consumer.ended if stopped else FOREVER,
        made.name,
        required=stopped,
        low=made.clock_low + set_back,
    )
    history.keys[delivered.key].append(settling)


def _polled(run: Made, consumer: Made) -> int:
    """Return the earliest that a consumer can have polled the message of a run.

    A running clock read the instant of the delivery then, to the millisecond. One that stands still
    says nothing about it.
    """
    if not consumer.call.facts.get("clock_runs"):
        return consumer.began
    assert run.call.received is not None
    ago = run.clock_low - run.call.received.at + 2
    return max(consumer.began, run.began - ago * 1000)


def _moves(consumer: Made, logs: Logs) -> list[int]:
    """Return by how much the clock of a consumer was moved, each time."""
    return [
        note.facts["now"] - note.facts["was"]
        for process, note in logs.events("clock")
        if process == consumer.process and note.actor == consumer.actor
    ]


def _mishaps(consumer: Made, logs: Logs) -> Iterator[int]:
    """Return when a consumer may have lost messages that it had fetched but not begun."""
    if not consumer.known:
        yield consumer.began
    for window in (*logs.windows, *logs.stalls):
        if window.meets(consumer.began, consumer.ended, consumer.process):
            yield window.began
    for _, note in logs.events("clock"):
        yield note.at


def _add_for_every_key(history: History, made: Made) -> None:
    """Add what a look at the whole queue says about each key."""
    burials: dict[str, list[str]] = defaultdict(list)
    for key, payload in made.answer if made.call.do == "buried" else ():
        burials[key].append(payload)
    for key in {*history.keys, *burials}:
        if made.call.do == "buried":
            # They are listed by the time of their burial, and clocks differ.
            call, answer = Call("burials", key), sorted(burials[key])
            history.keys[key].append(_operation(made, "burials", call, answer))
        elif made.answer["total"] == 0:
            history.keys[key].append(_operation(made, "contains", Call("contains", key), False))
