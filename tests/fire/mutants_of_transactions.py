"""Bugs of transactions: what failed in the middle is kept, or is not one transaction at all.

They show only if a statement fails between two others, which a test has to arrange.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from duequeue.consumer.roles import relayed
from duequeue.stores.sql.burials import SqlBurials
from duequeue.stores.sql.catalogue import load_queries
from duequeue.stores.sql.commands import Begin, QueriesInTurn, QueryEach
from duequeue.stores.sql.mariadb.conversation import Conversation
from duequeue.stores.sql.postgres import session as postgres
from duequeue.stores.sql.settling import Settling
from tests.fixtures import injecting

_talk: Any = Conversation.perform
_relayed: Any = relayed
_perform = postgres.perform
_revive = SqlBurials.revive


def _commit_what_failed() -> None:
    def give_up(_: Conversation) -> Iterator[list[str]]:
        yield ["COMMIT"]

    setattr(Conversation, "give_up", give_up)  # noqa: B010 - mypy refuses the plain assignment
    sqlite = injecting._Connection  # noqa: SLF001 - the connection that lets statements fail
    setattr(sqlite, "rollback", sqlite.commit)  # noqa: B010 - as above


def _leave_open(_: Conversation) -> Iterator[list[str]]:
    yield from ()


def _commit_each_statement() -> None:
    # The module copies the queries, so an earlier import would hide the bugs in them.
    from duequeue.stores.sql.sqlite.session import Performer  # noqa: PLC0415

    def without_begin(talk: Conversation, command: object) -> Any:
        def send(packet: list[str]) -> Any:
            return (yield ["DO 0" if text == "BEGIN" else text for text in packet])

        return (yield from _relayed(_talk(talk, command), send))

    def perform(connection: Any, kept: Any, ends_at: Any, command: Any) -> object:
        if isinstance(command, Begin):
            return None
        if isinstance(command, QueriesInTurn):
            return [_perform(connection, kept, ends_at, each) for each in command.queries]
        return _perform(connection, kept, ends_at, command)

    setattr(Conversation, "perform", without_begin)  # noqa: B010 - mypy refuses the plain one
    setattr(postgres, "perform", perform)  # noqa: B010 - likewise
    setattr(Performer, "_begin", lambda _: None)  # noqa: B010 - likewise


def _settle_query_by_query(settling: Settling, queries: Sequence[QueryEach], now: int) -> Any:
    rows: list[Any] = []
    for query in queries:
        rows = yield from settling.rows_of(query, now)
    return rows


def _revive_without_begin(burials: SqlBurials, *arguments: Any) -> Any:
    steps = _revive(burials, *arguments)
    assert isinstance(next(steps), Begin)
    return (yield from steps)


def _commit_before_the_removal() -> None:
    queries, name = load_queries("mariadb"), "remove_messages_with_history"
    text = queries[name].replace("DELETE held", "COMMIT;\nDELETE held")
    assert text != queries[name]
    queries[name] = text


TRANSACTION_CHANGES: Mapping[str, Callable[[], None]] = {
    "an error commits": _commit_what_failed,
    "an error leaves the transaction open": lambda: setattr(Conversation, "give_up", _leave_open),
    "each statement commits": _commit_each_statement,
    "a settlement is several transactions": lambda: setattr(
        Settling, "_last_rows_of", _settle_query_by_query
    ),
    "a revival is several transactions": lambda: setattr(
        SqlBurials, "revive", _revive_without_begin
    ),
    "a row of history commits before its removal": _commit_before_the_removal,
}
