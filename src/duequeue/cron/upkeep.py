"""One installed cron: what it does each time it is its turn."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Generic, TypeVar

from duequeue.backoff import RetryPolicy
from duequeue.cron.plans import Draft, Plan, Wanted
from duequeue.cron.transactions import Order, Report, Standing, Tick, install, standing
from duequeue.drive.actions import Flow
from duequeue.errors import QueueClosed, StoreError
from duequeue.flows.context import Context
from duequeue.instants import MILLISECOND, from_millis, to_millis
from duequeue.message import checked_payload
from duequeue.port.cron_table import CronRow, Glance
from duequeue.port.store import Record
from duequeue.schedules.tick import ConfigHash, CronMessage, tick_key

T = TypeVar("T")
R = TypeVar("R")

logger = logging.getLogger("duequeue.cron")

# Long enough for a pool to get rid of its lost connections; but other crons wait for this one.
BRIEFLY = RetryPolicy(budget=timedelta(seconds=1))
RETRY_AFTER = timedelta(seconds=10)
LOOK_WHILE_PAUSED = timedelta(minutes=1)


class Upkeep(Generic[T]):
    """Keeps the ticks of one plan in the queue, run after run."""

    def __init__(self, context: Context[T], plan: Plan[T]) -> None:
        self._context = context
        self._plan = plan
        self._took_over = False
        self._failed: list[int] = []

    def begin(self) -> Flow[int | None]:
        """Run for the first time, as patiently as the queue is."""
        return self._run(self._context)

    def run(self) -> Flow[int | None]:
        """Do what is to be done; return when to run again, in milliseconds, None for never."""
        return self._run(replace(self._context, retry=BRIEFLY))

    def _run(self, context: Context[T]) -> Flow[int | None]:
        now = context.now()
        try:
            found = yield from self._refresh(context, now)
        except QueueClosed:
            raise
        except StoreError as error:
            # Without its cause: a driver's own words are long, and said every time.
            logger.warning("%s: this run failed, and is repeated: %s", self._name, error)
            return self._next_run(now, RETRY_AFTER)
        except Exception:
            logger.exception("%s: this run failed, and is repeated", self._name)
            return self._next_run(now, RETRY_AFTER)
        match found:
            case Standing.RUNNING:
                return self._next_run(now, RETRY_AFTER if self._failed else None)
            case Standing.PAUSED:
                return self._next_run(now, LOOK_WHILE_PAUSED)
            case Standing.REPLACED:
                logger.warning(
                    "%s: another configuration was installed later; %s stops here",
                    self._name,
                    self._plan.config_hash,
                )
            case Standing.UNINSTALLED:
                logger.warning("%s: uninstalled; it stops here", self._name)
        return None

    def _refresh(self, context: Context[T], now: int) -> Flow[Standing]:
        """Look first: mostly there is nothing to do, and that costs one read."""
        prefix, config_hash = self._plan.prefix, self._plan.config_hash.text
        glance = yield from context.run(
            partial(context.store.cron.glance, prefix, config_hash, now)
        )
        glance = Glance(CronRow(), frozenset()) if glance is None else glance
        found = standing(glance.row, config_hash)
        if self._took_over and found is not Standing.RUNNING:
            return found
        wanted = yield from self._wanted(context, glance, now)
        if self._took_over and not (wanted.ahead or wanted.late):
            self._failed = []
            return found
        report = yield from self._install(context, self._order(wanted), now)
        self._took_over = True
        # Resumed since the glance, it still has no ticks: look again as soon as when paused.
        return Standing.PAUSED if glance.row.paused else report.standing

    def _install(self, context: Context[T], order: Order, now: int) -> Flow[Report]:
        report = yield from context.run(partial(install, context.store, order, now))
        if report.due_at is not None:
            yield from context.announce(report.due_at, now)
        return report

    def _wanted(self, context: Context[T], glance: Glance, now: int) -> Flow[Wanted[T]]:
        """Find out which ticks are not there; a first run wants them all, as payloads change."""
        plan, (row, known) = self._plan, glance
        if row.paused:
            return Wanted()
        ahead = list(contained(partial(plan.ahead, from_millis(now))))
        ended = row.created_until if row.runs(plan.config_hash.text) else None
        missed_after = now if ended is None or not plan.makes_up else ended
        since = min([missed_after, *(to_millis(draft.at) for draft in ahead)])
        if since < now:
            recall = partial(context.store.cron.recall, plan.prefix, plan.config_hash.text, since)
            known = (yield from context.run(recall)).known
        late = plan.missed(from_millis(missed_after), from_millis(now), known)
        if self._took_over:
            ahead = [draft for draft in ahead if to_millis(draft.at) not in known]
        return Wanted(ahead, late)

    def _order(self, wanted: Wanted[T]) -> Order:
        self._failed = []
        ahead, late = self._ticks(wanted.ahead), self._ticks(wanted.late)
        latest = max((tick.at for tick in (*ahead, *late)), default=None)
        return Order(
            prefix=self._plan.prefix,
            config_hash=self._plan.config_hash.text,
            schedule=self._plan.description,
            ahead=ahead,
            late=late,
            created_until=min(self._failed) - 1 if self._failed else latest,
            takes_over=not self._took_over,
        )

    def _ticks(self, drafts: Iterable[Draft[T]]) -> list[Tick]:
        found: list[Tick] = []
        for draft in drafts:
            try:
                message = contained(draft.message)
                found.append(
                    tick_of(self._context, self._plan.prefix, self._plan.config_hash, message)
                )
            except Exception:
                self._failed.append(to_millis(draft.at))
                logger.exception(
                    "%s: no message for the tick of %s; tried again at the next refresh",
                    self._name,
                    draft.at.isoformat(),
                )
        return found

    def _next_run(self, now: int, at_most: timedelta | None) -> int:
        at = from_millis(now)
        planned = self._plan.next_run(at)
        if at_most is not None:
            planned = min(planned, at + at_most)
        return to_millis(max(planned, at + MILLISECOND))

    @property
    def _name(self) -> str:
        return f"cron {self._plan.prefix!r} of queue {self._context.name!r}"


def contained(call: Callable[[], R]) -> R:
    """Call a function of the user's; whatever it raises is no more than an error.

    One that exits, or cancels something of its own, must not end the one thread or task that
    serves every cron.
    """
    try:
        return call()
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise RuntimeError(f"the function raised {error!r}") from error


def tick_of(
    context: Context[T], prefix: str, config_hash: ConfigHash, message: CronMessage[T]
) -> Tick:
    """Return what is stored for a cron's message."""
    key = tick_key(prefix, config_hash, message.at)
    payload = checked_payload(context.codec.encode(message.payload), key)
    return Tick(to_millis(message.at), Record(key, payload, to_millis(message.due_at)))
