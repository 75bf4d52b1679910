"""Fixed sequences of calls that try everything that is promised, step by step.

On a sound program a tour shows nothing wrong. A mutant shows on the tour that it names.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.fire.draining import TICKS
from tests.fire.entries import Call
from tests.fire.stage import LEASE, PERIOD, Player, Stage, stage_on

ALONE_CALLS = 600
# A settlement with a history takes fewer, on every store.
STATEMENTS = 12
RARELY = 3_600_000  # so that no regular look makes up for a message that was overlooked


def settling(stage: Stage) -> None:
    """Two actors take turns at everything that one queue can do."""
    first, second = stage.player("first"), stage.player("second")
    parts = (due, leases, extensions, updates, equal_offers, releases)
    for part in (*parts, burials, reschedules, removals):
        part(stage, first, second)
    stage.finish(second)


def due(stage: Stage, first: Player, second: Player) -> None:
    first.offer("due", "a", stage.now + 100)
    stage.advance(99)
    second.receive("due")
    stage.advance(1)
    second.settle("ack", second.receive("due"))


def leases(stage: Stage, first: Player, second: Player) -> None:
    first.offer("lease", "a")
    lost = first.receive("lease")
    second.receive("lease")
    stage.advance(LEASE - 1)
    second.receive("lease")
    stage.advance(1)
    current = second.receive("lease")
    for do in ("extend", "release", "bury", "ack"):
        first.settle(do, lost)
    second.settle("ack", current)
    second.settle("ack", current)


def extensions(stage: Stage, first: Player, second: Player) -> None:
    first.offer("extension", "a")
    held = first.receive("extension")
    stage.advance(LEASE - 1)
    first.settle("extend", held, LEASE)
    stage.advance(2)
    second.receive("extension")
    first.settle("ack", held)


def updates(stage: Stage, first: Player, second: Player) -> None:
    first.offer("update", "a")
    revoked = second.receive("update")
    first.offer("update", "b")
    second.settle("ack", revoked)
    second.settle("ack", second.receive("update"))
    stage.advance(LEASE)
    second.settle("ack", second.receive("update"))


def equal_offers(stage: Stage, first: Player, second: Player) -> None:
    instant = stage.now
    first.offer("equal", "a", instant)
    held = second.receive("equal")
    first.offer("equal", "a", instant)
    first.offer("equal", "b", instant, replace=False)
    second.settle("ack", held)


def releases(stage: Stage, first: Player, second: Player) -> None:
    first.offer("release", "a")
    first.settle("release", first.receive("release"), 500)
    second.receive("release")
    stage.advance(499)
    second.receive("release")
    stage.advance(1)
    second.settle("ack", second.receive("release"))


def burials(stage: Stage, first: Player, second: Player) -> None:
    for key in ("buried", "revived"):
        first.offer(key, "a")
        first.settle("bury", first.receive(key))
    first.call(Call("revive", "revived", due=stage.now))
    first.call(Call("revive", "revived", due=stage.now))
    second.settle("ack", second.receive("revived"))
    for payload in ("older", "newer"):
        first.offer("twice", payload)
        first.settle("bury", first.receive("twice"))
    first.call(Call("revive_one", "twice", "older", stage.now))
    second.settle("ack", second.receive("twice"))
    stage.advance(LEASE)
    second.receive("buried")


def reschedules(stage: Stage, first: Player, second: Player) -> None:
    first.offer("moved", "a")
    held = second.receive("moved")
    first.call(Call("reschedule", "moved", due=stage.now + 500))
    second.settle("ack", held)
    first.receive("moved")
    stage.advance(500)
    second.settle("ack", second.receive("moved"))


def removals(stage: Stage, first: Player, second: Player) -> None:
    first.offer("dropped", "a")
    first.call(Call("drop", "dropped"))
    second.receive("dropped")
    items = [Call("offer", f"many-{number}", "a", stage.now) for number in range(3)]
    first.call(Call("offer_batch", items=items))
    found = first.call(Call("poll", limit=3)) or []
    first.call(Call("ack_many", deliveries=[each["id"] for each in found]))
    stage.advance(LEASE)
    second.receive("many-2")


def history(stage: Stage) -> None:
    """An actor settles in every way, with a history."""
    actor = stage.player("only")
    for do in ("ack", "bury"):
        actor.offer(do, "a")
        actor.settle(do, actor.receive(do))
    actor.offer("drop", "a")
    actor.call(Call("drop", "drop"))
    stage.finish(actor)


def failing_statements(stage: Stage) -> None:
    """In each call that is several statements, each of them fails in turn."""
    actor = stage.player("only", fails=True)
    for number in range(STATEMENTS):
        for do in ("ack", "bury", "drop"):
            key = f"{do}-{number}"
            actor.offer(key, "a")
            held = actor.receive(key) if do != "drop" else ""
            actor.order("fail", number=number)
            actor.settle(do, held) if held else actor.call(Call("drop", key))
        actor.offer("revived", str(number))
        actor.settle("bury", actor.receive("revived"))
        actor.order("fail", number=number)
        actor.call(Call("revive", "revived", due=stage.now))
        actor.settle("ack", actor.receive("revived"))
    stage.finish(actor)


def alone(stage: Stage) -> None:
    """One actor makes random calls, all of whose answers are known."""
    walker = stage.player("walker", poll_interval=RARELY)
    walker.order("walk", calls=ALONE_CALLS, seed=1)


def killed_producer(stage: Stage) -> None:
    """A process dies right after its offer."""
    producer, other = stage.player("producer"), stage.player("other")
    producer.offer("kept", "a")
    stage.kill(producer)
    stage.finish(other)


def killed_consumer(stage: Stage) -> None:
    """A process dies while its handler runs."""
    consumer, other = stage.player("consumer"), stage.player("other")
    other.offer("handled", "a")
    consumer.order("consume", concurrency=1, batch=1)
    consumer.order("await_runs", number=1, patience=30.0)
    stage.kill(consumer)
    stage.finish(other)


def long_handler(stage: Stage) -> None:
    """A handler runs for longer than a lease."""
    consumer, other = stage.player("consumer"), stage.player("other")
    other.offer("long", "a")
    consumer.order("consume", concurrency=1, batch=1)
    consumer.order("await_runs", number=1, patience=30.0)
    ends_at = stage.now + LEASE
    stage.advance(LEASE - 1000)
    consumer.order("await_extended", after=ends_at, patience=stage.patience)
    stage.advance(2000, only=other)  # so that the consumer does not fetch it again itself
    other.receive("long")
    consumer.order("let_go")
    consumer.order("stop_consumer")
    stage.finish(other)


def stopped_consumer(stage: Stage) -> None:
    """A consumer stops while messages wait for its handler."""
    consumer, other = stage.player("consumer"), stage.player("other")
    items = [Call("offer", f"waiting-{number}", "a", stage.now) for number in range(4)]
    other.call(Call("offer_batch", items=items))
    consumer.order("consume", concurrency=1, batch=4)
    consumer.order("await_in_hand", number=4, patience=30.0)
    consumer.order("await_runs", number=1, patience=30.0)
    consumer.order("stop_consumer")
    stage.finish(other)


def crons(stage: Stage) -> None:
    """Several nodes keep one cron, one of them on a clock that is late."""
    nodes = [stage.player("first", TICKS), stage.player("second", TICKS)]
    for node in nodes:
        node.order("install", last=False)
    for _ in range(4):
        stage.advance(PERIOD)
        for node in nodes:
            node.order("refresh")
            node.order("accept")
    late = stage.player("late", TICKS)
    late.hand.order("move", to=stage.now - 3 * PERIOD)
    late.order("install", last=False)
    late.order("close")
    for node in nodes:
        node.order("close")
    stage.advance(20 * PERIOD)  # no node is running
    last = stage.player("last", TICKS)
    last.order("install", last=True)
    last.order("close")
    last.order("accept")


TOURS: Mapping[str, Callable[[Stage], None]] = {
    "settling": settling,
    "history": history,
    "failing statements": failing_statements,
    "alone": alone,
    "killed producer": killed_producer,
    "killed consumer": killed_consumer,
    "long handler": long_handler,
    "stopped consumer": stopped_consumer,
    "crons": crons,
}
KEEP_HISTORY = frozenset({"history", "failing statements"})
# The memory store ends with its process.
NEED_TWO_PROCESSES = frozenset({"killed producer", "killed consumer"})


def take_tour(name: str, url: str, folder: Path, mutant: str = "") -> None:
    """Run a tour, which leaves its logs in the folder."""
    with stage_on(url, folder, mutant=mutant, history=name in KEEP_HISTORY) as stage:
        TOURS[name](stage)
