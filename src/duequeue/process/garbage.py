"""Python's collector of reference cycles, in a process of our own that runs for long."""

import gc

# By default, Python starts a collection after 700 or 2,000 new objects, depending on its version.
# Calls of a server or a push process make more than that many in a moment.
NEW_OBJECTS = 10_000


def collect_seldom() -> None:
    """Collect seldom, and never look at what was loaded by now, because all calls wait for it."""
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS)
