"""The lines on which the queues of different processes wake each other."""

import threading

from duequeue.stores.sql.postgres.alerts import PostgresAlerts
from duequeue.stores.sql.postgres.settings import Settings
from tests.contract.stage import until


def lines() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "duequeue-alerts"}


def test_a_queue_that_is_closed_listens_no_more(ready_database: str) -> None:
    of_others = lines()
    alerts = PostgresAlerts(Settings(ready_database), "orders|json", lambda _: None)
    alerts.listen(1)
    (line,) = lines() - of_others
    alerts.close()
    until(lambda: not line.is_alive())
    alerts.listen(1)  # as a poll does that was under way
    assert lines() <= of_others
