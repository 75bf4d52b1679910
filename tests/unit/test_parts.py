"""How a process opens all queues of a database."""

import asyncio
from datetime import timedelta
from typing import cast

from duequeue import BytesCodec, Retention, SystemClock
from duequeue.parts import QueueSettings
from duequeue.port.store import Store


def test_burials_are_kept_for_their_time_without_a_history_too() -> None:
    retention = Retention(buried=timedelta(days=1))
    settings = QueueSettings("memory:", SystemClock(), history=False, retention=retention)
    assert settings.opening("orders", BytesCodec()).retention == retention


async def _open(settings: QueueSettings) -> str:
    parts = await settings.open("orders", BytesCodec())
    try:
        return type(parts.context.store).__name__
    finally:
        await parts.close()


def test_the_store_of_a_queue_may_be_observed() -> None:
    observed: list[str] = []

    class Observed:
        """What stands around a store."""

        def __init__(self, store: Store) -> None:
            self._store = store

        def __getattr__(self, name: str) -> object:
            return getattr(self._store, name)

    def observe(queue: str, store: Store) -> Store:
        observed.append(queue)
        return cast("Store", Observed(store))

    settings = QueueSettings("memory:", SystemClock(), observe=observe)
    assert (asyncio.run(_open(settings)), observed) == ("Observed", ["orders"])
