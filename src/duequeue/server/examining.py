"""The examination of a server and of its store, for `duequeue doctor`."""

from importlib.metadata import version

from duequeue.instants import to_millis
from duequeue.port.examining import Examinable, Finding, Level
from duequeue.port.remote import Examination
from duequeue.server.queues import Queues


async def examined(queues: Queues) -> Examination:
    """Return a finding about the server, and then those of its store.

    The store compares the clock of the database with that of the server.
    """
    clock = queues.settings.clock
    now = to_millis(clock.now())
    text = f"DueQueue {version('duequeue')} serves {queues.address}."
    findings = [Finding(Level.OK, "service", text)]
    backend = queues.backend
    if isinstance(backend, Examinable):
        # Each try reads the clock when it is connected, so that nothing before it counts.
        findings += await queues.run(lambda: backend.examine(to_millis(clock.now())))
    return Examination(now, findings)
