"""Another process that waits for a message, and messages of which it hears nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from duequeue.backends import backend_for
from duequeue.contract.faces import SyncFace
from duequeue.contract.phrases import MINUTE, PATIENCE, SECOND
from duequeue.port.store import Record, Session, Store
from duequeue.stores.redis.keys import QueueKeys

KIND = "orders|json"
LISTENERS = QueueKeys(KIND).named("listeners")
LEASED = QueueKeys(KIND).named("leased")


def poll_once(url: str) -> str:
    """Wait for a message in another process."""
    with SyncFace().open(url, "orders", poll_interval=10 * MINUTE) as queue:
        delivery = queue.poll(PATIENCE * SECOND)
        assert delivery is not None
        assert delivery.ack()
        return delivery.key


def offer_in_silence(url: str, key: str, payload: bytes = b"1") -> None:
    """Offer a message that is due, and wake nobody."""
    with opened_store(url) as (store, session):
        session.run(partial(store.offer, [Record(key, payload, 0)], 0))


@contextmanager
def opened_store(url: str) -> Iterator[tuple[Store, Session]]:
    """Open the store below the queue, and a session that runs its operations."""
    backend = backend_for(url)
    session = backend.session()
    opening = partial(backend.open_store, KIND, 1, migrate=True, history=False)
    yield session.run(opening), session
    session.close()
