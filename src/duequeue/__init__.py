"""DueQueue delivers messages when they are due."""

from duequeue.backoff import RetryPolicy
from duequeue.clock import Clock, ManualClock, SystemClock
from duequeue.codec import BytesCodec, Codec, JsonCodec, TextCodec, TypedCodec
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
from duequeue.queue import Queue
from duequeue.queue_async import AsyncQueue

__all__ = [
    "AsyncDelivery",
    "AsyncQueue",
    "BuriedMessage",
    "BytesCodec",
    "Clock",
    "Codec",
    "Delivery",
    "DueQueueError",
    "JsonCodec",
    "ManualClock",
    "Message",
    "MissingExtra",
    "OfferOutcome",
    "PayloadTooLarge",
    "Queue",
    "QueueClosed",
    "QueueStats",
    "RetryPolicy",
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
