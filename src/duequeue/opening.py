"""What `Queue.open` does once its arguments are checked."""

from collections.abc import Callable
from typing import Any, TypeVar

from duequeue.flows.context import Context
from duequeue.flows.opening import Opening
from duequeue.port.store import Backend, Session

Q = TypeVar("Q")


def open_queue(
    checked: Opening[Any], make: Callable[[Backend, Context[Any], Session, Opening[Any]], Q]
) -> Q:
    """Open a queue whose arguments are checked."""
    context, session = checked.open()
    return make(checked.backend, context, session, checked)
