"""The commands that are not one query here, but several with decisions between them, or none."""

from collections.abc import Callable
from typing import Any

from duequeue.drive.steps import at_once
from duequeue.port.store import Steps
from duequeue.stores.sql.commands import Row
from duequeue.stores.sql.mariadb import partitions


@at_once
def notify_waiters(note: str) -> list[Row]:  # noqa: ARG001
    """Send nothing, because the others find what a caller commits at their regular looks."""
    return []


STEPS: dict[str, Callable[..., Steps[Any]]] = {
    "add_history_day": partitions.add_history_day,
    "drop_history_days": partitions.drop_history_days,
    "lock_history_day": partitions.lock_history_day,
    "notify_waiters": notify_waiters,
    "remove_history_day": partitions.remove_history_day,
    "remove_history_rows": partitions.remove_history_rows,
}
