"""The examination of an SQLite file."""

import shutil
import sqlite3
from pathlib import Path

from duequeue.port.examining import Finding, Level
from duequeue.port.store import Steps
from duequeue.stores.sql.commands import Query, Row
from duequeue.stores.sql.connections.examining import examine_schema, judge_indexes, judge_plan

DIALECT = "sqlite"
DUE_INDEX = "duequeue_message_due"

LITTLE_SPACE, TOO_LITTLE_SPACE = 1_000_000_000, 100_000_000
MUCH_UNUSED = 100_000_000
LONG_LOG = 100_000_000
# A larger file takes too long to read as a whole.
LARGEST_CHECKED = 1_000_000_000


def examine(path: str, now: int) -> Steps[list[Finding]]:  # noqa: ARG001 - a file has no clock
    """Examine the file, then the tables if they exist."""
    if not Path(path).exists():
        text, advice = f"There is no file {path}.", "Check the URL, or run `duequeue migrate`."
        return [Finding(Level.PROBLEM, "file", text, advice)]
    ((pages, unused, page_size),) = yield Query("examine_file")
    ((journal,),) = yield Query("examine_journal")
    schema = yield from examine_schema(DIALECT)
    findings = [
        judge_file(pages * page_size),
        judge_unused(unused * page_size, pages * page_size),
        judge_journal(journal),
        judge_log(_size(Path(f"{path}-wal"))),
        judge_space(shutil.disk_usage(Path(path).parent).free),
        schema.finding,
    ]
    if pages * page_size <= LARGEST_CHECKED:
        ((verdict,),) = yield Query("examine_damage")
        findings.append(judge_damage(verdict))
    if schema.exists:
        indexes: list[Row] = yield Query("examine_indexes")
        findings.append(judge_indexes({name for (name,) in indexes}))
        plan: list[Row] = yield Query("examine_poll_plan")
        walks = len(plan) == 1 and DUE_INDEX in plan[0][3]
        findings.append(judge_plan(walks_index=walks))
    return findings


def judge_file(size: int) -> Finding:
    """Report the version and the size."""
    text = f"SQLite {sqlite3.sqlite_version} reads the file, which has {_megabytes(size)}."
    return Finding(Level.OK, "file", text)


def judge_unused(unused: int, size: int) -> Finding:
    """Judge how much of the file is unused."""
    text = f"{_megabytes(unused)} of it are free for new messages."
    if unused > MUCH_UNUSED and unused > size / 2:
        advice = "To make the file smaller, stop all programs that use it and run VACUUM."
        return Finding(Level.ADVICE, "unused pages", text, advice)
    return Finding(Level.OK, "unused pages", text)


def judge_journal(mode: str) -> Finding:
    """Judge the journal mode, which is kept in the file."""
    if mode == "wal":
        return Finding(Level.OK, "journal", "The file is in WAL mode.")
    advice = "Open a queue, which turns WAL mode on, and see which program turns it off."
    return Finding(Level.ADVICE, "journal", f"The journal mode is {mode} and not wal.", advice)


def judge_log(size: int) -> Finding:
    """Judge the size of the write-ahead log."""
    text = f"The write-ahead log has {_megabytes(size)}."
    if size < LONG_LOG:
        return Finding(Level.OK, "log", text)
    advice = "Look for a program with a long read transaction, because it keeps the log growing."
    return Finding(Level.ADVICE, "log", text, advice)


def judge_space(free: int) -> Finding:
    """Judge the free space of the disk."""
    text = f"The disk has {_megabytes(free)} left."
    if free >= LITTLE_SPACE:
        return Finding(Level.OK, "disk", text)
    level = Level.ADVICE if free >= TOO_LITTLE_SPACE else Level.PROBLEM
    return Finding(
        level, "disk", text, "Make room, because every offer and ack fails on a full disk."
    )


def judge_damage(verdict: str) -> Finding:
    """Judge what SQLite's own check has found."""
    if verdict == "ok":
        return Finding(Level.OK, "integrity", "SQLite finds no damage in the file.")
    text = f"SQLite finds damage: {verdict.splitlines()[0]}."
    return Finding(Level.PROBLEM, "integrity", text, "Restore a backup, or try `.recover`.")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
