"""The errors that DueQueue raises.

    DueQueueError
    ├── QueueClosed            it was closed, or opened before a fork or in another event loop
    ├── UndecodablePayload     the queue's codec cannot read a stored payload
    ├── PayloadTooLarge        also a ValueError
    ├── NotAnswered            the message was buried or dropped, so it gets no response
    ├── DeliveryLost           raised by handlers: the delivery was taken away
    ├── MissingExtra           also an ImportError; names the `pip install` that helps
    └── StoreError             the database refused; chained to the driver's own error
        ├── StoreUnavailable   a later try may succeed; raised once the retry budget is spent
        ├── SchemaError        the tables are missing, changed by hand, or newer than this code
        └── WrongDatabase      also a ValueError; `within` got a connection to another database

Bad arguments are plain `ValueError` and `TypeError`, raised before any I/O.
"""


class DueQueueError(Exception):
    """The base class of all errors of DueQueue."""


class QueueClosed(DueQueueError):
    """The queue was closed before or during this call, or belongs to another process or loop."""


class UndecodablePayload(DueQueueError):
    """A stored payload cannot be decoded by the queue's codec."""


class PayloadTooLarge(DueQueueError, ValueError):
    """An encoded payload exceeds the documented limit."""


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


class SchemaError(StoreError):
    """The database's tables are not the ones this code works with."""


class WrongDatabase(StoreError, ValueError):
    """The connection given to `within` does not lead to the tables of the queue."""
