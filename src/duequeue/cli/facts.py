"""Messages as commands print them: the facts for JSON, and the columns of tables."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from duequeue.cli.output import Column
from duequeue.cli.payloads import payload_facts, payload_text
from duequeue.cli.when import distance, now, shown, stamp, stamp_or_none
from duequeue.cron.installing import CronStatus
from duequeue.message import BuriedMessage, QueueStats, Snapshot
from duequeue.queue_names import QueueName
from duequeue.settled import Settled


def message_facts(message: Snapshot[bytes], payload_type: str) -> dict[str, Any]:
    """Show a message."""
    return {
        "key": message.key,
        "state": message.state.value,
        "due_at": stamp(message.due_at),
        "deliver_at": stamp_or_none(message.deliver_at),
        "attempts": message.attempts,
        "leased_until": stamp_or_none(message.leased_until),
        "expires_at": stamp_or_none(message.expires_at),
        "reason": message.reason,
        "headers": message.headers or None,
        **payload_facts(message.payload, payload_type),
    }


def burial_facts(burial: BuriedMessage[bytes], payload_type: str) -> dict[str, Any]:
    """Show a burial."""
    return {
        "key": burial.key,
        "id": burial.id,
        "due_at": stamp(burial.due_at),
        "buried_at": stamp(burial.buried_at),
        "attempts": burial.attempts,
        "reason": burial.reason,
        "headers": burial.headers or None,
        **payload_facts(burial.raw, payload_type),
    }


def settled_facts(settled: Settled) -> dict[str, Any]:
    """Show a row of the history."""
    took = settled.handler_time
    return {
        "key": settled.key,
        "outcome": settled.outcome.value,
        "settled_at": stamp(settled.settled_at),
        "due_at": stamp(settled.due_at),
        "delivered_at": stamp_or_none(settled.delivered_at),
        "attempts": settled.attempts,
        "handler_seconds": None if took is None else took.total_seconds(),
    }


def stats_facts(found: QueueName, stats: QueueStats) -> dict[str, Any]:
    """Show the numbers of a queue."""
    return {
        "queue": found.name,
        "type": found.payload_type,
        "total": stats.total,
        "due": stats.due,
        "leased": stats.leased,
        "future": stats.future,
        "buried": stats.buried,
        "oldest_due_at": stamp_or_none(stats.oldest_due_at),
        "next_due_at": stamp_or_none(stats.next_due_at),
    }


def cron_facts(cron: CronStatus) -> dict[str, Any]:
    """Show a cron."""
    return {
        "prefix": cron.prefix,
        "schedule": cron.schedule,
        "paused": cron.paused,
        "next_tick": stamp_or_none(cron.next_tick),
        "last_tick": stamp_or_none(cron.last_tick),
        "config_hash": cron.config_hash.text,
        "generation": cron.generation,
    }


def named(
    name: str, title: str | None = None, *, is_number: bool = False, width: int = 0
) -> Column:
    """Return a column with a fact as it is."""
    return Column(title or name.upper(), lambda item: str(item[name]), is_number, width)


def at(name: str, title: str) -> Column:
    """Return a column with an instant."""
    return Column(title, lambda item: shown(item[name]), width=len("2026-11-18 07:00:00Z"))


def away(name: str, title: str, since: Callable[[], datetime] = now) -> Column:
    """Return a column with the distance of an instant from now."""
    return Column(title, lambda item: distance(item[name], since()))


PAYLOAD = Column("PAYLOAD", payload_text)

MESSAGE_COLUMNS: Sequence[Column] = (
    named("key"),
    named("state"),
    at("deliver_at", "DUE"),
    away("deliver_at", ""),
    named("attempts", is_number=True),
    PAYLOAD,
)
BURIAL_COLUMNS: Sequence[Column] = (
    named("key"),
    at("buried_at", "BURIED"),
    named("attempts", is_number=True),
    named("id"),
    Column("REASON", lambda item: item["reason"].partition("\n")[0]),
)
SETTLED_COLUMNS: Sequence[Column] = (
    at("settled_at", "SETTLED"),
    named("outcome", width=len("replaced")),
    named("attempts", is_number=True),
    named("key"),
)
STATS_COLUMNS: Sequence[Column] = (
    named("queue"),
    named("type"),
    *(named(name, is_number=True) for name in ("total", "due", "leased", "future", "buried")),
    away("oldest_due_at", "OLDEST DUE"),
    away("next_due_at", "NEXT DUE"),
)
CRON_COLUMNS: Sequence[Column] = (
    named("prefix"),
    Column("STATE", lambda item: "paused" if item["paused"] else "running"),
    at("next_tick", "NEXT TICK"),
    at("last_tick", "LAST TICK"),
    named("schedule"),
)
