"""What an operation sends to a server, and how it reads the answers; without any I/O.

Each command of an operation becomes a generator of packets, which are lists of statements. The
session sends a packet in one round trip and answers with one reply for each statement.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from math import inf
from time import monotonic
from typing import Any, TypeAlias, TypeVar

from duequeue.errors import PayloadTooLarge
from duequeue.port.store import Steps
from duequeue.stores.sql.catalogue import queries_that
from duequeue.stores.sql.commands import (
    Begin,
    Command,
    Execute,
    QueriesInTurn,
    Query,
    QueryEach,
    Row,
    SqlScript,
)
from duequeue.stores.sql.mariadb.replies import ServerReply
from duequeue.stores.sql.mariadb.server import ServerFacts
from duequeue.stores.sql.mariadb.statements import (
    MOST_AT_ONCE,
    PreparedQuery,
    Statement,
    literals,
    prepared,
    rendered,
    rendered_each,
    split,
)
from duequeue.stores.sql.mariadb.steps import STEPS
from duequeue.stores.sql.watermark import BEGINNING

T = TypeVar("T")

Packets: TypeAlias = Generator[Sequence[str], list[ServerReply], T]

# A call waits for locked rows for this share of the time that it has left.
SHARE_FOR_LOCKS = 0.8
# The server adds its own header to what we send.
PACKET_HEADER = 1024
UNDONE_BY = queries_that("undone by", "mariadb")
LOOK_FIRST = queries_that("looks first", "mariadb")
LOCK_FIRST = queries_that("locks first", "mariadb")
FIRST_IS_ENOUGH = queries_that("first is enough", "mariadb")
# An offer of this many messages first only inserts. If all are new, which the server says, nothing
# else has to be sent or read. Otherwise the rest takes a round trip of its own.
MANY_OFFERED = 200


class Conversation:
    """One operation on one connection.

    On our own connections it begins and commits transactions. A caller's connection is `borrowed`:
    the caller has begun one, and nothing is set on the connection.
    """

    def __init__(
        self,
        facts: ServerFacts,
        *,
        borrowed: bool = False,
        ends_at: float = inf,
        locks_first: bool = False,
        lock_seconds: int | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._facts = facts
        self._most_bytes = facts.most_bytes - PACKET_HEADER
        self._borrowed = borrowed
        self._ends_at = ends_at
        self._clock = clock
        self._locks_first = locks_first
        # How long the connection waits for locks now; it is kept between operations.
        self.lock_seconds = facts.lock_seconds if lock_seconds is None else lock_seconds
        self._wants_transaction = False
        # Unless these are false, the operation has to be finished.
        self.in_transaction = False
        self.left_behind: str | None = None

    def perform(self, command: Any) -> Packets[object]:
        """Carry out one command; return its rows, or the number of rows that it touched."""
        if isinstance(command, Begin):
            self._wants_transaction = True
            return None
        if isinstance(command, QueriesInTurn):
            return (yield from self._query_in_turn(command.queries))
        if isinstance(command, QueryEach):
            return (yield from self._query_each(command))
        if isinstance(command, SqlScript):
            for statement in split(command.text):
                yield [statement]
            return None
        if command.name in STEPS:
            return (yield from self._perform_all(STEPS[command.name](**command.parameters)))
        looks_first = command.name in LOOK_FIRST and not self._borrowed
        return (yield from (self._claim if looks_first else self._query)(command))

    def finish(self) -> Packets[None]:
        """Commit what is not committed yet, and leave nothing behind on the connection."""
        ends = ["COMMIT"] if self.in_transaction else []
        if self.left_behind is not None:
            ends.append(self.left_behind)
        self.in_transaction, self.left_behind = False, None
        if ends:
            yield ends

    def give_up(self) -> Packets[None]:
        """Roll back; after an error it is not known whether the server has done so."""
        left_behind = [] if self.left_behind is None else [self.left_behind]
        self.in_transaction, self.left_behind = False, None
        yield ["ROLLBACK", *left_behind]

    def _perform_all(self, steps: Steps[object]) -> Packets[object]:
        """Carry out the commands that a single command consists of on this server."""
        try:
            command = next(steps)
            while True:
                try:
                    reply = yield from self.perform(command)
                except Exception as error:  # noqa: BLE001 - handed to the steps, which re-raise it
                    command = steps.throw(error)
                else:
                    command = steps.send(reply)
        except StopIteration as done:
            return done.value

    def _prepared(self, name: str, *, reads_again: bool = False) -> PreparedQuery:
        return prepared(
            name,
            is_mysql=self._facts.is_mysql,
            reads_again=reads_again,
            joins_ids=not self._borrowed,
        )

    def _query(self, command: Query | Execute) -> Packets[object]:
        query = self._prepared(command.name)
        parameters = literals(command.parameters, query)
        replies = yield from self._send(rendered(query.first, parameters), ends=not query.then)
        if query.then:
            found, touched = yield from self._then(query, replies, parameters)
            return touched if isinstance(command, Execute) else found
        if command.name in UNDONE_BY:
            (undoing,) = self._prepared(UNDONE_BY[command.name]).first
            (self.left_behind,) = rendered([undoing], {})
        if isinstance(command, Execute):
            return replies[-1].touched
        return _rows(replies)

    def _claim(self, command: Query) -> Packets[object]:
        """Claim; a claim from the beginning first looks where there is something to claim.

        It would otherwise lock all leases that it walks over, because MariaDB unlocks what does not
        fit only if it reads rows by their primary key. A caller's transaction may have an older
        snapshot, in which such a look would find too little.
        """
        wanted = command.parameters
        if wanted["after_due"] == BEGINNING.due_at:
            place = {"kind_id": wanted["kind_id"], "now": wanted["now"]}
            rows: Any = yield from self._query(Query(LOOK_FIRST[command.name], place))
            if not rows:
                return []
            ((due_at, first_id),) = rows
            wanted = {**wanted, "after_due": due_at, "after_id": first_id - 1}
        return (yield from self._query(command._replace(parameters=wanted)))

    def _query_each(self, command: QueryEach) -> Packets[list[Row]]:
        query = self._prepared(command.name)
        # All drivers count deleted rows alike, but a caller's may count rows that are only found.
        counts = not self._borrowed and not self._locks_first
        if len(command.each) == 1 and (query.deletes_alone or (counts and query.alone)):
            return (yield from self._query_one(query, command))
        if counts and command.name in FIRST_IS_ENOUGH and len(command.each) >= MANY_OFFERED:
            return (yield from self._offer_many(command))
        if not query.then:
            (rows,) = yield from self._query_in_turn([command])
            return rows
        common = literals(command.parameters, query)
        replies = yield from self._send(self._chunks(query.first, common, command), ends=False)
        found, _ = yield from self._then(query, replies, common)
        return found

    def _query_one(self, query: PreparedQuery, command: QueryEach) -> Packets[list[Row]]:
        """Insert or delete one message; a new one counts as one touched row, an updated one as two.

        Return what identifies the message, which is the first of its parameters, and whether one
        row was touched.
        """
        common = literals(command.parameters, query)
        texts = rendered_each(query.alone, common, command.columns, command.each)
        (reply,) = yield from self._send(texts, waits=self._wait_of(command))
        return [(command.each[0][0], reply.touched == 1)] if reply.touched else []

    def _offer_many(self, command: QueryEach) -> Packets[list[Row]]:
        """Insert messages, and read what became of them only if some were there before."""
        query = self._prepared(command.name, reads_again=True)
        texts = self._chunks(query.first, literals(command.parameters, query), command)
        size = len(query.first)
        wait = self._wait_of(command)
        replies = yield from self._send(texts[::size], ends=False, waits=wait)
        if all(map(ServerReply.inserted_all, replies)):
            yield from self._end()
            key = command.columns.index("key")
            return [(row[key], True) for row in command.each]
        rest = [text for number, text in enumerate(texts) if number % size]
        replies = yield from self._send(rest, waits=wait)
        return [row for reply in replies for row in reply.rows or ()]

    def _end(self) -> Packets[None]:
        """Commit, unless the operation goes on in the same transaction."""
        if not self._wants_transaction:
            self.in_transaction = False
            yield ["COMMIT"]

    def _query_in_turn(self, commands: Sequence[QueryEach]) -> Packets[list[list[Row]]]:
        """Send queries together, and return the rows of each."""
        texts, places = list[str](), list[range]()
        for command in commands:
            query = self._prepared(command.name)
            common = literals(command.parameters, query)
            if self._locks_first and command.name in LOCK_FIRST:
                locking = self._prepared(LOCK_FIRST[command.name])
                texts += self._chunks(locking.first, common, command)
            start = len(texts)
            texts += self._chunks(query.first, common, command)
            places.append(range(start, len(texts), len(query.first)))
        replies = yield from self._send(texts, waits=self._wait_of(commands[0]))
        found = []
        for starts in places:
            groups = [replies[start : start + starts.step] for start in starts]
            found.append([row for group in groups for row in _rows(group)])
        return found

    def _then(
        self, query: PreparedQuery, replies: Sequence[ServerReply], common: dict[str, object]
    ) -> Packets[tuple[list[Row], int]]:
        """Send the statements that take the ids of what was found.

        Return what was found, and how many rows these statements touched.
        """
        rows = [row for reply in replies for row in reply.rows or ()]
        touched = 0
        if rows:
            column = next(reply.columns for reply in replies if reply.rows).index("id")
            ids = [str(row[column]) for row in rows]
            texts = list[str]()
            for start in range(0, len(ids), MOST_AT_ONCE):
                found = ", ".join(ids[start : start + MOST_AT_ONCE])
                texts += rendered(query.then, {**common, "found": found})
            touched = sum(reply.touched for reply in (yield from self._send(texts)))
        elif self.in_transaction and not self._wants_transaction:
            self.in_transaction = False
            yield ["ROLLBACK"]
        return rows, touched

    def _send(
        self, texts: Sequence[str], *, ends: bool = True, waits: int | None = None
    ) -> Packets[list[ServerReply]]:
        """Send statements; with `ends`, the transaction that they need ends with them."""
        before, after = list[str](), list[str]()
        seconds, in_transaction = self.lock_seconds, self.in_transaction
        if not self._borrowed:
            seconds = self._longest_wait() if waits is None else waits
            if seconds != self.lock_seconds:
                before.append(f"SET SESSION innodb_lock_wait_timeout = {seconds}")
            needs_one = self._wants_transaction or len(texts) > 1 or not ends
            if needs_one and not in_transaction:
                before.append("BEGIN")
                in_transaction = True
            if in_transaction and ends and not self._wants_transaction:
                after.append("COMMIT")
        # A statement that is too long is refused here, before anything has changed.
        packets = [[*before, *texts, *after]]
        if sum(map(len, packets[0])) + len(packets[0]) > self._most_bytes:
            packets = list(self._packets(packets[0]))
        self.lock_seconds, self.in_transaction = seconds, in_transaction
        replies = list[ServerReply]()
        for packet in packets:
            replies += yield packet
        if after:
            self.in_transaction = False
        return replies[len(before) : len(before) + len(texts)]

    def _chunks(
        self, statements: Sequence[Statement], common: Mapping[str, object], command: QueryEach
    ) -> list[str]:
        """Return statements for each chunk of the sets of parameters of a command."""
        texts = list[str]()
        for start in range(0, len(command.each), MOST_AT_ONCE):
            chunk = command.each[start : start + MOST_AT_ONCE]
            texts += self._fitting(statements, common, command.columns, chunk)
        return texts

    def _fitting(
        self,
        statements: Sequence[Statement],
        common: Mapping[str, object],
        columns: Sequence[str],
        each: Sequence[Row],
    ) -> list[str]:
        """Return the statements for a chunk; one that exceeds a packet is cut in half."""
        texts = rendered_each(statements, common, columns, each)
        if len(each) == 1 or max(map(len, texts)) <= self._most_bytes:
            return texts
        middle = len(each) // 2
        parts = (each[:middle], each[middle:])
        return [text for part in parts for text in self._fitting(statements, common, columns, part)]

    def _packets(self, texts: Sequence[str]) -> Iterator[list[str]]:
        """Divide statements into packets that the server accepts."""
        packet, size = list[str](), 0
        for text in texts:
            if len(text) > self._most_bytes:
                raise PayloadTooLarge(
                    f"a statement of {len(text)} bytes exceeds the server's max_allowed_packet of "
                    f"{self._facts.most_bytes}: raise max_allowed_packet on the server, or offer "
                    "smaller payloads"
                )
            if packet and size + len(text) > self._most_bytes:
                yield packet
                packet, size = [], 0
            packet.append(text)
            size += len(text) + 1
        yield packet

    def _wait_of(self, command: QueryEach) -> int | None:
        """Return for how many seconds a hurried offer waits for locked rows, or None for others."""
        if command.parameters.get("lock_timeout"):
            return 1 if self._facts.is_mysql else 0
        return None

    def _longest_wait(self) -> int:
        """Return for how many seconds other calls wait, so that they end before their deadline."""
        if self._ends_at == inf:
            return self._facts.lock_seconds
        left = self._ends_at - self._clock()
        wait = min(max(min(round(left * SHARE_FOR_LOCKS), int(left)), 1), self._facts.lock_seconds)
        # A limit that is a little lower stays, because it takes a statement to change it.
        return self.lock_seconds if self.lock_seconds <= wait <= 2 * self.lock_seconds else wait


def _rows(replies: Sequence[ServerReply]) -> list[Row]:
    return next((reply.rows for reply in replies if reply.rows is not None), [])


def command_name(command: Command) -> str:
    """Return the name of the query of a command, if it has one."""
    return str(getattr(command, "name", ""))
