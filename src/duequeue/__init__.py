"""DueQueue delivers messages when they are due."""

from duequeue.backoff import RetryPolicy
from duequeue.clock import Clock, ManualClock, SystemClock
from duequeue.codec import BytesCodec, Codec, JsonCodec, TextCodec, TypedCodec
from duequeue.config_hash import ConfigHash
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

__all__ = [
    "AsyncCron",
    "AsyncCronHandle",
    "AsyncDelivery",
    "AsyncQueue",
    "BuriedMessage",
    "BytesCodec",
    "Clock",
    "Codec",
    "ConfigHash",
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
