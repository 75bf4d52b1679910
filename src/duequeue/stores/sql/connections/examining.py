"""What the examinations of all SQL databases have in common."""

from typing import NamedTuple

from duequeue.errors import SchemaError
from duequeue.instants import MILLISECOND, words_for
from duequeue.port.examining import Finding, Level
from duequeue.port.store import Steps
from duequeue.stores.sql.commands import Row
from duequeue.stores.sql.migrations import load_migrations, pending_migrations

INDEXES = {"duequeue_message_due", "duequeue_message_key"}
LONG_TRANSACTION = 3600.0


class Schema(NamedTuple):
    """What was found about the tables, and whether they can be examined further."""

    finding: Finding
    exists: bool


def examine_schema(dialect: str) -> Steps[Schema]:
    """Compare the migrations of the database with those of this code."""
    known = load_migrations(dialect)
    try:
        pending = yield from pending_migrations(dialect)
    except SchemaError as error:
        advice = "Use the version of DueQueue that made these tables, or a newer one."
        return Schema(Finding(Level.PROBLEM, "schema", f"{error}.", advice), exists=True)
    if len(pending) == len(known):
        advice = "Run `duequeue migrate`, or open a queue."
        text = "The database has no tables of DueQueue."
        return Schema(Finding(Level.PROBLEM, "schema", text, advice), exists=False)
    if pending:
        names = ", ".join(migration.name for migration in pending)
        text = f"The tables lack {names}."
        finding = Finding(Level.PROBLEM, "schema", text, "Run `duequeue migrate`.")
        return Schema(finding, exists=True)
    text = f"The tables are up to date ({known[-1].name})."
    return Schema(Finding(Level.OK, "schema", text), exists=True)


def judge_indexes(found: set[str]) -> Finding:
    """Judge whether the table of messages has its indexes, in working order."""
    if missing := sorted(INDEXES - found):
        text = f"The table of messages lacks {', '.join(missing)}, or they are not valid."
        advice = "Create them again; `duequeue migrate --sql` prints the statements."
        return Finding(Level.PROBLEM, "indexes", text, advice)
    return Finding(Level.OK, "indexes", "The table of messages has its indexes.")


def judge_plan(*, walks_index: bool) -> Finding:
    """Judge the plan of a poll."""
    if walks_index:
        return Finding(Level.OK, "poll plan", "A poll walks the index of due times.")
    text = "A poll does not walk the index of due times, so it reads more than it returns."
    advice = "Check that duequeue_message_due exists, and what has changed the session settings."
    return Finding(Level.PROBLEM, "poll plan", text, advice)


def judge_transactions(rows: list[Row]) -> list[Finding]:
    """Judge the age of the oldest open transaction, in seconds."""
    ((seconds,),) = rows
    text = f"The oldest open transaction began {words_for(seconds * 1000 * MILLISECOND)} ago."
    if seconds < LONG_TRANSACTION:
        return [Finding(Level.OK, "transactions", text)]
    advice = "End it, because deleted messages cannot be cleaned up while it is open."
    return [Finding(Level.ADVICE, "transactions", text, advice)]
