"""The port of the messages: what an operation deletes, whatever its caller says about a message."""

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any

import pytest

from duequeue.backends import backend_for
from duequeue.contract.fixtures import START
from duequeue.instants import to_millis
from duequeue.port.store import Expiry, Record, Session, Store

NOW = to_millis(START)
LEASE_END = NOW + 60_000


class Opened:
    """One store without a queue in between."""

    def __init__(self, url: str, session: Session, *, history: bool) -> None:
        self._session = session
        opening = partial(
            backend_for(url).open_store, "orders|json", 3000, migrate=True, history=history
        )
        self.store: Store = session.run(opening)

    def run(self, operation: Callable[..., Any], *arguments: Any) -> Any:
        return self._session.run(partial(operation, *arguments))


@pytest.fixture(params=[True, False], ids=["history", "no history"])
def opened(store_url: str, request: pytest.FixtureRequest) -> Iterator[Opened]:
    with closing(backend_for(store_url).session()) as session:
        yield Opened(store_url, session, history=request.param)


def test_only_what_has_expired_is_deleted_as_expired(opened: Opened) -> None:
    store = opened.store
    expiries = {"gone": NOW, "later": NOW + 1, "never": None}
    records = [Record(key, b"1", NOW - 1, None, True, at) for key, at in expiries.items()]
    opened.run(store.offer, records, NOW - 1)
    claimed = opened.run(store.claim, 3, NOW, LEASE_END, 7)
    given = [Expiry(each.lease, each.attempt - 1) for each in claimed]
    (gone,) = (each.lease.id for each in claimed if each.key == "gone")
    assert opened.run(store.expire, given, NOW) == {gone}
    for key in ("later", "never"):
        assert opened.run(store.read, key).leased_until == LEASE_END
    assert opened.run(store.read, "gone") is None
    assert [each.key for each in opened.run(store.settled, 10)] in (["gone"], [])
