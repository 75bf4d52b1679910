"""Python's collector of reference cycles, in a process of our own that runs for long."""

import gc

# Python starts a collection after 700 new objects by default. Calls of a server or a push process
# make more than that many in a moment, and leave hardly any cycles behind.
NEW_OBJECTS = 10_000


def collect_seldom() -> None:
    """Collect seldom, and never look at what was loaded by now, because all calls wait for it."""
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS)
