"""The plans of the very statements that a queue runs, as the server reports them."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, TypeVar

import psycopg
from psycopg.errors import Diagnostic

from duequeue import Queue
from duequeue.drive.steps import drive
from duequeue.port.store import Operation
from duequeue.stores.sql.postgres.adapters import register_arrays
from duequeue.stores.sql.postgres.session import perform
from duequeue.stores.sql.postgres.settings import SESSION_SETTINGS

T = TypeVar("T")

# What auto_explain would write to the server's log comes to the client instead.
REPORT_PLANS = """
    LOAD 'auto_explain';
    SET auto_explain.log_min_duration = 0;
    SET auto_explain.log_analyze = on;
    SET auto_explain.log_buffers = on;
    SET auto_explain.log_format = json;
    SET auto_explain.log_level = notice;
"""

# A table's statistics are two numbers and its samples: taken while it was empty; after a drain,
# when one message was left in all those pages; and now.
STATISTICS = {
    "of an empty table": """
        UPDATE pg_class SET relpages = 0, reltuples = 0 WHERE relname LIKE 'duequeue_message%';
        DELETE FROM pg_statistic WHERE starelid = CAST('duequeue_message' AS regclass)
    """,
    "of a drained table": """
        UPDATE pg_class
        SET relpages = pg_relation_size(oid) / 8192, reltuples = 1
        WHERE relname LIKE 'duequeue_message%';
        DELETE FROM pg_statistic WHERE starelid = CAST('duequeue_message' AS regclass)
    """,
    "fresh": "ANALYZE duequeue_message",
}


class Plan(NamedTuple):
    """What the server did for one statement."""

    query: str
    nodes: list[dict[str, Any]]

    def __str__(self) -> str:
        shown = ("Node Type", "Index Name", "Index Cond", "Filter", "Actual Rows", "Actual Loops")
        lines = [" ".join(str(node[name]) for name in shown if name in node) for node in self.nodes]
        return "\n".join([self.query, f"{self.buffers} pages", *lines])

    @property
    def kinds(self) -> set[str]:
        """The kinds of its nodes."""
        return {node["Node Type"] for node in self.nodes}

    @property
    def indexes(self) -> set[str]:
        """The indexes it used."""
        return {node["Index Name"] for node in self.nodes if "Index Name" in node}

    @property
    def buffers(self) -> int:
        """How many pages it touched."""
        root = self.nodes[0]
        return int(root["Shared Hit Blocks"] + root["Shared Read Blocks"])


class Explaining:
    """A queue on a connection with a session's own settings, whose statements show their plans."""

    def __init__(self, queue: Queue[Any], connection: psycopg.Connection) -> None:
        self.queue = queue
        self.connection = connection
        self._plans: list[Plan] = []
        connection.execute(SESSION_SETTINGS)
        with connection.transaction():
            queue.within(connection).contains("any")  # the first call also asks where it is
        connection.execute(REPORT_PLANS)
        connection.add_notice_handler(self._note)

    def plans_of(self, call: Callable[[Queue[Any]], T]) -> tuple[T, list[Plan]]:
        """Make a call in a transaction; return its result, and its plans in order."""
        self._plans = []
        with self.connection.transaction():
            result = call(self.queue.within(self.connection))
        return result, self._plans

    def plans_of_operation(self, operation: Operation[T]) -> tuple[T, list[Plan]]:
        """Run an operation of a store in a transaction; return its result, and its plans."""
        self._plans = []
        register_arrays(self.connection)
        with self.connection.transaction():
            result = drive(operation(), partial(perform, self.connection, None, None))
        return result, self._plans

    def _note(self, notice: Diagnostic) -> None:
        _, reported, plan = (notice.message_primary or "").partition("plan:\n")
        if reported:
            parsed = json.loads(plan)
            self._plans.append(Plan(parsed["Query Text"], list(_nodes(parsed["Plan"]))))


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)
