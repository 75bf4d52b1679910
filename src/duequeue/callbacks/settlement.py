"""What becomes of a message after a callback, and how many messages are settled at a time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import msgspec

from duequeue.backoff import jittered
from duequeue.callbacks.answer import Aborted, Accepted, Kept, Meaning, SwitchedOff, TryLater
from duequeue.callbacks.endpoint import Endpoint
from duequeue.callbacks.failures import words_about
from duequeue.callbacks.lease_keeper import Held
from duequeue.consumer.settling import by_verdict, settle
from duequeue.consumer.workload import Done
from duequeue.drive.actions import Flow
from duequeue.flows.context import Context
from duequeue.flows.settling import give_back
from duequeue.verdict import ACKED, Acked, Parked, Released, Verdict

logger = logging.getLogger("duequeue.push")

# Verdicts are gathered for this long, so that one statement settles many.
GATHER_SECONDS = 0.002
PAUSE_SECONDS = 1.0


class GivenBack:
    """The message goes back as if it had never been delivered."""


GIVEN_BACK = GivenBack()


def settlement(meaning: Meaning, endpoint: Endpoint, attempt: int) -> Verdict | Kept | GivenBack:
    """Decide by what the answer means, and by how often the message was delivered."""
    match meaning:
        case Accepted():
            return _acked(meaning, endpoint)
        case Kept():
            return meaning
        case SwitchedOff(accepted=Accepted() as accepted):
            return _acked(accepted, endpoint)
        case SwitchedOff():
            return GIVEN_BACK
        case Aborted(reason):
            return Parked(f"endpoint {endpoint.id} refused it: {reason}")
        case TryLater():
            return _later(meaning, endpoint, attempt)


def _later(failure: TryLater, endpoint: Endpoint, attempt: int) -> Verdict | GivenBack:
    if not failure.was_called:  # it waits at its next lookup, so it needs no delay
        return GIVEN_BACK
    if attempt >= endpoint.attempts:
        times = "once" if attempt == 1 else f"{attempt} times, the last time"
        return Parked(f"attempts: endpoint {endpoint.id} failed {times}: {failure.reason}")
    delay = endpoint.backoff.delay(attempt) if failure.delay is None else failure.delay
    return Released(delay)


def _acked(accepted: Accepted, endpoint: Endpoint) -> Acked:
    return Acked(response_of(accepted.response)) if endpoint.respond else ACKED


def response_of(body: bytes | None) -> bytes:
    """Return the JSON that is kept of the body of an answer.

    JSON stays as it is, and other text becomes a JSON string. A body that is empty, too long,
    compressed or not text is kept as null.
    """
    if not body:
        return b"null"
    try:
        msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    else:
        return body
    try:
        return msgspec.json.encode(body.decode())
    except UnicodeDecodeError:
        return b"null"


class Settler:
    """Settles in batches, and tries again while the store is unavailable.

    If the lease of a message ends in the meantime, the message comes again, as always.
    """

    def __init__(
        self, context: Context[bytes], drive: Callable[[Flow[Any]], Awaitable[Any]]
    ) -> None:
        self._context = context
        self._drive = drive
        self._verdicts: list[tuple[int, Done[Held]]] = []
        self._returned: list[Held] = []
        self._failed: list[tuple[int, Done[Held]]] = []
        self._not_returned: list[Held] = []
        self._added = asyncio.Event()
        self._task = asyncio.create_task(self._run())
        self._ending = False

    def add(self, message: Held, verdict: Verdict | GivenBack, keep: int) -> None:
        """Settle a message soon; its response is kept for `keep` milliseconds."""
        message.settled = True
        if isinstance(verdict, GivenBack):
            self._returned.append(message)
        else:
            if message.handler_began is not None:
                message.handler_ended(self._context.now())
            self._verdicts.append((keep, Done(message, verdict)))
        self._added.set()

    def give_back(self, messages: list[Held]) -> None:
        """Give messages back soon, as if they had never been delivered."""
        for message in messages:
            self.add(message, GIVEN_BACK, 0)

    async def close(self) -> None:
        """Settle what is left, and try only once."""
        self._ending = True
        self._try_again()
        await self._task

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._ending:
            await self._added.wait()
            if not self._ending:
                await asyncio.sleep(GATHER_SECONDS)
            self._added.clear()
            await self._settle()
            if self._failed or self._not_returned:
                loop.call_later(jittered(PAUSE_SECONDS), self._try_again)
        await self._settle()

    def _try_again(self) -> None:
        self._verdicts += self._failed
        self._returned += self._not_returned
        self._failed, self._not_returned = [], []
        self._added.set()

    async def _settle(self) -> None:
        """Settle what was added, so that one kind of verdict may fail without the others."""
        returned, self._returned = self._returned, []
        verdicts, self._verdicts = self._verdicts, []
        by_keep: dict[int, list[Done[Held]]] = {}
        for keep, done in verdicts:
            by_keep.setdefault(keep, []).append(done)
        for keep, several in by_keep.items():
            context = replace(self._context, keep=keep)
            for group in by_verdict(several):
                if not await self._tried(settle(context, group), len(group)):
                    self._failed += [(keep, each) for each in group if self._holds(each.message)]
        if returned and not await self._tried(give_back(self._context, returned), len(returned)):
            self._not_returned += [each for each in returned if self._holds(each)]

    async def _tried(self, flow: Flow[None], count: int) -> bool:
        try:
            await self._drive(flow)
        except Exception as error:  # noqa: BLE001 - the next try may succeed
            words = "queue %r: could not settle %d messages: %s"
            logger.warning(words, self._context.name, count, words_about(error))
            return False
        return True

    def _holds(self, message: Held) -> bool:
        """Return whether another try makes sense, because a message comes again after its lease."""
        return message.lease_left(self._context.now()) > 0
