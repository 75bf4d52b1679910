"""One installed cron: what it does each time it is its turn."""

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

from duequeue.cron.plans import Plan
from duequeue.drive.actions import Flow
from duequeue.errors import QueueClosed, StoreError, StoreUnavailable
from duequeue.flows.context import Context
from duequeue.headers import encode_headers
from duequeue.instants import MILLISECOND, from_millis, to_millis
from duequeue.message import checked_payload
from duequeue.port.cron_table import CronLook, CronRow, Installation, Installed, Standing, Tick
from duequeue.process.contact import one_line
from duequeue.retry_policy import RetryPolicy
from duequeue.schedules.tick import ConfigHash, CronMessage, tick_key

T = TypeVar("T")

# The ticks to come, and the missed ones to make up for.
Wanted: TypeAlias = tuple[Sequence[CronMessage[Any]], Sequence[CronMessage[Any]]]

logger = logging.getLogger("duequeue.cron")

# Long enough for a pool to get rid of its lost connections, but short, as other crons wait.
BRIEFLY = RetryPolicy(budget=timedelta(seconds=1))
RETRY_AFTER = timedelta(seconds=10)
LOOK_WHILE_PAUSED = timedelta(minutes=1)


class Upkeep(Generic[T]):
    """Keeps the ticks of one plan in the queue, run after run."""

    def __init__(self, context: Context[T], plan: Plan) -> None:
        self._context = context
        self.plan = plan
        self._hash = plan.config_hash.text
        self._took_over = False
        self._failed: list[int] = []

    def begin(self) -> Flow[int | None]:
        """Run for the first time, as patiently as the queue is."""
        return self._run(self._context)

    def run(self) -> Flow[int | None]:
        """Add the missing ticks; return when to run again, in milliseconds, None for never."""
        return self._run(replace(self._context, retry=BRIEFLY))

    def _run(self, context: Context[T]) -> Flow[int | None]:
        now = context.now()
        try:
            standing = yield from self._refresh(context, now)
            planned = self.plan.next_run(from_millis(now))
        except QueueClosed:
            raise
        except StoreError as error:
            # The cause is left out, because a driver's message is long and would come every time.
            if not (isinstance(error, StoreUnavailable) and context.contact.is_lost):
                words = "%s: this run failed and will be repeated: %s"
                logger.warning(words, self._name, one_line(error))
            return self._after_failure(now)
        except Exception:
            logger.exception("%s: this run failed and will be repeated", self._name)
            return self._after_failure(now)
        match standing:
            case Standing.RUNNING:
                return _within(now, planned, RETRY_AFTER if self._failed else None)
            case Standing.PAUSED:
                return _within(now, planned, LOOK_WHILE_PAUSED)
            case Standing.REPLACED:
                logger.warning(
                    "%s: another configuration was installed later, so %s stops here",
                    self._name,
                    self._hash,
                )
            case Standing.UNINSTALLED:
                logger.warning("%s: it was uninstalled, so it stops here", self._name)
        return None

    def _refresh(self, context: Context[T], now: int) -> Flow[Standing]:
        """Look first, because most runs have nothing to do, and then cost only one read."""
        look = yield from self._look(context, now)
        standing = look.row.standing(self._hash)
        if self._took_over and standing is not Standing.RUNNING:
            return standing
        wanted = yield from self._wanted(context, look, now)
        if self._took_over and not any(wanted):
            self._failed = []
            return standing
        installed = yield from install(context, self._installation(wanted), now)
        self._took_over = True
        # If it was resumed since the look, it has no ticks yet, so look again as soon as if paused.
        return Standing.PAUSED if look.row.paused else installed.standing

    def _look(self, context: Context[T], since: int) -> Flow[CronLook]:
        return context.run(partial(context.store.cron.look, self.plan.prefix, self._hash, since))

    def _wanted(self, context: Context[T], look: CronLook, now: int) -> Flow[Wanted]:
        """Find the missing ticks; a first run wants all of them, as payloads may have changed."""
        plan, (row, known) = self.plan, look
        if row.paused:
            return (), ()
        at_now = from_millis(now)
        ahead = plan.ahead(at_now)
        missed_after = self._missed_after(row, now) if plan.makes_up else now
        since = min(missed_after, to_millis(min([each.at for each in ahead], default=at_now)))
        if since < now:
            known = (yield from self._look(context, since)).known
        if self._took_over:
            ahead = [each for each in ahead if to_millis(each.at) not in known]
        if missed_after >= now:
            return ahead, ()
        return ahead, plan.missed(from_millis(missed_after), at_now, known)

    def _missed_after(self, row: CronRow, now: int) -> int:
        """Return from when on ticks were missed; a new configuration has missed none."""
        if row.created_until is None or row.standing(self._hash) is not Standing.RUNNING:
            return now
        return row.created_until

    def _installation(self, wanted: Wanted) -> Installation:
        self._failed = []
        ahead, missed = map(self._ticks, wanted)
        latest = max([tick.at for tick in (*ahead, *missed)], default=None)
        return Installation(
            prefix=self.plan.prefix,
            config_hash=self._hash,
            schedule=self.plan.description,
            ahead=ahead,
            missed=missed,
            created_until=min(self._failed) - 1 if self._failed else latest,
            takes_over=not self._took_over,
        )

    def _ticks(self, messages: Iterable[CronMessage[Any]]) -> list[Tick]:
        plan, found = self.plan, list[Tick]()
        for message in messages:
            try:
                payload = message.payload
                if plan.payload_is_function:
                    payload = payload(message.at)
                found.append(
                    tick_of(self._context, plan.prefix, plan.config_hash, message, payload)
                )
            except KeyboardInterrupt:
                raise
            except BaseException:  # a function that exits must not end the thread of all crons
                self._failed.append(to_millis(message.at))
                logger.exception(
                    "%s: could not make the message of the tick at %s; the next run tries again",
                    self._name,
                    message.at.isoformat(),
                )
        return found

    def _after_failure(self, now: int) -> int:
        """Return when to run again after a failure, which the schedule may have caused itself."""
        planned = from_millis(now) + RETRY_AFTER
        with suppress(Exception):
            planned = self.plan.next_run(from_millis(now))
        return _within(now, planned, RETRY_AFTER)

    @property
    def _name(self) -> str:
        return f"cron {self.plan.prefix!r} of queue {self._context.name!r}"


def _within(now: int, planned: datetime, at_most: timedelta | None) -> int:
    at = from_millis(now)
    if at_most is not None:
        planned = min(planned, at + at_most)
    return to_millis(max(planned, at + MILLISECOND))


def install(context: Context[T], installation: Installation, now: int) -> Flow[Installed]:
    """Carry out an installation, and announce the messages that it put into the queue."""
    operation = partial(context.store.cron.install, installation, now)
    installed = yield from context.run(operation)
    if installed.due_at is not None:
        yield from context.announce(installed.due_at, now)
    return installed


def tick_of(
    context: Context[T],
    prefix: str,
    config_hash: ConfigHash,
    message: CronMessage[Any],
    payload: T,
) -> Tick:
    """Return what a store is given for a cron's message with this payload."""
    at = to_millis(message.at)
    due_at = at if message.deliver_at is None else to_millis(message.deliver_at)
    key = tick_key(prefix, config_hash, message.at)
    headers = None if message.headers is None else encode_headers(message.headers)
    return Tick(at, key, checked_payload(context.codec.encode(payload), key), due_at, headers)
