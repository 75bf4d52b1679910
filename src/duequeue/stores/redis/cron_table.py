"""The crons of one kind of message in Redis; see `port.cron_table.CronTable`.

An operation reads what is there, decides, and commits all of it in one script. The script refuses
if the prefix has changed since, or if a tick that counts as undelivered was claimed; then the
operation begins again.
"""

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from duequeue.instants import to_millis
from duequeue.port.cron_rules import Holding, UndeliveredTick, decide
from duequeue.port.cron_table import (
    REMEMBERED,
    CronListing,
    CronLook,
    CronRow,
    CronSteps,
    Installation,
    Installed,
    Tick,
)
from duequeue.port.store import Record
from duequeue.schedules.tick import find_tick
from duequeue.stores.redis.commands import MOST_BYTES, Caller, Word, record_words

# All instants have the same number of digits, so that they sort as text.
SHIFT = 10**14
LISTED_AT_ONCE = 20
UNDELIVERED = 2


class TickNote(NamedTuple):
    """A note of a tick, and whether its message is undelivered, live or gone."""

    config_hash: str
    at: int
    key: str
    life: int


class CronState(NamedTuple):
    """The record of a prefix, with its version."""

    version: int
    row: CronRow | None
    forgotten_until: int | None
    notes: Sequence[TickNote]

    @property
    def undelivered(self) -> list[UndeliveredTick]:
        """The ticks whose messages were never claimed."""
        return [UndeliveredTick(*note[:3]) for note in self.notes if note.life == UNDELIVERED]


class Change(NamedTuple):
    """What an operation changes of a prefix."""

    row: CronRow
    held: Sequence[UndeliveredTick] = ()
    removed: Sequence[UndeliveredTick] = ()
    forgotten: Sequence[TickNote] = ()
    noted: Sequence[tuple[str, int, str]] = ()
    offered: Sequence[Record] = ()
    config_hash: str = ""
    forgets_until: int | None = None


class RedisCronTable:
    """The crons of one kind of message."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def look(self, prefix: str, config_hash: str, since: int) -> CronSteps[CronLook]:
        """Read the row and the notes in one script."""
        words = (prefix, config_hash, _digits(since))
        text, *known = yield self._caller.script("cron_look", words)
        _, row = _parsed(text)
        return CronLook(row or CronRow(), frozenset([_instant(each) for each in known]))

    def install(self, installation: Installation, now: int) -> CronSteps[Installed]:
        """Read, decide and commit."""
        prefix, config_hash = installation.prefix, installation.config_hash
        while True:
            state = yield from self._read(prefix, config_hash)
            row = state.row or CronRow()
            ours = [note for note in state.notes if note.config_hash == config_hash]
            known = {note.at for note in ours}
            holding = Holding(row, state.undelivered, known, state.forgotten_until)
            decision = decide(installation, holding)
            if decision.row is None:
                return Installed(decision.standing)
            over = _over([*ours, *_fresh(config_hash, decision.noted)], now)
            change = Change(
                decision.row,
                held=state.undelivered if installation.takes_over else (),
                removed=decision.removed,
                forgotten=over if decision.noted else (),
                noted=[(config_hash, tick.at, tick.key) for tick in decision.noted],
                offered=decision.offered,
                config_hash=config_hash,
                forgets_until=_until(over, state.forgotten_until) if decision.noted else None,
            )
            outcomes = yield from self._commit(prefix, state.version, change, now)
            if outcomes is not None:
                pairs = zip(decision.offered, outcomes, strict=True)
                changed = [record.due_at for record, outcome in pairs if outcome != ord("i")]
                due_at = min(changed, default=None)
                return Installed(decision.standing, len(decision.noted), due_at)

    def uninstall(self, prefix: str, config_hash: str, now: int) -> CronSteps[int]:
        """Remove the ticks of this configuration."""
        while True:
            state = yield from self._read(prefix, config_hash)
            if state.row is None:
                return 0
            gone = [tick for tick in state.undelivered if tick.config_hash == config_hash]
            ends = state.row.config_hash == config_hash
            row = state.row._replace(installed=False) if ends else state.row
            change = Change(row, held=gone, removed=gone)
            if (yield from self._commit(prefix, state.version, change, now)) is not None:
                return len(gone)

    def set_paused(self, prefix: str, now: int, *, paused: bool) -> CronSteps[bool]:
        """Change the row, and remove the ticks of every configuration for a pause."""
        while True:
            state = yield from self._read(prefix, "")
            row = (state.row or CronRow()).with_pause(now, paused=paused)
            if row is None:
                return False
            gone = state.undelivered if paused else []
            change = Change(row, held=gone, removed=gone)
            if (yield from self._commit(prefix, state.version, change, now)) is not None:
                return True

    def listing(self) -> CronSteps[list[CronListing]]:
        """Read the rows, then the ticks of some prefixes at a time."""
        reply = iter((yield self._caller.script("cron_rows")))
        rows = {
            prefix.decode(): _parsed(text)[1] for prefix, text in zip(reply, reply, strict=True)
        }
        installed = [(prefix, row) for prefix, row in sorted(rows.items()) if row and row.installed]
        found: list[CronListing] = []
        for first in range(0, len(installed), LISTED_AT_ONCE):
            part = installed[first : first + LISTED_AT_ONCE]
            words = [word for prefix, row in part for word in (prefix, row.config_hash)]
            ticks = iter((yield self._caller.script("cron_list", words)))
            found += [
                CronListing(
                    prefix,
                    *row[:3],
                    row.paused,
                    _instant_or_none(next_at),
                    _instant_or_none(last_at),
                )
                for (prefix, row), next_at, last_at in zip(part, ticks, ticks, strict=False)
            ]
        return found

    def _read(self, prefix: str, config_hash: str) -> CronSteps[CronState]:
        reply = yield self._caller.script("cron_read", (prefix, config_hash))
        text, forgotten, *rest = reply
        parts = iter(rest)
        notes = [
            TickNote(each.decode(), _instant(at), key.decode(), life)
            for each, at, key, life in zip(parts, parts, parts, parts, strict=True)
        ]
        version, row = _parsed(text)
        return CronState(version, row, int(forgotten) if forgotten else None, notes)

    def _commit(
        self, prefix: str, version: int, change: Change, now: int
    ) -> CronSteps[bytes | None]:
        """Return the outcomes of the offers, or None if somebody else was faster."""
        lists: list[Sequence[Word]] = [
            [tick.key for tick in change.held],
            [tick.key for tick in change.removed],
            _members(prefix, [*change.removed, *[note[:3] for note in change.forgotten]]),
            _members(prefix, change.noted),
        ]
        until = "" if change.forgets_until is None else change.forgets_until
        words: list[Word] = [now, prefix, version, json.dumps(change.row)]
        words += [change.config_hash, until, *map(len, lists), MOST_BYTES]
        words += [word for part in lists for word in part]
        words += [word for record in change.offered for word in record_words(record)]
        outcomes: bytes | None = yield self._caller.script("cron_commit", words, now)
        return outcomes


def note_of_key(key: str) -> str:
    """Return the note of the tick to which a key belongs, without the key; "" for other keys."""
    tick = find_tick(key)
    if tick is None:
        return ""
    return _member(tick.prefix, tick.config_hash.text, to_millis(tick.at, "at"), "")


def _member(prefix: str, config_hash: str, at: int, key: str) -> str:
    return "\0".join((prefix, config_hash, _digits(at), key))


def _members(prefix: str, notes: Iterable[tuple[str, int, str]]) -> list[str]:
    return [_member(prefix, *note) for note in notes]


def _digits(at: int) -> str:
    return f"{at + SHIFT:015d}"


def _instant(digits: bytes) -> int:
    return int(digits) - SHIFT


def _instant_or_none(digits: bytes) -> int | None:
    return _instant(digits) if digits else None


def _parsed(text: bytes) -> tuple[int, CronRow | None]:
    """Return the version of a prefix, and its row."""
    if not text:
        return 0, None
    version, row = text.split(b" ", 1)
    return int(version), CronRow(*json.loads(row))


def _fresh(config_hash: str, ticks: Iterable[Tick]) -> list[TickNote]:
    return [TickNote(config_hash, tick.at, tick.key, UNDELIVERED) for tick in ticks]


def _over(notes: Iterable[TickNote], now: int) -> list[TickNote]:
    """Return the notes of old ticks whose messages are gone, the latest first."""
    past = sorted([note for note in notes if note.at <= now], key=lambda note: -note.at)
    return [note for note in past[REMEMBERED:] if not note.life]


def _until(over: Sequence[TickNote], before: int | None) -> int | None:
    """Return up to when ticks are forgotten, once these notes are gone."""
    if not over:
        return None
    return over[0].at if before is None else max(over[0].at, before)
