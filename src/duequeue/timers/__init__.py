"""Timers, which hold items until they are due, and queues in one process that run on them."""

from duequeue.timers.delay_queue import DelayQueue
from duequeue.timers.delay_queue_async import AsyncDelayQueue
from duequeue.timers.hashed_wheel import HashedWheel
from duequeue.timers.heap import HeapTimer
from duequeue.timers.hierarchical_wheel import HierarchicalWheel
from duequeue.timers.simple_wheel import SimpleWheel
from duequeue.timers.sorted_hashed_wheel import SortedHashedWheel
from duequeue.timers.timer import Handle, Timer

__all__ = [
    "AsyncDelayQueue",
    "DelayQueue",
    "Handle",
    "HashedWheel",
    "HeapTimer",
    "HierarchicalWheel",
    "SimpleWheel",
    "SortedHashedWheel",
    "Timer",
]
