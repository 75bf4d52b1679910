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
from duequeue.message import BuriedMessage, Message, OfferOutcome, QueueStats, Snapshot, State
from duequeue.misfire import Misfire
from duequeue.queue import Queue
from duequeue.queue_async import AsyncQueue
from duequeue.schedule import Daily, Every, Schedule
from duequeue.tick import CronMessage
from duequeue.verdict import Bury, Retry

__all__ = [
    "AsyncConsumer",
    "AsyncCron",
    "AsyncCronHandle",
    "AsyncDelivery",
    "AsyncQueue",
    "Backoff",
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
    "Delivery",
    "DueQueueError",
    "Every",
    "JsonCodec",
    "ManualClock",
    "Message",
    "Misfire",
    "MissingExtra",
    "OfferOutcome",
    "PayloadTooLarge",
    "Queue",
    "QueueClosed",
    "QueueStats",
    "Retry",
    "RetryPolicy",
    "Schedule",
    "SchemaError",
    "Snapshot",
    "State",
    "StoreError",
    "StoreUnavailable",
    "SystemClock",
    "TextCodec",
    "TypedCodec",
    "UndecodablePayload",
]
