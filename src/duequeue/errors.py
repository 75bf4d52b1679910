"""The errors that DueQueue raises.

    DueQueueError
    ├── QueueClosed            it was closed, or opened before a fork or in another event loop
    ├── UndecodablePayload     the queue's codec cannot read a stored payload
    ├── InvalidArgument        also a ValueError; `argument` names what was refused
    │   └── PayloadTooLarge    its argument is the payload
    ├── InvalidType            also a TypeError; `argument` names what was refused
    ├── NotAnswered            the message was buried or dropped, so it gets no response
    ├── DeliveryLost           raised by handlers: the delivery was taken away
    ├── MissingExtra           also an ImportError; names the `pip install` that helps
    └── StoreError             the database refused; chained to the driver's own error
        ├── StoreUnavailable   a later try may succeed; raised once the retry budget is spent
        │   └── StoreBusy      other calls of this process use all of its connections
        ├── SchemaError        the tables are missing, changed by hand, or newer than this code
        └── WrongDatabase      also a ValueError; `within` got a connection to another database

Refused arguments are `InvalidArgument` and `InvalidType`, raised before any I/O.
"""

import copyreg
from typing import Any


class DueQueueError(Exception):
    """The base class of all errors of DueQueue."""


class QueueClosed(DueQueueError):
    """The queue was closed before or during this call, or belongs to another process or loop."""


class UndecodablePayload(DueQueueError):
    """A stored payload cannot be decoded by the queue's codec."""


class _Refusal(Exception):
    """What the errors about an argument have in common.

    Most texts begin with the name of the argument, so `words` says what follows it. A text that
    begins with something else is given whole.
    """

    def __init__(self, argument: str, words: str = "", *, text: str | None = None) -> None:
        super().__init__(f"{argument} {words}" if text is None else text)
        self.argument = argument

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the parts for a copy or for another process, which has the text already."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class InvalidArgument(DueQueueError, _Refusal, ValueError):
    """An argument has a value that cannot be used; `argument` is its name."""


class InvalidType(DueQueueError, _Refusal, TypeError):
    """An argument has a type that cannot be used; `argument` is its name."""


class PayloadTooLarge(InvalidArgument):
    """An encoded payload exceeds the documented limit."""

    def __init__(self, text: str) -> None:
        super().__init__("payload", text=text)


class NotAnswered(DueQueueError):
    """There will be no response, because the message was buried or dropped; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class DeliveryLost(DueQueueError):
    """Raised by a handler about its own delivery: the message is no longer its own.

    The consumer logs this and counts a lost lease. It neither counts a failure nor tries again.
    """


class MissingExtra(DueQueueError, ImportError):
    """A package of an optional extra is not installed, such as a store's driver."""


class StoreError(DueQueueError):
    """The database refused an operation, and would refuse it again."""


class StoreUnavailable(StoreError):
    """The database could not serve an operation now; a later try may succeed."""


class StoreBusy(StoreUnavailable):
    """The database serves other calls, and this one found no free connection in time."""


class SchemaError(StoreError):
    """The database's tables are not the ones this code works with."""


class WrongDatabase(StoreError, ValueError):
    """The connection given to `within` does not lead to the tables of the queue."""
