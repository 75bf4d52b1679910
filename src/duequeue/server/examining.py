"""The examination of a server and of its store, for `duequeue doctor`."""

from functools import partial
from importlib.metadata import version

from duequeue.instants import to_millis
from duequeue.port.examining import Examinable, Finding, Level
from duequeue.port.remote import Examination
from duequeue.server.queues import Queues


async def examined(queues: Queues) -> Examination:
    """Return a finding about the server, and then those of its store.

    The store compares the clock of the database with that of the server.
    """
    now = to_millis(queues.settings.clock.now())
    text = f"DueQueue {version('duequeue')} serves {queues.address}."
    findings = [Finding(Level.OK, "service", text)]
    backend = queues.backend
    if isinstance(backend, Examinable):
        findings += await queues.run(partial(backend.examine, now))
    return Examination(now, findings)
