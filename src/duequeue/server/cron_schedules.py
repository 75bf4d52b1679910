"""The schedule that the definition of a cron stands for."""

from duequeue.cron.tick_settings import TickOptions
from duequeue.schedules.crontab import Crontab
from duequeue.schedules.misfire import Misfire
from duequeue.schedules.schedule import Daily, DescribedSchedule, Every
from duequeue.server import wire
from duequeue.server.problems import invalid
from duequeue.server.times import read_duration


def schedule_of(definition: wire.CronDefinition) -> DescribedSchedule:
    """Return the schedule, or raise if the definition does not have exactly one."""
    given = [definition.expression, definition.every, definition.daily]
    if sum(each is not None for each in given) != 1:
        raise invalid("expression", "give exactly one of expression, every and daily")
    if definition.weekdays is not None and definition.daily is None:
        raise invalid("weekdays", "weekdays go with daily only")
    if definition.expression is not None:
        return Crontab(definition.expression, definition.zone)
    if definition.every is not None:
        return Every(read_duration(definition.every, "every"))
    return Daily(definition.daily or [], definition.zone, weekdays=definition.weekdays)


def options_of(definition: wire.CronDefinition) -> TickOptions:
    """Return the options of the schedule."""
    jitter = definition.jitter
    return TickOptions(
        misfire=_misfire(definition.misfire),
        jitter=None if jitter is None else read_duration(jitter, "jitter"),
        until=definition.until,
        headers=definition.headers,
    )


def _misfire(given: str | int) -> Misfire:
    if isinstance(given, int):
        return Misfire(given)
    return Misfire.skip() if given == "skip" else Misfire.fire_once()
