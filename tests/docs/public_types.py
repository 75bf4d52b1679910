# pyright: strict
"""The types that users' type checkers must infer. Nothing here runs; test_types.py checks it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypedDict, assert_type

import attrs
from pydantic import BaseModel

from duequeue import (
    AsyncConsumer,
    AsyncCronHandle,
    AsyncDelivery,
    AsyncQueue,
    BoundHandler,
    Bucket,
    BurialNotice,
    Buried,
    BuriedMessage,
    BytesCodec,
    Consumer,
    CronHandle,
    CronMessage,
    CronStatus,
    Daily,
    Delivery,
    Event,
    Handled,
    History,
    HistoryDay,
    JsonCodec,
    Message,
    OfferOutcome,
    Page,
    Queue,
    QueueName,
    QueueStats,
    Settled,
    Snapshot,
    State,
    TextCodec,
    TypedCodec,
    log_events,
    queues,
    run,
    testing,
)
from duequeue.pipeline import Delivered, Ingested, Received, ToQueue, deliver, ingest
from duequeue.spark import OfferCounts, local_session, offer
from duequeue.telemetry import instrument
from duequeue.timers import AsyncDelayQueue, DelayQueue, HashedWheel, HeapTimer, Timer

URL = "memory:"
MINUTE = timedelta(minutes=1)


@dataclass
class Order:
    total: int


class Customer(BaseModel):
    name: str


@attrs.define
class Line:
    pieces: int


class Place(NamedTuple):
    x: float
    y: float


class Parcel(TypedDict):
    weight: int


class OrderCodec:
    type_name = "order"

    def encode(self, value: Order, /) -> bytes:
        return str(value.total).encode()

    def decode(self, data: bytes, /) -> Order:
        return Order(int(data))


def the_codec_is_the_type_of_the_payload(one_or_none: TypedCodec[Order] | None) -> None:
    assert_type(Queue.open(URL, "orders", codec=Order), Queue[Order])
    assert_type(Queue.open(URL, "orders", codec=str), Queue[str])
    assert_type(Queue.open(URL, "orders", codec=bytes), Queue[bytes])
    assert_type(Queue.open(URL, "orders", codec=OrderCodec()), Queue[Order])
    assert_type(Queue.open(URL, "orders", codec=TypedCodec(Order)), Queue[Order])
    assert_type(Queue.open(URL, "orders", codec=TextCodec()), Queue[str])
    assert_type(Queue.open(URL, "orders", codec=BytesCodec()), Queue[bytes])
    assert_type(Queue.open(URL, "orders", codec=JsonCodec()), Queue[Any])
    assert_type(Queue.open(URL, "orders"), Queue[Any])
    assert_type(Queue.open(URL, "orders", codec=None, lease=MINUTE, history=True), Queue[Any])
    assert_type(Queue.open(URL, "orders", codec=Order, lease=MINUTE), Queue[Order])
    assert_type(Queue.open(URL, "orders", codec=Order, lease=None), Queue[Order])
    assert_type(Queue.open(URL, "orders", codec=one_or_none), Queue[Order] | Queue[Any])
    with Queue.open(URL, "orders", codec=Order) as queue:
        assert_type(queue, Queue[Order])


def every_payload_type_is_inferred() -> None:
    assert_type(Queue.open(URL, "customers", codec=Customer), Queue[Customer])
    assert_type(Queue.open(URL, "lines", codec=Line), Queue[Line])
    assert_type(Queue.open(URL, "places", codec=Place), Queue[Place])
    assert_type(Queue.open(URL, "parcels", codec=Parcel), Queue[Parcel])
    assert_type(Queue.open(URL, "orders", codec=list[Order]), Queue[list[Order]])
    assert_type(Queue.open(URL, "orders", codec=dict[str, Order]), Queue[dict[str, Order]])
    assert_type(Queue.open(URL, "orders", codec=list[Customer]).poll().payload, list[Customer])


def only_a_poll_that_may_give_up_returns_none(queue: Queue[Order]) -> None:
    assert_type(queue.poll(), Delivery[Order])
    assert_type(queue.poll(None), Delivery[Order])
    assert_type(queue.poll(1), Delivery[Order] | None)
    assert_type(queue.poll(0.5), Delivery[Order] | None)
    assert_type(queue.poll(timeout=MINUTE), Delivery[Order] | None)
    assert_type(queue.try_poll(), Delivery[Order] | None)
    assert_type(queue.poll_many(10), list[Delivery[Order]])
    assert_type(queue.try_poll_many(10), list[Delivery[Order]])


def a_delivery_has_the_payload(queue: Queue[Order]) -> None:
    with queue.poll() as delivery:
        assert_type(delivery, Delivery[Order])
        assert_type(delivery.key, str)
        assert_type(delivery.payload, Order)
        assert_type(delivery.attempt, int)
        assert_type(delivery.headers, dict[str, str])
        assert_type(delivery.due_at, datetime)
        assert_type(delivery.lost, bool)
        assert_type(delivery.ack(), bool)
        assert_type(delivery.extend(), bool)
        assert_type(delivery.release(MINUTE), bool)
        assert_type(delivery.bury("a negative total"), bool)


def a_message_has_the_payload(queue: Queue[Order]) -> None:
    message = Message("order-7", Order(40), due=MINUTE)
    assert_type(message, Message[Order])
    assert_type(queue.offer("order-7", Order(40)), OfferOutcome)
    assert_type(queue.offer_batch([message]), list[OfferOutcome])
    assert_type(queue.ack_many([queue.poll()]), int)
    assert_type(queue.stats(), QueueStats)
    assert_type(queue.forecast(), list[Bucket])
    assert_type(queue.history(), list[Settled])
    if found := queue.read("order-7"):
        assert_type(found, Snapshot[Order])
        assert_type(found.payload, Order)
        assert_type(found.state, State)
        assert_type(found.reason, str | None)
    for buried in queue.buried(limit=10):
        assert_type(buried, BuriedMessage[Order])
        assert_type(buried.payload, Order | None)
        assert_type(buried.reason, str)
        assert_type(buried.id, str)
        assert_type(queue.revive(buried.key, id=buried.id), bool)
        assert_type(queue.delete_buried(buried.id), bool)


def a_page_has_the_payload(queue: Queue[Order]) -> None:
    page = queue.list(state="due", prefix="order-", limit=10)
    assert_type(page, Page[Order])
    assert_type(page.messages, list[Snapshot[Order]])
    assert_type(page.next, str | None)
    assert_type(queue.list(State.FUTURE, after=page.next), Page[Order])
    assert_type(page.messages[0].payload, Order)
    assert_type(page.messages[0].deliver_at, datetime | None)
    assert_type(queue.reschedule("order-7", MINUTE), bool)
    assert_type(queue.run_now("order-7"), bool)
    assert_type(queue.revive_all(reason="timeout"), int)
    assert_type(queue.history(key="order-7"), list[Settled])


def queues_have_names() -> None:
    found = queues(URL)
    assert_type(found, list[QueueName])
    assert_type(found[0].payload_type, str)


def another_payload_is_refused(queue: Queue[Order]) -> None:
    queue.offer("order-7", "forty")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    queue.consume(take_text)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    queue.handler(take_text)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType, reportCallIssue]


def take_text(delivery: Delivery[str]) -> None: ...


def take_order(delivery: Delivery[Order]) -> int:
    return delivery.payload.total


# `Delivery` alone means a delivery of any payload.
def take_any(delivery: Delivery) -> None:
    assert_type(delivery, Delivery[Any])


def a_handler_stays_a_function(queue: Queue[Order]) -> None:
    @queue.handler
    def plain(delivery: Delivery[Order]) -> int:
        return delivery.payload.total

    @queue.handler(concurrency=4, max_attempts=5)
    def with_options(delivery: Delivery) -> str:
        return delivery.key

    assert_type(plain, BoundHandler[Delivery[Order], int, Consumer[Order]])
    assert_type(plain(queue.poll()), int)
    assert_type(plain.consume(), Consumer[Order])
    assert_type(with_options, BoundHandler[Delivery[Order], str, Consumer[Order]])
    assert_type(with_options.consume(), Consumer[Order])


def a_consumer_has_the_payload(queue: Queue[Order]) -> None:
    assert_type(queue.consume(take_order), Consumer[Order])
    assert_type(queue.consume(take_any), Consumer[Order])
    with queue.consume(take_order, concurrency=4, batch=1) as consumer:
        assert_type(consumer, Consumer[Order])
        consumer.stop(grace=MINUTE)
        run(consumer, queue.consume(take_any, lease=MINUTE, max_attempts=None), grace=MINUTE)
        assert_type(consumer.stopped, bool)
    assert_type(queue.offer("order-7", Order(40), expires=MINUTE), OfferOutcome)
    assert_type(queue.poll().expires_at, datetime | None)
    rules = queue.consume(
        take_order, timeout=MINUTE, retry_on=OSError, bury_on=(KeyError,), on_buried=note_burial
    )
    assert_type(rules, Consumer[Order])


def note_burial(notice: BurialNotice[Order]) -> None:
    assert_type(notice.payload, Order | None)


class Weekly:
    """A schedule of a user's own."""

    def next_after(self, instant: datetime) -> datetime:
        return Daily(["07:00"], weekdays=["mon"]).next_after(instant)


async def tests_have_the_payload(queue: Queue[Order], awaited: AsyncQueue[Order]) -> None:
    assert_type(testing.delivery("order-7", Order(40)), testing.LoneDelivery[Order])
    assert_type(testing.delivery("order-7", Order(40), attempt=2).payload, Order)
    assert_type(testing.delivery("order-7", Order(40)).queue, Queue[Order])
    take_order(testing.delivery("order-7", Order(40)))
    assert_type(testing.drain(queue, take_order, max_attempts=3), int)
    assert_type(testing.drain(queue, take_order, raise_errors=False), int)
    lone = await testing.async_delivery("order-7", Order(40))
    assert_type(lone, testing.AsyncLoneDelivery[Order])

    async def take(delivery: AsyncDelivery[Order]) -> int:
        return delivery.payload.total

    assert_type(await testing.async_drain(awaited, take), int)


def crons_have_the_payload(queue: Queue[Order], config: CronMessage[Order]) -> None:
    daily = Daily(["07:00"], zone="Europe/Berlin")
    handle = queue.cron.install_daily_schedule("report", daily, Order(40))
    assert_type(handle, CronHandle)
    assert_type(queue.cron.install_periodic_tick("sweep", MINUTE, order_at), CronHandle)
    own = queue.cron.install_schedule("own", Weekly(), Order(40), jitter=MINUTE, headers={"a": "b"})
    assert_type(own, CronHandle)
    assert_type(queue.cron.run_now("own"), bool)
    assert_type(queue.cron.list(), list[CronStatus])
    assert_type(config.payload, Order)


def the_history_has_days(history: History) -> None:
    assert_type(history.days(), list[HistoryDay])


def jobs_on_spark_return_counts() -> None:
    spark = local_session()
    table = spark.table("orders")
    ingested = ingest(spark, table, url=URL, queue="orders")
    delivered = deliver(
        spark, url=URL, queue="orders", handler=send, checkpoint="checkpoint", history=True
    )
    deliver(
        spark, url=URL, queue="orders", handler=log, checkpoint="log", results=ToQueue(URL, "sent")
    )
    assert_type(offer(table, url=URL, queue="orders", batchSize=1000), OfferCounts)
    assert_type(ingested, Ingested)
    assert_type(ingested.rejected, dict[str, int])
    assert_type(delivered, Delivered)


def send(batch: list[Received]) -> list[dict[str, str]]:
    return [{"sent": each.key} for each in batch]


def log(batch: list[Received]) -> None: ...


def order_at(tick: datetime) -> Order:
    return Order(tick.hour)


def listeners_get_events(queue: Queue[Order]) -> None:
    unsubscribe = queue.events.subscribe(listen)
    assert_type(unsubscribe, Callable[[], None])
    assert_type(log_events(queue), Callable[[], None])
    assert_type(instrument(queue), Callable[[], None])


def listen(event: Event) -> None:
    match event:
        case Buried(key=key, reason=reason):
            assert_type((key, reason), tuple[str, str])
        case Handled(outcome=outcome, error=error):
            assert_type((outcome, error), tuple[str, BaseException | None])
        case _:
            assert_type(event, Event)


async def the_same_awaited() -> None:
    assert_type(await AsyncQueue.open(URL, "orders", codec=Order), AsyncQueue[Order])
    assert_type(await AsyncQueue.open(URL, "orders", codec=str), AsyncQueue[str])
    assert_type(await AsyncQueue.open(URL, "orders", codec=bytes), AsyncQueue[bytes])
    assert_type(await AsyncQueue.open(URL, "orders", codec=OrderCodec()), AsyncQueue[Order])
    assert_type(await AsyncQueue.open(URL, "orders"), AsyncQueue[Any])
    assert_type(await AsyncQueue.open(URL, "orders", codec=Order, lease=None), AsyncQueue[Order])
    async with AsyncQueue.open(URL, "orders", codec=Order, lease=MINUTE) as queue:
        assert_type(queue, AsyncQueue[Order])
        assert_type(await queue.poll(), AsyncDelivery[Order])
        assert_type(await queue.poll(1), AsyncDelivery[Order] | None)
        assert_type(await queue.poll(timeout=MINUTE), AsyncDelivery[Order] | None)
        assert_type(await queue.try_poll(), AsyncDelivery[Order] | None)
        assert_type(await queue.poll_many(10), list[AsyncDelivery[Order]])
        assert_type(await queue.offer_batch([Message("7", Order(40))]), list[OfferOutcome])
        assert_type(await queue.read("order-7"), Snapshot[Order] | None)
        assert_type(await queue.list(prefix="order-"), Page[Order])
        assert_type(await queue.buried(10), list[BuriedMessage[Order]])
        async with await queue.poll() as delivery:
            assert_type(delivery.payload, Order)
            assert_type(await delivery.ack(), bool)


async def awaited_handlers(queue: AsyncQueue[Order]) -> None:
    async def take(delivery: AsyncDelivery) -> None:
        assert_type(delivery, AsyncDelivery[Any])

    @queue.handler
    async def plain(delivery: AsyncDelivery[Order]) -> int:
        return delivery.payload.total

    @queue.handler(max_attempts=5)
    async def with_options(delivery: AsyncDelivery[Order]) -> int:
        return delivery.payload.total

    assert_type(queue.consume(take), AsyncConsumer[Order])
    assert_type(plain.consume(), AsyncConsumer[Order])
    assert_type(await plain(await queue.poll()), int)
    assert_type(with_options.consume(), AsyncConsumer[Order])
    daily = Daily(["07:00"])
    handle = await queue.cron.install_daily_schedule("report", daily, order_at)
    assert_type(handle, AsyncCronHandle)


def timers() -> None:
    timer = HeapTimer[str]()
    assert_type(timer.schedule(1, "a"), int)
    assert_type(timer.advance(1), list[str])
    assert_type(timer.first(1), tuple[int, str] | None)
    assert_type(timer.next_due(), int | None)
    same: Timer[str] = timer
    assert_type(same.cancel(1), bool)
    queue = DelayQueue[str](timer=HashedWheel())
    assert_type(queue.put("a", MINUTE), int)
    assert_type(queue.take(), str)
    assert_type(queue.poll(MINUTE), str | None)
    assert_type(queue.peek(), str | None)
    assert_type(queue.drain(), list[str])


async def awaited_delays(queue: AsyncDelayQueue[str]) -> None:
    assert_type(await queue.put("a", MINUTE), int)
    assert_type(await queue.take(), str)
    assert_type(await queue.poll(MINUTE), str | None)
    assert_type(await queue.drain(), list[str])
