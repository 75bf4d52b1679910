"""What the methods of a cron face do: check the arguments, then run one operation or an upkeep."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from duequeue.cron.plans import Generated, Plan
from duequeue.cron.scheduled import Scheduled
from duequeue.cron.tick_settings import TickOptions, checked_settings
from duequeue.cron.upkeep import Upkeep, install, tick_of
from duequeue.drive.actions import Flow
from duequeue.errors import InvalidArgument, InvalidType
from duequeue.flows.context import Context
from duequeue.instants import from_millis, instant_or_none, positive_millis
from duequeue.message import checked_payload
from duequeue.port.cron_table import Installation, Installed, Tick
from duequeue.schedules.crontab import Crontab
from duequeue.schedules.own_schedule import OwnSchedule
from duequeue.schedules.schedule import Daily, DescribedSchedule, Every, Schedule
from duequeue.schedules.tick import ConfigHash, CronMessage, checked_prefix

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CronStatus:
    """One installed cron.

    `next_tick` is the earliest undelivered tick in the queue, and `last_tick` is the latest tick
    that was delivered. `generation` counts the changes of configuration.
    """

    prefix: str
    config_hash: ConfigHash
    schedule: str
    paused: bool
    next_tick: datetime | None
    last_tick: datetime | None
    generation: int


def install_tick(
    context: Context[T], config_hash: ConfigHash, prefix: str, messages: Iterable[CronMessage[T]]
) -> Flow[int]:
    """Make one configuration the installed one, with these ticks."""
    _check_type("config_hash", config_hash, ConfigHash)
    prefix = checked_prefix(prefix)
    ticks = [_checked_tick(context, config_hash, prefix, message) for message in messages]
    latest = max((tick.at for tick in ticks), default=None)
    installation = Installation(prefix, config_hash.text, ahead=ticks, created_until=latest)
    return _created(install(context, installation, context.now()))


def uninstall_tick(context: Context[T], config_hash: ConfigHash, prefix: str) -> Flow[int]:
    """Remove the undelivered ticks of one configuration."""
    _check_type("config_hash", config_hash, ConfigHash)
    prefix = checked_prefix(prefix)
    of = (prefix, config_hash.text, context.now())
    return context.run(partial(context.store.cron.uninstall, *of))


def pause(context: Context[T], prefix: str) -> Flow[bool]:
    """Remove the ticks of a prefix, and have none created until it is resumed."""
    prefix = checked_prefix(prefix)
    return context.run(partial(context.store.cron.set_paused, prefix, context.now(), paused=True))


def resume(context: Context[T], prefix: str) -> Flow[bool]:
    """Have ticks created again."""
    prefix = checked_prefix(prefix)
    return context.run(partial(context.store.cron.set_paused, prefix, context.now(), paused=False))


def list_crons(context: Context[T]) -> Flow[list[CronStatus]]:
    """Return what is installed."""
    found = yield from context.run(context.store.cron.listing)
    return [
        CronStatus(
            prefix=each.prefix,
            config_hash=ConfigHash.stored(each.config_hash),
            schedule=each.schedule,
            paused=each.paused,
            next_tick=instant_or_none(each.next_tick_at),
            last_tick=instant_or_none(each.last_tick_at),
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
        raise InvalidType(
            "generate", f"must be a function of the present instant, not {generate!r}"
        )
    return _upkeep(context, Generated(checked_prefix(prefix), config_hash, interval, generate))


def daily(
    context: Context[T],
    prefix: str,
    schedule: Daily,
    payload: T | Callable[[datetime], T],
    options: TickOptions,
) -> Upkeep[T]:
    """Return the upkeep of a daily schedule."""
    _check_type("schedule", schedule, Daily)
    return _scheduled(context, prefix, schedule, payload, options)


def periodic(
    context: Context[T],
    prefix: str,
    period: timedelta,
    payload: T | Callable[[datetime], T],
    options: TickOptions,
) -> Upkeep[T]:
    """Return the upkeep of a period."""
    return _scheduled(context, prefix, Every(period), payload, options)


def expression(
    context: Context[T],
    prefix: str,
    crontab: Crontab,
    payload: T | Callable[[datetime], T],
    options: TickOptions,
) -> Upkeep[T]:
    """Return the upkeep of a crontab expression."""
    _check_type("crontab", crontab, Crontab)
    return _scheduled(context, prefix, crontab, payload, options)


def any_schedule(
    context: Context[T],
    prefix: str,
    schedule: Schedule,
    payload: T | Callable[[datetime], T],
    config_hash: ConfigHash | None,
    options: TickOptions,
) -> Upkeep[T]:
    """Return the upkeep of one of our schedules, or of one that the user wrote."""
    if config_hash is not None:
        _check_type("config_hash", config_hash, ConfigHash)
    if isinstance(schedule, Daily | Every | Crontab):
        return _scheduled(context, prefix, schedule, payload, options, config_hash)
    own = OwnSchedule(schedule)
    own.next_after(from_millis(context.now()))  # raises a mistake, which later runs only log
    return _scheduled(context, prefix, own, payload, options, config_hash)


def _scheduled(
    context: Context[T],
    prefix: str,
    schedule: DescribedSchedule,
    payload: T | Callable[[datetime], T],
    options: TickOptions,
    config_hash: ConfigHash | None = None,
) -> Upkeep[T]:
    prefix = checked_prefix(prefix)
    settings = checked_settings(**options)
    if not callable(payload):
        checked_payload(context.codec.encode(payload), prefix)
    return _upkeep(context, Scheduled(prefix, schedule, payload, settings, config_hash))


def _upkeep(context: Context[T], plan: Plan) -> Upkeep[T]:
    if context.is_borrowed:
        raise InvalidArgument(
            "within",
            text="a cron outlives the caller's transaction, so install it on the queue itself, "
            "or use install_tick within the transaction",
        )
    return Upkeep(context, plan)


def _created(installing: Flow[Installed]) -> Flow[int]:
    return (yield from installing).created


def _checked_tick(
    context: Context[T], config_hash: ConfigHash, prefix: str, message: CronMessage[T]
) -> Tick:
    _check_type("messages", message, CronMessage)
    return tick_of(context, prefix, config_hash, message, message.payload)


def _check_type(argument: str, value: object, wanted: type) -> None:
    if not isinstance(value, wanted):
        raise InvalidType(argument, f"must be a {wanted.__name__}, not {value!r}")
