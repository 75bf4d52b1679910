"""The examination of MariaDB or MySQL.

The plan of a poll is not looked at, because a poll forces its index and fails without it.
"""

from typing import NamedTuple

from duequeue.headers import MAX_HEADERS_BYTES
from duequeue.message import MAX_PAYLOAD_BYTES
from duequeue.port.examining import Finding, Level, judge_clock, judge_connections
from duequeue.port.store import Steps
from duequeue.stores.sql.commands import Query, Row
from duequeue.stores.sql.connections.examining import (
    examine_schema,
    judge_indexes,
    judge_transactions,
)
from duequeue.stores.sql.mariadb.errors import ACCESS_DENIED, DRIVER_ERRORS, number_of
from duequeue.stores.sql.mariadb.server import is_mysql

DIALECT = "mariadb"

# What the largest message takes in a statement: its payload in base 64, the rest in hexadecimal.
LARGEST_STATEMENT = MAX_PAYLOAD_BYTES * 4 // 3 + 2 * MAX_HEADERS_BYTES + 16 * 1024
LONG_HISTORY = 1_000_000


class ExaminedMariaDB(NamedTuple):
    """What a server says about itself and about our connection to it."""

    version: str
    is_read_only: bool
    flush_log: str
    flush_method: str
    has_binlog: bool
    binlog_format: str
    sync_binlog: str
    isolation: str
    has_snapshots: bool
    most_bytes: int
    most_connections: int
    connections: int
    history: int | None  # how many changes are not cleaned up yet; MySQL does not say


def examine(now: int) -> Steps[list[Finding]]:
    """Examine the server, then the tables if they exist."""
    ((version, clock),) = yield Query("examine_server")
    settings = dict((yield Query("examine_settings")))
    status = dict((yield Query("examine_status")))
    server = server_from(str(version), settings, status)
    schema = yield from examine_schema(DIALECT)
    findings = [*judge_server(server), judge_clock(int(clock) - now), schema.finding]
    findings += yield from _examine_transactions(server)
    if schema.exists:
        indexes: list[Row] = yield Query("examine_indexes")
        findings.append(judge_indexes({name for (name,) in indexes}))
    return findings


def server_from(version: str, settings: dict[str, str], status: dict[str, str]) -> ExaminedMariaDB:
    """Return what the server says, of which some may be missing."""
    history = status.get("Innodb_history_list_length")
    return ExaminedMariaDB(
        version,
        is_read_only=settings.get("read_only", "OFF") != "OFF",
        flush_log=settings.get("innodb_flush_log_at_trx_commit", "1"),
        flush_method=settings.get("innodb_flush_method", ""),
        has_binlog=settings.get("log_bin") == "ON",
        binlog_format=settings.get("binlog_format", "ROW"),
        sync_binlog=settings.get("sync_binlog", "1"),
        isolation=settings.get("transaction_isolation") or settings.get("tx_isolation", ""),
        has_snapshots=settings.get("innodb_snapshot_isolation") == "ON",
        most_bytes=int(settings["max_allowed_packet"]),
        most_connections=int(settings["max_connections"]),
        connections=int(status["Threads_connected"]),
        history=None if history is None else int(history),
    )


def judge_server(server: ExaminedMariaDB) -> list[Finding]:
    """Judge what the server says about itself."""
    name = f"MySQL {server.version}" if is_mysql(server.version) else f"MariaDB {server.version}"
    findings = [Finding(Level.OK, "server", f"This is {name}.")]
    if server.is_read_only:
        text, advice = "The server is read-only.", "Connect to the server that takes writes."
        findings.append(Finding(Level.PROBLEM, "server", text, advice))
    advice = "Lower pool_size in the URLs, or raise max_connections."
    return [
        *findings,
        judge_durability(server),
        judge_binlog(server),
        judge_session(server),
        judge_packets(server.most_bytes),
        judge_connections(server.connections, server.most_connections, advice),
    ]


def judge_durability(server: ExaminedMariaDB) -> Finding:
    """Judge what a crash of the server or of its machine loses."""
    about, name = "durability", "innodb_flush_log_at_trx_commit"
    text = f"{name} is {server.flush_log}"
    if server.flush_log == "0":
        text += ", so a crash of the server loses the last second."
        return Finding(Level.PROBLEM, about, text, f"SET GLOBAL {name} = 1;")
    if server.flush_method == "nosync":
        text = "innodb_flush_method is nosync, so a crash of the machine may damage everything."
        return Finding(Level.PROBLEM, about, text, "Set it to O_DIRECT or fsync.")
    if server.flush_log == "2":
        text += ", so a crash of the machine loses the last second."
        return Finding(Level.ADVICE, about, text, f"SET GLOBAL {name} = 1;")
    if server.has_binlog and server.sync_binlog != "1":
        text = f"sync_binlog is {server.sync_binlog}, so a crash of the machine may lose commits."
        return Finding(Level.ADVICE, about, text, "SET GLOBAL sync_binlog = 1;")
    return Finding(Level.OK, about, f"{text}, so each commit waits for the disk.")


def judge_binlog(server: ExaminedMariaDB) -> Finding:
    """Judge whether the binary log can take what we write."""
    if not server.has_binlog:
        return Finding(Level.OK, "binary log", "There is no binary log.")
    text = f"binlog_format is {server.binlog_format}"
    if server.binlog_format == "STATEMENT":
        text += ", so every write fails, because we read committed rows."
        return Finding(Level.PROBLEM, "binary log", text, "Set it to MIXED or ROW.")
    return Finding(Level.OK, "binary log", f"{text}.")


def judge_session(server: ExaminedMariaDB) -> Finding:
    """Judge whether our connection still has the settings that it was opened with."""
    wrong = []
    if server.isolation != "READ-COMMITTED":
        wrong.append(f"the isolation level is {server.isolation}")
    if server.has_snapshots:
        wrong.append("innodb_snapshot_isolation is on")
    if wrong:
        text = f"On our connection {' and '.join(wrong)}, so calls wait for each other or fail."
        advice = "Find the proxy that drops or changes the settings of our connections."
        return Finding(Level.PROBLEM, "session", text, advice)
    return Finding(Level.OK, "session", "Our connection reads committed rows, as it must.")


def judge_packets(most_bytes: int) -> Finding:
    """Judge whether the largest payload fits into a statement."""
    text = f"max_allowed_packet is {most_bytes:,} bytes"
    if most_bytes < LARGEST_STATEMENT:
        text += f", and a payload of {MAX_PAYLOAD_BYTES:,} bytes does not fit."
        advice = f"If you have large payloads, raise it to {16 * 2**20:,}."
        return Finding(Level.ADVICE, "packets", text, advice)
    return Finding(Level.OK, "packets", f"{text}, in which the largest payload fits.")


def judge_history(length: int) -> Finding:
    """Judge how many changes InnoDB still has to clean up after."""
    text = f"InnoDB has {length:,} old transactions to clean up after."
    if length < LONG_HISTORY:
        return Finding(Level.OK, "purge", text)
    advice = "End transactions that stay open for long, because they keep deleted messages on disk."
    return Finding(Level.ADVICE, "purge", text, advice)


def _examine_transactions(server: ExaminedMariaDB) -> Steps[list[Finding]]:
    """Look at open transactions, which only a login with the right PROCESS may see."""
    found = [] if server.history is None else [judge_history(server.history)]
    try:
        rows: list[Row] = yield Query("examine_transactions")
    except DRIVER_ERRORS as error:
        if number_of(error) != ACCESS_DENIED:
            raise
        text = "This login may not see open transactions."
        if found:  # the length of the history says what they hold back
            return [*found, Finding(Level.OK, "transactions", text)]
        return [Finding(Level.ADVICE, "transactions", text, "Use a login that has PROCESS.")]
    return found + judge_transactions([(float(seconds),) for (seconds,) in rows])
