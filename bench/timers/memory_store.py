"""What the operations of the memory store cost while many messages are pending."""

import gc
from datetime import UTC, datetime, timedelta
from time import process_time_ns

from bench.timers.lifetimes import HOUR, resident
from duequeue import BytesCodec, ManualClock, Message, Queue

START = datetime(2026, 3, 1, tzinfo=UTC)
OPERATIONS = 2000
PAYLOAD = b"x" * 100


def measure(timer: str, size: int) -> dict[str, float]:
    """Return nanoseconds of processor time for each operation, and bytes for each message."""
    clock = ManualClock(START)
    with Queue.open(
        f"memory:bench?timer={timer}", "bench", codec=BytesCodec(), clock=clock
    ) as queue:
        gc.collect()
        before = resident()
        later = timedelta(milliseconds=HOUR / size)
        queue.offer_batch(
            Message(f"pending-{number}", PAYLOAD, later * (number + 1)) for number in range(size)
        )
        figures = {"memory": (resident() - before) / size}
        clock.advance(timedelta(milliseconds=HOUR / 2))  # half of them are due
        gc.collect()
        keys = [f"one-{number}" for number in range(OPERATIONS)]
        marks = [process_time_ns()]
        for key in keys:
            queue.offer(key, PAYLOAD)
        marks.append(process_time_ns())
        claimed = [queue.try_poll() for _ in range(min(OPERATIONS, size // 2))]
        marks.append(process_time_ns())
        deliveries = [delivery for delivery in claimed if delivery is not None]
        assert len(deliveries) == len(claimed)
        for delivery in deliveries:
            delivery.extend()
        marks.append(process_time_ns())
        for delivery in deliveries:
            delivery.ack()
        marks.append(process_time_ns())
    counts = (OPERATIONS, len(deliveries), len(deliveries), len(deliveries))
    for name, begin, end, number in zip(
        ("offer", "claim", "extend", "ack"), marks, marks[1:], counts, strict=False
    ):
        figures[name] = (end - begin) / number
    return figures
