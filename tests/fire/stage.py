"""Where tours take place: named actors in processes that are led step by step."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from tests.fire.actors import Settings
from tests.fire.crew import Crew, Hand, crew_of
from tests.fire.entries import Call
from tests.fire.recorder import Recorder

LEASE = 10_000
PERIOD = 250
EPOCH = 1_800_000_000_000
QUEUE = "orders"


class Player:
    """One actor of a tour, in a process of its own where the store can be shared."""

    def __init__(
        self, stage: "Stage", hand: Hand, name: str, queue: str, poll_interval: int
    ) -> None:
        self._stage = stage
        self.hand = hand
        self.name = name
        self.order("open", queue=queue, poll_interval=poll_interval)

    def order(self, do: str, **facts: Any) -> Any:
        return self.hand.order(do, actor=self.name, **facts)

    def call(self, call: Call) -> Any:
        return self.order("call", call=msgspec.to_builtins(call))

    def offer(self, key: str, payload: str, due: int | None = None, *, replace: bool = True) -> Any:
        instant = self._stage.now if due is None else due
        return self.call(Call("offer", key, payload, instant, replace))

    def receive(self, key: str, limit: int = 10) -> str:
        """Poll, and return the name of the delivery of a key, or the empty name."""
        found = self.call(Call("poll", limit=limit)) or []
        return next((each["id"] for each in found if each["key"] == key), "")

    def settle(self, do: str, delivery: str, delay: int = 0) -> Any:
        return self.call(Call(do, delivery=delivery, delay=delay))


class Stage:
    """The processes of a tour and their common clock, which stands still between the steps."""

    def __init__(self, crew: Crew, recorder: Recorder, *, shared: bool, patience: float) -> None:
        self._crew = crew
        self._shared = shared
        # How long a consumer is given for what it does by itself. A mutant may never do it.
        self.patience = patience
        self.now = crew.settings.epoch
        self.players: list[Player] = []
        self._recorder = recorder

    def player(
        self, name: str, queue: str = QUEUE, poll_interval: int = 300, *, fails: bool = False
    ) -> Player:
        """Let an actor appear, whose statements may fail if it `fails`."""
        if self._shared or not self._crew.hands:
            hand = self._crew.start()
            hand.await_ready()
        else:
            (hand,) = self._crew.hands.values()
        hand.order("move", to=self.now)
        if fails:
            hand.order("allow_failures")
        self.players.append(Player(self, hand, name, queue, poll_interval))
        return self.players[-1]

    def advance(self, millis: int, only: Player | None = None) -> None:
        """Let time pass, for everybody or for one process."""
        self.now += millis
        for hand in [only.hand] if only else self._crew.hands.values():
            hand.order("move", to=self.now)

    def kill(self, player: Player) -> None:
        """Kill the process of an actor, and write it down as a fault."""
        process = player.hand.spec.name
        self._recorder.noted("fault begins", fault_number=0, fault="kill", process=process)
        self._crew.hands.pop(process).close()
        self._recorder.noted("fault ends", fault_number=0)

    def finish(self, player: Player) -> None:
        """Receive whatever is left, long after every lease has ended."""
        self.advance(10 * LEASE)
        player.order("finish")


@contextmanager
def stage_on(url: str, folder: Path, *, mutant: str = "", history: bool = False) -> Iterator[Stage]:
    """Set up a stage on a store."""
    settings = Settings(url, EPOCH, LEASE, PERIOD, history)
    shared = not url.startswith("memory:")
    log = folder / "nemesis.jsonl"
    with closing(Recorder(log)) as recorder, crew_of(folder, settings, mutant) as crew:
        yield Stage(crew, recorder, shared=shared, patience=2.0 if mutant else 30.0)
