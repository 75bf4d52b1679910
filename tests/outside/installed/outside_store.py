"""Two stores as another package would bring them: one that keeps the contract, one that does not.

Both keep their messages in memory.
"""

from typing import Any

from duequeue.backends import backend_for
from duequeue.drive.steps import at_once
from duequeue.port.store import Backend, Steps, Store


def open_outside(url: str) -> Backend:
    """Return the backend of `outside:name`."""
    return backend_for(f"memory:outside {url.partition(':')[2]}")


def open_careless(url: str) -> Any:
    """Return the backend of `careless:name`."""
    return CarelessBackend(open_outside(url))


class Wrapper:
    """Whatever it wraps, except for the methods of its own."""

    def __init__(self, wrapped: Any) -> None:
        self._wrapped = wrapped

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wrapped, name)


class CarelessBackend(Wrapper):
    """A backend whose stores are careless."""

    def open_store(self, *arguments: Any, **options: Any) -> Steps[Any]:
        store: Store = yield from self._wrapped.open_store(*arguments, **options)
        return CarelessStore(store)


class CarelessStore(Wrapper):
    """A store that reports a message as dropped, and keeps it."""

    @at_once
    def drop(self, *_: object) -> bool:
        return True
