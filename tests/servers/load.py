"""Load from several processes, and what is missing or back after the store has died under it."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from logging import CRITICAL, disable
from pathlib import Path
from time import monotonic, sleep

import psycopg

from duequeue import Queue
from tests.fixtures.mariadb import connected
from tests.race.crew import Hand
from tests.race.together import PATIENCE
from tests.servers.witness import Journal, ack, ack_awaiting, fill, offer, offer_awaiting

MESSAGES = 20_000
# How many keys the store must have acknowledged to each process before something happens to it.
SOME = 30

KEYS = """
    SELECT kind, duequeue_message.key FROM duequeue_message
    INNER JOIN duequeue_kind ON duequeue_kind.id = kind_id
"""


@dataclass(frozen=True)
class Damage:
    """The promises that a store has broken."""

    lost_offers: set[str]
    acked_but_back: set[str]


class Load:
    """Two processes that offer and two that ack, one of each kind blocking and one awaiting."""

    def __init__(self, url: str, folder: Path) -> None:
        self._offered = [Journal(folder, f"offered-{number}") for number in range(2)]
        self._acked = [Journal(folder, f"acked-{number}") for number in range(2)]
        self.calls: list[Callable[[], None]] = [
            partial(offer, url, self._offered[0], "a"),
            partial(offer_awaiting, url, self._offered[1], "b"),
            partial(ack, url, self._acked[0]),
            partial(ack_awaiting, url, self._acked[1]),
        ]
        self._hands = [Hand() for _ in self.calls]

    @property
    def journals(self) -> list[Journal]:
        return [*self._offered, *self._acked]

    def start(self) -> None:
        for hand, call in zip(self._hands, self.calls, strict=True):
            hand.start(partial(quietly, call))
        self.go_on()

    def go_on(self, some: int = SOME) -> None:
        """Wait until each process has been promised something that it had not before."""
        sizes = [len(journal) for journal in self.journals]
        gives_up_at = monotonic() + PATIENCE
        while any(
            len(journal) < size + some for journal, size in zip(self.journals, sizes, strict=True)
        ):
            assert monotonic() < gives_up_at, f"stuck at {list(map(len, self.journals))}"
            sleep(0.005)

    def finish(self) -> None:
        """Let every process end by itself, without an error."""
        self.journals[0].stop()
        errors = [error for hand in self._hands if (error := hand.outcome().error)]
        assert not errors, "\n\n".join(errors)

    def kill(self) -> None:
        """End every process at once."""
        for hand in self._hands:
            hand.kill()

    def end(self) -> None:
        """Leave nothing running, whatever happened."""
        self.journals[0].stop()
        for hand in self._hands:
            hand.end()

    def damage(self, url: str) -> Damage:
        """Compare what was promised with what a store has, once nothing runs any more."""
        stored = stored_keys(url)
        offered = {key for journal in self._offered for key in journal.read()}
        acked = {key for journal in self._acked for key in journal.read()}
        letters = {key for kind, key in stored if kind == "letters|json"}
        orders = {key for kind, key in stored if kind == "orders|json"}
        return Damage(offered - letters, acked & orders)


def quietly(call: Callable[[], None]) -> None:
    """Make a call without log records of the outage, which the test causes itself."""
    disable(CRITICAL)
    call()


def stored_keys(url: str) -> set[tuple[str, str]]:
    """Return the kind and key of every message."""
    if url.startswith("sqlite"):
        path = url.removeprefix("sqlite:///").partition("?")[0]
        with closing(sqlite3.connect(path)) as file:
            assert file.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            return set(file.execute(KEYS))
    if url.startswith("mariadb"):
        with connected(url) as cursor:
            cursor.execute(KEYS)
            return {(kind.decode(), key.decode()) for kind, key in cursor.fetchall()}
    if "redis" in url:
        return {(f"{name}|json", key) for name in ("letters", "orders") for key in _keys(url, name)}
    with psycopg.connect(url) as connection:
        return set(connection.execute(KEYS))


def _keys(url: str, name: str) -> Iterator[str]:
    with Queue.open(url, name) as queue:
        page = queue.list(limit=1000)
        while True:
            yield from (message.key for message in page.messages)
            if page.next is None:
                return
            page = queue.list(limit=1000, after=page.next)


@contextmanager
def under_load(url: str, folder: Path) -> Iterator[Load]:
    """Run the load while the block lasts, and then let every process end by itself."""
    with doomed_load(url, folder) as load:
        yield load
        load.finish()


@contextmanager
def doomed_load(url: str, folder: Path) -> Iterator[Load]:
    """Run the load until the block kills it."""
    fill(url, "order", MESSAGES)
    with ExitStack() as ending:
        load = Load(url, folder)
        ending.callback(load.end)
        load.start()
        yield load
