"""The queues that a database holds."""

from typing import NamedTuple

from duequeue.backends import backend_for
from duequeue.drive import running
from duequeue.retry_policy import RetryPolicy

# The service keeps its own definitions in these.
CRONS_OF_SERVICE = "duequeue-crons"
ENDPOINTS_OF_SERVICE = "duequeue-endpoints"
OWN_QUEUES = frozenset({CRONS_OF_SERVICE, ENDPOINTS_OF_SERVICE})


class QueueName(NamedTuple):
    """The name and the payload type of a queue, which together identify it."""

    name: str
    payload_type: str


def queues(
    url: str, *, token: str | None = None, retry: RetryPolicy | None = None
) -> list[QueueName]:
    """List the queues in the database that the URL names, by name, without changing anything.

    The queues in which the service keeps its own definitions are left out. Raise a `SchemaError`
    if the database has no tables of DueQueue, or the file does not exist.
    """
    backend = backend_for(url, token)
    session = backend.read_only_session()
    try:
        kinds = running.run(session, backend.kinds, retry or RetryPolicy())
    finally:
        session.close()
    found = map(_queue_name, kinds)
    return sorted(each for each in found if each.name not in OWN_QUEUES)


def _queue_name(kind: str) -> QueueName:
    name, _, payload_type = kind.partition("|")  # a name never contains this character
    return QueueName(name, payload_type)
