"""What a cron face does: arguments checked first, then steps, or a plan that is kept up."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from duequeue.cron import transactions
from duequeue.cron.plans import Generated, Plan, Scheduled
from duequeue.cron.transactions import Order, Report, Tick
from duequeue.cron.upkeep import Upkeep, tick_of
from duequeue.drive.actions import Flow
from duequeue.flows.context import Context
from duequeue.instants import from_millis, positive_millis
from duequeue.message import checked_payload
from duequeue.schedules.crontab import Crontab
from duequeue.schedules.misfire import Misfire
from duequeue.schedules.schedule import Daily, Every, Schedule
from duequeue.schedules.tick import ConfigHash, CronMessage, checked_prefix


@dataclass(frozen=True, slots=True)
class CronStatus:
    """One installed cron.

    `next_tick` is the earliest in the queue that nobody was given yet, `last_tick` the latest that
    somebody was given. `generation` counts the changes of configuration.
    """

    prefix: str
    config_hash: ConfigHash
    schedule: str
    paused: bool
    next_tick: datetime | None
    last_tick: datetime | None
    generation: int


T = TypeVar("T")


def install_tick(
    context: Context[T], config_hash: ConfigHash, prefix: str, messages: Iterable[CronMessage[T]]
) -> Flow[int]:
    """Make one configuration the installed one, with these ticks."""
    _check_type("config_hash", config_hash, ConfigHash)
    prefix = checked_prefix(prefix)
    ticks = [_checked_tick(context, config_hash, prefix, message) for message in messages]
    created_until = max((tick.at for tick in ticks), default=None)
    order = Order(prefix, config_hash.text, ahead=ticks, created_until=created_until)
    return _install_tick(context, order)


def uninstall_tick(context: Context[T], config_hash: ConfigHash, prefix: str) -> Flow[int]:
    """Remove the undelivered ticks of one configuration."""
    _check_type("config_hash", config_hash, ConfigHash)
    prefix = checked_prefix(prefix)
    of = (context.store.cron, prefix, config_hash.text, context.now())
    return context.run(partial(transactions.uninstall, *of))


def pause(context: Context[T], prefix: str) -> Flow[bool]:
    """Have no ticks until resumed."""
    prefix = checked_prefix(prefix)
    return context.run(partial(transactions.pause, context.store.cron, prefix, context.now()))


def resume(context: Context[T], prefix: str) -> Flow[bool]:
    """Have ticks again."""
    prefix = checked_prefix(prefix)
    return context.run(partial(transactions.resume, context.store.cron, prefix, context.now()))


def list_crons(context: Context[T]) -> Flow[list[CronStatus]]:
    """Tell what is installed."""
    found = yield from context.run(context.store.cron.listing)
    return [
        CronStatus(
            prefix=each.prefix,
            config_hash=ConfigHash(each.config_hash),
            schedule=each.schedule,
            paused=each.paused,
            next_tick=_instant(each.next_tick_at),
            last_tick=_instant(each.last_tick_at),
            generation=each.generation,
        )
        for each in found
    ]


def generated(
    context: Context[T],
    config_hash: ConfigHash,
    prefix: str,
    interval: timedelta,
    generate: Callable[[datetime], Iterable[CronMessage[T]]],
) -> Upkeep[T]:
    """Return the upkeep of ticks that a function comes up with."""
    _check_type("config_hash", config_hash, ConfigHash)
    positive_millis(interval, "interval")
    if not callable(generate):
        raise TypeError(f"generate must be a function of the present instant, not {generate!r}")
    return _upkeep(context, Generated(checked_prefix(prefix), config_hash, interval, generate))


def daily(
    context: Context[T],
    prefix: str,
    schedule: Daily,
    payload: T | Callable[[datetime], T],
    misfire: Misfire | None,
) -> Upkeep[T]:
    """Return the upkeep of a daily schedule."""
    _check_type("schedule", schedule, Daily)
    return _scheduled(context, prefix, schedule, payload, misfire)


def periodic(
    context: Context[T],
    prefix: str,
    period: timedelta,
    payload: T | Callable[[datetime], T],
    misfire: Misfire | None,
) -> Upkeep[T]:
    """Return the upkeep of a period."""
    return _scheduled(context, prefix, Every(period), payload, misfire)


def expression(
    context: Context[T],
    prefix: str,
    crontab: Crontab,
    payload: T | Callable[[datetime], T],
    misfire: Misfire | None,
) -> Upkeep[T]:
    """Return the upkeep of a crontab expression."""
    _check_type("crontab", crontab, Crontab)
    return _scheduled(context, prefix, crontab, payload, misfire)


def _scheduled(
    context: Context[T],
    prefix: str,
    schedule: Schedule,
    payload: T | Callable[[datetime], T],
    misfire: Misfire | None,
) -> Upkeep[T]:
    prefix = checked_prefix(prefix)
    policy = Misfire.skip() if misfire is None else misfire
    _check_type("misfire", policy, Misfire)
    if not callable(payload):
        checked_payload(context.codec.encode(payload), prefix)
    return _upkeep(context, Scheduled(prefix, schedule, payload, policy))


def _upkeep(context: Context[T], plan: Plan[T]) -> Upkeep[T]:
    if context.is_borrowed:
        raise ValueError(
            "a cron outlives the caller's transaction: install it on the queue itself, "
            "or use install_tick within the transaction"
        )
    return Upkeep(context, plan)


def _install_tick(context: Context[T], order: Order) -> Flow[int]:
    now = context.now()
    report: Report = yield from context.run(
        partial(transactions.install, context.store, order, now)
    )
    if report.due_at is not None:
        yield from context.announce(report.due_at, now)
    return report.created


def _checked_tick(
    context: Context[T], config_hash: ConfigHash, prefix: str, message: CronMessage[T]
) -> Tick:
    _check_type("messages", message, CronMessage)
    return tick_of(context, prefix, config_hash, message)


def _check_type(argument: str, value: object, wanted: type) -> None:
    if not isinstance(value, wanted):
        raise TypeError(f"{argument} must be a {wanted.__name__}, not {value!r}")


def _instant(millis: int | None) -> datetime | None:
    return None if millis is None else from_millis(millis)
