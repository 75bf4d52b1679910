"""DueQueue delivers messages when they are due."""

from duequeue import testing as testing
from duequeue.backoff import Backoff
from duequeue.clock import Clock, ManualClock, SystemClock
from duequeue.codec import BytesCodec, Codec, JsonCodec, TextCodec
from duequeue.consumer.bound_handler import BoundHandler
from duequeue.consumer.consumer import Consumer, run
from duequeue.consumer.consumer_async import AsyncConsumer
from duequeue.cron.cron import Cron, CronHandle
from duequeue.cron.cron_async import AsyncCron, AsyncCronHandle
from duequeue.cron.installing import CronStatus
from duequeue.delivery import Delivery
from duequeue.delivery_async import AsyncDelivery
from duequeue.errors import (
    DeliveryLost,
    DueQueueError,
    InvalidArgument,
    InvalidType,
    MissingExtra,
    NotAnswered,
    PayloadTooLarge,
    QueueClosed,
    SchemaError,
    StoreBusy,
    StoreError,
    StoreUnavailable,
    UndecodablePayload,
    WrongDatabase,
)
from duequeue.events.events import (
    Buried,
    Delivered,
    Event,
    Events,
    Expired,
    Handled,
    LeaseLost,
    Offered,
    StoreFailed,
)
from duequeue.events.log import log_events
from duequeue.history import History, HistoryDay
from duequeue.message import (
    Bucket,
    BurialNotice,
    BuriedMessage,
    Message,
    OfferOutcome,
    Page,
    QueueStats,
    Snapshot,
    State,
)
from duequeue.payloads.typed_codec import TypedCodec
from duequeue.port.history_table import BurialReason, DayBounds, ScheduledHour, SettledRow
from duequeue.queue import Queue
from duequeue.queue_async import AsyncQueue
from duequeue.queue_names import QueueName, queues
from duequeue.response import Response
from duequeue.retention import Retention
from duequeue.retry_policy import RetryPolicy
from duequeue.schedules.crontab import Crontab
from duequeue.schedules.misfire import Misfire
from duequeue.schedules.schedule import Daily, Every, Schedule
from duequeue.schedules.tick import ConfigHash, CronMessage, TickKey, parse_tick_key
from duequeue.settled import Outcome, Settled
from duequeue.verdict import Bury, Retry

__all__ = [
    "AsyncConsumer",
    "AsyncCron",
    "AsyncCronHandle",
    "AsyncDelivery",
    "AsyncQueue",
    "Backoff",
    "BoundHandler",
    "Bucket",
    "BurialNotice",
    "BurialReason",
    "Buried",
    "BuriedMessage",
    "Bury",
    "BytesCodec",
    "Clock",
    "Codec",
    "ConfigHash",
    "Consumer",
    "Cron",
    "CronHandle",
    "CronMessage",
    "CronStatus",
    "Crontab",
    "Daily",
    "DayBounds",
    "Delivered",
    "Delivery",
    "DeliveryLost",
    "DueQueueError",
    "Event",
    "Events",
    "Every",
    "Expired",
    "Handled",
    "History",
    "HistoryDay",
    "InvalidArgument",
    "InvalidType",
    "JsonCodec",
    "LeaseLost",
    "ManualClock",
    "Message",
    "Misfire",
    "MissingExtra",
    "NotAnswered",
    "OfferOutcome",
    "Offered",
    "Outcome",
    "Page",
    "PayloadTooLarge",
    "Queue",
    "QueueClosed",
    "QueueName",
    "QueueStats",
    "Response",
    "Retention",
    "Retry",
    "RetryPolicy",
    "Schedule",
    "ScheduledHour",
    "SchemaError",
    "Settled",
    "SettledRow",
    "Snapshot",
    "State",
    "StoreBusy",
    "StoreError",
    "StoreFailed",
    "StoreUnavailable",
    "SystemClock",
    "TextCodec",
    "TickKey",
    "TypedCodec",
    "UndecodablePayload",
    "WrongDatabase",
    "log_events",
    "parse_tick_key",
    "queues",
    "run",
]
