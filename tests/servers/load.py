"""Load from several processes, and what is missing or back after the server has died under it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from logging import CRITICAL, disable
from pathlib import Path
from time import monotonic, sleep

import psycopg

from tests.race.crew import Hand
from tests.race.together import PATIENCE
from tests.servers.witness import Journal, ack, ack_awaiting, fill, offer, offer_awaiting

MESSAGES = 20_000
# How many calls of each process must have been acknowledged before something happens to the server.
SOME = 30

KEYS = """
    SELECT kind, key FROM duequeue_message
    INNER JOIN duequeue_kind ON duequeue_kind.id = kind_id
"""


@dataclass(frozen=True)
class Damage:
    """The promises that a server has broken."""

    lost_offers: set[str]
    acked_but_back: set[str]


def quietly(call: Callable[[], None]) -> None:
    """Make a call without log records of the outage, which the test causes itself."""
    disable(CRITICAL)
    call()


class Load:
    """Two processes that offer and two that ack, one of each kind blocking and one awaiting."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self._offered = [Journal(folder, f"offered-{number}") for number in range(2)]
        self._acked = [Journal(folder, f"acked-{number}") for number in range(2)]

    @property
    def journals(self) -> list[Journal]:
        return [*self._offered, *self._acked]

    def calls(self) -> list[Callable[[], None]]:
        """Return what each process runs."""
        return [
            partial(offer, self._url, self._offered[0], "a"),
            partial(offer_awaiting, self._url, self._offered[1], "b"),
            partial(ack, self._url, self._acked[0]),
            partial(ack_awaiting, self._url, self._acked[1]),
        ]

    def go_on(self, some: int = SOME) -> None:
        """Wait until each process has had something acknowledged that it had not before."""
        sizes = [len(journal) for journal in self.journals]
        gives_up_at = monotonic() + PATIENCE
        while any(
            len(journal) < size + some for journal, size in zip(self.journals, sizes, strict=True)
        ):
            assert monotonic() < gives_up_at, f"stuck at {list(map(len, self.journals))}"
            sleep(0.005)

    def damage(self, url: str) -> Damage:
        """Compare what was acknowledged with what a server has, once nothing runs any more."""
        with psycopg.connect(url) as connection:
            stored = {(kind, key) for kind, key in connection.execute(KEYS)}
        offered = {key for journal in self._offered for key in journal.read()}
        acked = {key for journal in self._acked for key in journal.read()}
        letters = {key for kind, key in stored if kind == "letters|json"}
        orders = {key for kind, key in stored if kind == "orders|json"}
        return Damage(offered - letters, acked & orders)


@contextmanager
def under_load(url: str, folder: Path) -> Iterator[Load]:
    """Run the load while the block lasts, and then let every process end by itself."""
    fill(url, "order", MESSAGES)
    load = Load(url, folder)
    with ExitStack() as ending:
        hands = [Hand() for _ in load.calls()]
        for hand in hands:
            ending.callback(hand.end)
        ending.callback(load.journals[0].stop)  # also if the block fails
        for hand, call in zip(hands, load.calls(), strict=True):
            hand.start(partial(quietly, call))
        load.go_on()
        yield load
        load.journals[0].stop()
        errors = [error for hand in hands if (error := hand.outcome().error)]
        assert not errors, "\n\n".join(errors)
