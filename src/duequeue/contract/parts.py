"""Queues together with the parts that they are made of, opened with the options of `open`."""

from typing import Any

from duequeue import parts
from duequeue.backends import backend_for
from duequeue.flows import opening
from duequeue.flows.opening import Around
from duequeue.parts import AsyncParts, Parts


def open_parts(
    url: str, name: str = "orders", around: Around | None = None, **options: Any
) -> Parts[Any]:
    """Open a queue with the options of `opening.checked`."""
    return parts.open_parts(opening.checked(backend_for(url), name, **options), around)


async def open_async_parts(
    url: str, name: str = "orders", around: Around | None = None, **options: Any
) -> AsyncParts[Any]:
    """Open an awaiting queue with the options of `opening.checked`."""
    checked = opening.checked(backend_for(url), name, **options)
    return await parts.open_async_parts(checked, around)
