"""What a queue holds now, and what falls due ahead."""

from datetime import datetime, timedelta

from duequeue.defaults import FORECAST_BUCKET, FORECAST_UNTIL
from duequeue.durations import duration_text
from duequeue.instants import from_millis, instant_text
from duequeue.message import Bucket
from duequeue.server import wire
from duequeue.server.exchange import Exchange
from duequeue.server.parameters import QUEUE, TYPE
from duequeue.server.routing import Parameter, Route
from duequeue.server.times import instant_text_or_none, read_duration
from duequeue.server.tokens import Scope

USUAL_HOURS = FORECAST_UNTIL // timedelta(hours=1)
USUAL_BUCKET = duration_text(FORECAST_BUCKET)
HOURS = Parameter(
    "hours", wire.Hours, f"How many hours to look ahead; {USUAL_HOURS} if it is not given"
)
BUCKET = Parameter(
    "bucket",
    str,
    f'The length of a bucket, such as "15m"; "{USUAL_BUCKET}" if it is not given',
)


async def list_queues(exchange: Exchange) -> None:
    """List the queues that the token may use."""
    found = [
        wire.QueueAndType(name, type_name)
        for name, type_name in await exchange.service.queues.kinds()
        if exchange.grant.allows_something(name) and not exchange.service.is_own(name)
    ]
    await exchange.answer(wire.QueueList(found))


async def read(exchange: Exchange) -> None:
    """Count the messages of a queue by state."""
    queue = await exchange.queue()
    found = await exchange.look(("stats", queue.kind), queue.looking.stats, shares=queue.exists)
    shown = wire.Stats(
        name=queue.name,
        type=queue.type_name,
        total=found.total,
        due=found.due,
        leased=found.leased,
        future=found.future,
        buried=found.buried,
        oldest_due_at=instant_text_or_none(found.oldest_due_at),
        next_due_at=instant_text_or_none(found.next_due_at),
    )
    await exchange.answer(shown)


async def forecast(exchange: Exchange) -> None:
    """Count what falls due ahead, in buckets."""
    ahead = timedelta(hours=exchange.number("hours", USUAL_HOURS, 1, wire.MOST_HOURS))
    bucket = read_duration(exchange.query.get("bucket", USUAL_BUCKET), "bucket")
    queue = await exchange.queue()

    async def look_ahead() -> tuple[datetime, list[Bucket]]:
        now = from_millis(queue.context.now())
        return now, await queue.looking.forecast(bucket, now + ahead)

    now, found = await exchange.look(("forecast", queue.kind), look_ahead)
    shown = wire.Forecast(
        now=instant_text(now),
        until=instant_text(now + ahead),
        bucket_seconds=bucket.total_seconds(),
        buckets=[
            wire.Bucket(instant_text(each.begins_at), each.messages, each.overdue)
            for each in found
            if each.messages
        ],
    )
    await exchange.answer(shown)


ROUTES = (
    Route(
        "GET",
        "/v1/queues",
        list_queues,
        "List the queues that the token may use",
        answer=wire.QueueList,
    ),
    Route(
        "GET",
        "/v1/queues/{queue}",
        read,
        "Count the messages of a queue by state",
        Scope.READ,
        answer=wire.Stats,
        parameters=(QUEUE, TYPE),
    ),
    Route(
        "GET",
        "/v1/queues/{queue}/forecast",
        forecast,
        "Count the messages that fall due ahead",
        Scope.READ,
        answer=wire.Forecast,
        parameters=(QUEUE, TYPE, HOURS, BUCKET),
    ),
)
