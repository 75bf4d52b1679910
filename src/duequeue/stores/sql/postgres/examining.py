"""The examination of a PostgreSQL database."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import psycopg

from duequeue.port.examining import Finding, Level, judge_clock, judge_connections
from duequeue.port.store import Steps
from duequeue.stores.sql.commands import Query, Row
from duequeue.stores.sql.connections.examining import (
    examine_schema,
    judge_indexes,
    judge_plan,
    judge_transactions,
)

DIALECT = "postgres"
DUE_INDEX = "duequeue_message_due"

MANY_DEAD_ROWS = 10_000
LARGE_INDEX, MANY_BYTES_PER_ROW = 100_000_000, 1000


class ExaminedPostgres(NamedTuple):
    """What a server says about itself; `clock` is in milliseconds since the epoch."""

    version: str
    clock: int
    is_standby: bool
    fsync: str
    autovacuum: str
    track_counts: str
    most_connections: int
    connections: int


def examine(now: int) -> Steps[list[Finding]]:
    """Examine the server, then the tables if they exist."""
    rows: list[Row] = yield Query("examine_server")
    server = ExaminedPostgres(*rows[0])
    schema = yield from examine_schema(DIALECT)
    findings = [*judge_server(server), judge_clock(server.clock - now), schema.finding]
    findings += yield from _asked("examine_transactions", "transactions", judge_transactions)
    if schema.exists:
        findings += yield from _asked("examine_table", "autovacuum", _with_settings(server))
        findings += yield from _asked("examine_indexes", "indexes", judge_all_indexes)
        findings += yield from _asked("examine_poll_plan", "poll plan", _judge_plan)
    return findings


def judge_server(server: ExaminedPostgres) -> list[Finding]:
    """Judge what the server says about itself."""
    findings = [Finding(Level.OK, "server", f"This is PostgreSQL {server.version}.")]
    if server.is_standby:
        text, advice = "The server is a standby, which refuses writes.", "Connect to the primary."
        findings.append(Finding(Level.PROBLEM, "server", text, advice))
    if server.fsync != "on":
        text = "fsync is off, so a crash of the server may lose or damage everything."
        findings.append(Finding(Level.PROBLEM, "durability", text, "Turn fsync on."))
    advice = "Lower pool_size in the URLs, use a pooler, or raise max_connections."
    return [*findings, judge_connections(server.connections, server.most_connections, advice)]


def judge_autovacuum(server: ExaminedPostgres, options: str, live: int, dead: int) -> list[Finding]:
    """Judge whether dead rows are cleaned up."""
    about = "autovacuum"
    if server.autovacuum != "on" or server.track_counts != "on":
        advice = "Turn autovacuum and track_counts on; without them the table grows for ever."
        return [Finding(Level.PROBLEM, about, "Autovacuum is off on this server.", advice)]
    if "autovacuum_enabled=off" in options or "autovacuum_enabled=false" in options:
        advice = "ALTER TABLE duequeue_message RESET (autovacuum_enabled);"
        text = "Autovacuum is off for the table of messages."
        return [Finding(Level.PROBLEM, about, text, advice)]
    text = f"The table of messages has about {live:,} live and {dead:,} dead rows."
    if dead > MANY_DEAD_ROWS and dead > live:
        advice = "Look for transactions that stay open for long, or run VACUUM duequeue_message."
        return [Finding(Level.ADVICE, about, text, advice)]
    return [Finding(Level.OK, about, text)]


def judge_all_indexes(rows: list[Row]) -> list[Finding]:
    """Judge whether the indexes are there, and whether one is much larger than it need be."""
    found = {name for name, _, _ in rows}
    return [judge_indexes(found)] + [
        Finding(
            Level.ADVICE,
            "indexes",
            f"{name} has {size / 1e6:,.0f} MB for about {live:,} messages.",
            f"REINDEX INDEX CONCURRENTLY {name};",
        )
        for name, size, live in rows
        if size > LARGE_INDEX and size > MANY_BYTES_PER_ROW * max(live, 1)
    ]


def _with_settings(server: ExaminedPostgres) -> Callable[[list[Row]], list[Finding]]:
    return lambda rows: judge_autovacuum(server, *rows[0])


def _judge_plan(rows: list[Row]) -> list[Finding]:
    plan = rows[0][0]
    nodes = list(_nodes((json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]))
    by_index = {node.get("Index Name") for node in nodes} == {None, DUE_INDEX}
    sorts = any("Sort" in node["Node Type"] for node in nodes)
    return [judge_plan(walks_index=by_index and not sorts)]


def _nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(node for each in plan.get("Plans", ()) for node in _nodes(each))]


def _asked(
    query: str, about: str, judge: Callable[[list[Row]], list[Finding]]
) -> Steps[list[Finding]]:
    """Run one query and judge its rows; if the login may not run it, report only that."""
    try:
        rows: list[Row] = yield Query(query)
    except psycopg.errors.InsufficientPrivilege as error:
        reason = str(error).strip().splitlines()[0]
        text = f"This login may not read this: {reason}."
        return [Finding(Level.ADVICE, about, text, "Run this again with the login of the owner.")]
    return judge(rows)
