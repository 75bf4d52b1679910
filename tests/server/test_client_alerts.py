"""The thread of a client that waits at the server for wake-ups."""

from collections.abc import Iterator

import pytest

from duequeue.contract.stage import until
from duequeue.port.remote import WakeUpCall
from duequeue.stores.http import alerts
from duequeue.stores.http.address import ServerAddress
from duequeue.stores.http.alerts import LONGEST_PAUSE, HttpAlerts
from tests.fixtures.servers import free_port

LONG = 3600.0


@pytest.fixture
def place() -> Iterator[HttpAlerts]:
    """A queue at a server that cannot be reached."""
    address = ServerAddress.from_url(f"http://127.0.0.1:{free_port()}", None)
    place = HttpAlerts(address, WakeUpCall("orders", "json", "me", 1.0), lambda _: None)
    yield place
    place.close()


def test_a_client_still_tries_after_a_thousand_failures(
    place: HttpAlerts, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    def at_once(ceiling: float) -> float:
        pauses.append(ceiling)
        return 0.0

    monkeypatch.setattr(alerts, "jittered", at_once)
    place.listen(LONG)
    until(lambda: len(pauses) > 1100)
    assert pauses[:3] == [0.1, 0.2, 0.4]
    assert set(pauses[10:]) == {LONGEST_PAUSE}
