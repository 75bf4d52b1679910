"""Recurring messages: install, list, next ticks, pause, resume, run now, remove."""

from datetime import datetime
from itertools import islice

from duequeue.cron.installing import CronStatus
from duequeue.defaults import FEW, LONGEST_PAGE
from duequeue.errors import InvalidArgument, InvalidType
from duequeue.message import checked_name
from duequeue.schedules.schedule import ticks
from duequeue.schedules.zones import rules_of
from duequeue.server import wire
from duequeue.server.cron_schedules import schedule_of
from duequeue.server.exchange import Exchange
from duequeue.server.payloads import JSON
from duequeue.server.problems import Problem, invalid, not_found, problem_of
from duequeue.server.queues import ServedQueue
from duequeue.server.routing import Parameter, Route
from duequeue.server.times import instant_text_or_none
from duequeue.server.tokens import Scope

NAME = Parameter("name", wire.CronName, "The name of the cron", required=True, place="path")
QUEUE = Parameter(
    "queue", wire.QueueName, "The queue of the cron, if several queues have one with this name"
)
COUNT = Parameter("n", wire.TickCount, f"How many ticks to return; {FEW} if it is not given")
ZONE = Parameter("zone", str, "The time zone of the answer, such as Europe/Berlin")
# How a schedule's error names its argument, and how a definition does.
_FIELDS = {"period": "every", "times": "daily", "limit": "misfire", "prefix": "name"}


async def put(exchange: Exchange) -> None:
    """Install a cron, or change it."""
    definition: wire.CronDefinition = await exchange.decoded(wire.CronDefinition)
    exchange.check(Scope.ADMIN, definition.queue)
    if exchange.service.is_own(definition.queue):
        raise invalid("queue", "this queue belongs to the server itself")
    name = exchange.path["name"]
    await exchange.check_queue(definition.queue)
    try:
        await exchange.service.crons.define(name, definition)
    except (InvalidArgument, InvalidType) as error:
        problem = problem_of(error)
        problem.argument = _FIELDS.get(error.argument, error.argument)
        raise problem from None
    queue = await exchange.use(definition.queue, create=True)
    await exchange.answer(_shown(exchange, queue.name, await _status(queue, name)))


async def list_all(exchange: Exchange) -> None:
    """List the crons of the queues that the token may see."""
    found = await _installed(exchange, Scope.READ)
    await exchange.answer(wire.CronList([_shown(exchange, *each) for each in found]))


async def read(exchange: Exchange) -> None:
    """Show one cron."""
    queue, status = await _find(exchange, Scope.READ)
    await exchange.answer(_shown(exchange, queue.name, status))


async def remove(exchange: Exchange) -> None:
    """Remove a cron and the ticks that were not delivered yet."""
    queue, status = await _find(exchange, Scope.ADMIN)
    removed = await exchange.service.crons.remove(queue.name, status.prefix)
    await exchange.answer(wire.Changed(removed))


async def pause(exchange: Exchange) -> None:
    """Remove the undelivered ticks, and create no more."""
    queue, status = await _find(exchange, Scope.ADMIN)
    await exchange.answer(wire.Changed(await queue.queue.cron.pause(status.prefix)))


async def resume(exchange: Exchange) -> None:
    """Create ticks again."""
    queue, status = await _find(exchange, Scope.ADMIN)
    await exchange.answer(wire.Changed(await queue.queue.cron.resume(status.prefix)))


async def run_now(exchange: Exchange) -> None:
    """Offer one extra message, due now."""
    queue, status = await _find(exchange, Scope.ADMIN)
    if await exchange.service.crons.find(queue.name, status.prefix) is None:
        raise _unknown_schedule()
    await exchange.answer(wire.Changed(await queue.queue.cron.run_now(status.prefix)))


async def next_ticks(exchange: Exchange) -> None:
    """Return when a cron ticks next."""
    count = exchange.number("n", FEW, 1, LONGEST_PAGE)
    queue, status = await _find(exchange, Scope.READ)
    running = await exchange.service.crons.find(queue.name, status.prefix)
    if running is None:
        raise _unknown_schedule()
    zone = rules_of(exchange.query.get("zone", running.definition.zone))
    now = queue.context.clock.now()
    until = running.definition.until
    found: list[datetime] = list(islice(ticks(schedule_of(running.definition), now, until), count))
    shown = [each.astimezone(zone).isoformat(timespec="milliseconds") for each in found]
    await exchange.answer(wire.NextTicks(shown))


async def _find(exchange: Exchange, scope: Scope) -> tuple[ServedQueue, CronStatus]:
    """Return the cron that the path names, in the only queue that has it."""
    name = exchange.path["name"]
    found = [each for each in await _installed(exchange, scope) if each[1].prefix == name]
    if not found:
        raise not_found("there is no cron with this name in the queues that the token may use")
    if len(found) > 1:
        names = ", ".join(repr(queue) for queue, _ in found)
        raise invalid("queue", f"several queues have a cron with this name: {names}")
    queue, status = found[0]
    return await exchange.use(queue, create=True), status


async def _installed(exchange: Exchange, scope: Scope) -> list[tuple[str, CronStatus]]:
    """Return the crons of the queues that the token may use, and the names of these queues.

    One queue after the other is opened, because there may be more than can be open at a time.
    """
    queues = exchange.service.queues
    found: list[tuple[str, CronStatus]] = []
    for name in await _queue_names(exchange, scope, exchange.query.get("queue")):
        async with queues.using(name, JSON) as queue:
            found += [(name, each) for each in await queue.queue.cron.list()]
    return found


async def _queue_names(exchange: Exchange, scope: Scope, only: str | None) -> list[str]:
    known = {
        name
        for name, type_name in await exchange.service.queues.kinds()
        if type_name == JSON and not exchange.service.is_own(name)
    }
    if only is not None:
        exchange.check(scope, checked_name(only))
        known &= {only}
    return [each for each in sorted(known) if exchange.grant.allows(scope, each)]


async def _status(queue: ServedQueue, name: str) -> CronStatus:
    for each in await queue.queue.cron.list():
        if each.prefix == name:
            return each
    raise not_found("another request has removed the cron in the meantime")


def _shown(exchange: Exchange, queue: str, status: CronStatus) -> wire.CronStatus:
    return wire.CronStatus(
        name=status.prefix,
        queue=queue,
        schedule=status.schedule,
        paused=status.paused,
        next_tick=instant_text_or_none(status.next_tick),
        last_tick=instant_text_or_none(status.last_tick),
        generation=status.generation,
        defined_here=exchange.service.crons.is_defined(queue, status.prefix),
    )


def _unknown_schedule() -> Problem:
    return Problem(
        409,
        "installed-by-a-program",
        "a program has installed this cron, so the server does not know its schedule and payload",
    )


_CRON = "/v1/crons/{name}"

ROUTES = (
    Route(
        "GET",
        "/v1/crons",
        list_all,
        "List the crons of all queues, or of one",
        answer=wire.CronList,
        parameters=(QUEUE,),
    ),
    Route(
        "GET",
        _CRON,
        read,
        "Show a cron",
        answer=wire.CronStatus,
        parameters=(NAME, QUEUE),
        errors=(404,),
    ),
    Route(
        "PUT",
        _CRON,
        put,
        "Install a cron, or change it",
        body=wire.CronDefinition,
        answer=wire.CronStatus,
        parameters=(NAME,),
        errors=(404,),
    ),
    Route(
        "DELETE",
        _CRON,
        remove,
        "Remove a cron and its undelivered ticks",
        answer=wire.Changed,
        parameters=(NAME, QUEUE),
        errors=(404,),
    ),
    Route(
        "GET",
        f"{_CRON}/next",
        next_ticks,
        "Return when a cron ticks next",
        answer=wire.NextTicks,
        parameters=(NAME, QUEUE, COUNT, ZONE),
        errors=(404, 409),
    ),
    *(
        Route(
            "POST",
            f"{_CRON}:{verb}",
            handle,
            summary,
            answer=wire.Changed,
            parameters=(NAME, QUEUE),
            errors=(404, 409),
        )
        for verb, handle, summary in (
            ("pause", pause, "Pause a cron"),
            ("resume", resume, "Resume a cron"),
            ("run-now", run_now, "Offer one extra message of a cron"),
        )
    ),
)
