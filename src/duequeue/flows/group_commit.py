"""Offers that overlap share a commit.

A commit takes as long for one message as for a hundred. So while one caller's offer is under way,
the offers that arrive meanwhile wait, and the first of them then stores all of them in one commit.
An offer that overlaps with no other is stored at once.
"""

import threading
from collections.abc import Sequence
from time import monotonic
from typing import Protocol

from duequeue.drive.actions import Apart, Flow, Listen
from duequeue.errors import InvalidArgument, StoreError
from duequeue.message import OfferOutcome
from duequeue.port.store import Record
from duequeue.wakeups.bell import Bell

MOST_FOLLOWERS = 99
# No offer waits longer than this for a commit that does not end: the next commit starts beside it.
PATIENCE = 0.05


class StoreRecords(Protocol):
    """Stores records in one transaction. If hurried, it tries once and waits for no locked row."""

    def __call__(self, records: list[Record], *, hurried: bool = False) -> Flow[list[OfferOutcome]]:
        """Return the outcomes in the order of the records."""


class PendingOffer:
    """An offer that waits for a commit, and its outcome."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.bell = Bell()
        self.outcome: OfferOutcome | None = None
        self.left_alone = False
        self.leads: list[PendingOffer] = []

    @property
    def waits(self) -> bool:
        """Whether it has no outcome yet and may still get one from a group."""
        return self.outcome is None and not self.left_alone


class GroupCommit:
    """Which offers wait, and which commit is under way; safe from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[PendingOffer] = []
        self._under_way: object | None = None
        self._started_at = 0.0

    def start_alone(self) -> object | None:
        """Start a commit of a single offer; return None if another one is under way or waits."""
        with self._lock:
            if self._under_way is not None or self._waiting:
                return None
            self._under_way = commit = object()
            self._started_at = monotonic()
            return commit

    def finish_alone(self, commit: object) -> None:
        """End a commit that `start_alone` returned, and wake the next in line."""
        self._end(commit)

    def wait(self, record: Record) -> PendingOffer:
        """Add an offer to those that wait."""
        offer = PendingOffer(record)
        with self._lock:
            self._waiting.append(offer)
        return offer

    def start(self, leader: PendingOffer, now: float) -> list[PendingOffer]:
        """Start a group led by `leader` and return its members.

        Return [] if the leader no longer waits, or if a commit started less than PATIENCE ago.
        """
        with self._lock:
            busy = self._under_way is not None and now < self._started_at + PATIENCE
            if busy or leader not in self._waiting:
                return []
            self._waiting.remove(leader)
            group = [leader, *self._waiting[:MOST_FOLLOWERS]]
            del self._waiting[:MOST_FOLLOWERS]
            leader.leads = group
            self._under_way = group
            self._started_at = now
            return group

    def finish(self, group: list[PendingOffer], outcomes: Sequence[OfferOutcome]) -> None:
        """Hand each member its outcome; members without one must offer by themselves."""
        for offer, outcome in zip(group, outcomes, strict=False):
            offer.outcome = outcome
        for offer in group:
            offer.left_alone = offer.outcome is None
            offer.bell.ring_all()
        self._end(group)

    def withdraw(self, offer: PendingOffer) -> None:
        """Withdraw an offer, whatever its state, and wake its followers and the next in line."""
        if offer.leads:
            self.finish(offer.leads, [])
        with self._lock:
            if offer in self._waiting:
                self._waiting.remove(offer)
            if self._waiting:
                self._waiting[0].bell.ring_all()

    def _end(self, commit: object) -> None:
        with self._lock:
            if self._under_way is commit:  # otherwise a later commit has started beside it
                self._under_way = None
            if self._waiting:
                self._waiting[0].bell.ring_all()


def share_commit(
    group_commit: GroupCommit, record: Record, store: StoreRecords
) -> Flow[OfferOutcome]:
    """Offer a record in one commit with those that wait too."""
    offer = group_commit.wait(record)
    try:
        while offer.waits:
            heard = offer.bell.rings
            if group := group_commit.start(offer, monotonic()):
                yield from _lead(group_commit, group, store)
            elif offer.waits:
                yield Listen(offer.bell, heard, 0, PATIENCE)
    except BaseException:
        group_commit.withdraw(offer)
        raise
    if offer.outcome is None:
        (outcome,) = yield from store([record])
        return outcome
    return offer.outcome


def _lead(group_commit: GroupCommit, group: list[PendingOffer], store: StoreRecords) -> Flow[None]:
    leader, *followers = group
    if followers:
        leader.leads = []  # from here on the group finishes by itself, with or without its leader
        yield Apart(_store_group(group_commit, group, store))
        return
    outcomes: list[OfferOutcome] = []
    try:
        outcomes = yield from store([leader.record])
    finally:
        group_commit.finish(group, outcomes)


def _store_group(
    group_commit: GroupCommit, group: list[PendingOffer], store: StoreRecords
) -> Flow[None]:
    outcomes: list[OfferOutcome] = []
    try:
        outcomes = yield from store([offer.record for offer in group], hurried=True)
    except (StoreError, InvalidArgument):  # which a server refuses
        pass  # one bad record must not fail the others, so each member offers again by itself
    finally:
        group_commit.finish(group, outcomes)
