"""Background operations: long work of this server process, with progress and a way to cancel."""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any

from duequeue.errors import DueQueueError
from duequeue.flows.burials import first_chunk, revive_chunk
from duequeue.flows.inspecting import drop_if_selected
from duequeue.flows.listing import selection_of
from duequeue.instants import instant_text
from duequeue.server import wire
from duequeue.server.exchange import Exchange
from duequeue.server.failures import traceback_of
from duequeue.server.problems import not_found
from duequeue.server.queues import ServedQueue
from duequeue.server.routing import Parameter, Route
from duequeue.server.times import instant_text_or_none
from duequeue.server.tokens import Scope

logger = logging.getLogger("duequeue.server")

# How many operations are remembered at most, apart from those that still run.
REMEMBERED = 1000
PAGE = 500


class BackgroundOperation:
    """One operation; its work yields how many messages it has dealt with."""

    def __init__(self, queue: ServedQueue, action: str, work: AsyncIterator[int]) -> None:
        self.id = secrets.token_hex(12)
        self.queue = queue
        self._action = action
        self._work = work
        self._done = 0
        self._started_at = datetime.now(UTC)
        self._ended_at: datetime | None = None
        self._error: str | None = None
        self._cancelled = False
        self.task = asyncio.create_task(self._run())

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will happen."""
        return self._ended_at is not None

    def cancel(self) -> None:
        """Stop after the current step; one that has ended stays as it is."""
        self._cancelled = self._cancelled or not self.has_ended

    def status(self) -> wire.OperationStatus:
        """Return how far it has come."""
        return wire.OperationStatus(
            id=self.id,
            queue=self.queue.name,
            action=self._action,
            state=self._state(),
            done=self._done,
            started_at=instant_text(self._started_at),
            ended_at=instant_text_or_none(self._ended_at),
            error=self._error,
        )

    def _state(self) -> wire.OperationState:
        if not self.has_ended:
            return "running"
        if self._error is not None:
            return "failed"
        return "cancelled" if self._cancelled else "done"

    async def _run(self) -> None:
        self.queue.users += 1
        try:
            async for number in self._work:
                self._done += number
                if self._cancelled:
                    break
            else:
                self._cancelled = False  # if it was cancelled, that came too late
        except DueQueueError as error:
            self._error = f"the store failed: {type(error).__name__}"
        except Exception as error:  # noqa: BLE001 - reported by the operation
            logger.error("operation %s failed:\n%s", self.id, traceback_of(error))  # noqa: TRY400 - without its text
            self._error = "the server failed; its log has the id of the operation"
        finally:
            self.queue.users -= 1
            self._ended_at = datetime.now(UTC)


class Operations:
    """The operations of this process."""

    def __init__(self) -> None:
        self._all: dict[str, BackgroundOperation] = {}

    def start(
        self, queue: ServedQueue, action: str, work: AsyncIterator[int]
    ) -> BackgroundOperation:
        """Start an operation in the background."""
        ended = [each for each in self._all.values() if each.has_ended]
        for old in ended[: max(0, len(self._all) - REMEMBERED)]:
            del self._all[old.id]
        operation = BackgroundOperation(queue, action, work)
        self._all[operation.id] = operation
        return operation

    def find(self, exchange: Exchange) -> BackgroundOperation:
        """Return the operation that the path names, or raise."""
        found = self._all.get(exchange.path["operation"])
        if found is None or not exchange.grant.allows(Scope.ADMIN, found.queue.name):
            raise not_found("this server has no such operation")
        return found

    def visible(self, exchange: Exchange) -> list[BackgroundOperation]:
        """Return the operations that a token may see."""
        every = self._all.values()
        return [each for each in every if exchange.grant.allows(Scope.ADMIN, each.queue.name)]

    async def close(self) -> None:
        """Stop every operation after its current step."""
        for operation in self._all.values():
            operation.cancel()
        await asyncio.gather(*(operation.task for operation in self._all.values()))


async def dropping(queue: ServedQueue, filters: Mapping[str, Any]) -> AsyncIterator[int]:
    """Drop the messages that match filters, page by page, unless an update has changed that."""
    selection = selection_of(**filters)
    cursor: str | None = None
    while True:
        page = await queue.queue.list(**filters, after=cursor, limit=PAGE)
        for message in page.messages:
            yield int(await queue.drive(drop_if_selected(queue.context, message.key, selection)))
        cursor = page.next
        if cursor is None:
            return


async def reviving(queue: ServedQueue, reason: str, due_at: int, now: int) -> AsyncIterator[int]:
    """Put burials back, chunk by chunk."""
    context = queue.context
    chunk = await queue.drive(first_chunk(context, reason))
    while chunk is not None:
        revived, chunk = await queue.drive(revive_chunk(context, chunk, due_at, now))
        yield revived


async def list_all(exchange: Exchange) -> None:
    """List the operations of this server."""
    found = exchange.service.operations.visible(exchange)
    await exchange.answer(wire.OperationList([each.status() for each in found]))


async def read(exchange: Exchange) -> None:
    """Show how far an operation has come."""
    await exchange.answer(exchange.service.operations.find(exchange).status())


async def cancel(exchange: Exchange) -> None:
    """Stop an operation; what it has done stays done."""
    operation = exchange.service.operations.find(exchange)
    operation.cancel()
    await asyncio.wait([operation.task])
    await exchange.answer(operation.status())


OPERATION = Parameter("operation", str, "The id of the operation", required=True, place="path")

ROUTES = (
    Route(
        "GET",
        "/v1/operations",
        list_all,
        "List the background operations of this server",
        answer=wire.OperationList,
        offline=True,
    ),
    Route(
        "GET",
        "/v1/operations/{operation}",
        read,
        "Show how far a background operation has come",
        answer=wire.OperationStatus,
        parameters=(OPERATION,),
        offline=True,
        errors=(404,),
    ),
    Route(
        "DELETE",
        "/v1/operations/{operation}",
        cancel,
        "Cancel a background operation",
        answer=wire.OperationStatus,
        parameters=(OPERATION,),
        offline=True,
        errors=(404,),
    ),
)
