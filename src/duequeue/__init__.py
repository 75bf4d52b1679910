"""DueQueue delivers messages when they are due."""

from duequeue.backoff import Backoff, RetryPolicy
from duequeue.clock import Clock, ManualClock, SystemClock
from duequeue.codec import BytesCodec, Codec, JsonCodec, TextCodec, TypedCodec
from duequeue.config_hash import ConfigHash
from duequeue.consumer import Consumer
from duequeue.consumer_async import AsyncConsumer
from duequeue.cron import Cron, CronHandle
from duequeue.cron_async import AsyncCron, AsyncCronHandle
from duequeue.cron_status import CronStatus
from duequeue.crontab import Crontab
from duequeue.delivery import Delivery
from duequeue.delivery_async import AsyncDelivery
from duequeue.errors import (
    DueQueueError,
    MissingExtra,
    PayloadTooLarge,
    QueueClosed,
    SchemaError,
    StoreError,
    StoreUnavailable,
    UndecodablePayload,
)
from duequeue.event_log import log_events
from duequeue.events import (
    Buried,
    Delivered,
    Event,
    Events,
    Handled,
    LeaseLost,
    Offered,
    StoreFailed,
)
from duequeue.handler import BoundHandler
from duequeue.history import History, HistoryDay
from duequeue.history_table import DayBounds, SettledRow
from duequeue.message import BuriedMessage, Message, OfferOutcome, QueueStats, Snapshot, State
from duequeue.misfire import Misfire
from duequeue.queue import Queue
from duequeue.queue_async import AsyncQueue
from duequeue.schedule import Daily, Every, Schedule
from duequeue.settled import Outcome, Settled
from duequeue.tick import CronMessage, TickKey, parse_tick_key
from duequeue.verdict import Bury, Retry

__all__ = [
    "AsyncConsumer",
    "AsyncCron",
    "AsyncCronHandle",
    "AsyncDelivery",
    "AsyncQueue",
    "Backoff",
    "BoundHandler",
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
    "DueQueueError",
    "Event",
    "Events",
    "Every",
    "Handled",
    "History",
    "HistoryDay",
    "JsonCodec",
    "LeaseLost",
    "ManualClock",
    "Message",
    "Misfire",
    "MissingExtra",
    "OfferOutcome",
    "Offered",
    "Outcome",
    "PayloadTooLarge",
    "Queue",
    "QueueClosed",
    "QueueStats",
    "Retry",
    "RetryPolicy",
    "Schedule",
    "SchemaError",
    "Settled",
    "SettledRow",
    "Snapshot",
    "State",
    "StoreError",
    "StoreFailed",
    "StoreUnavailable",
    "SystemClock",
    "TextCodec",
    "TickKey",
    "TypedCodec",
    "UndecodablePayload",
    "log_events",
    "parse_tick_key",
]
