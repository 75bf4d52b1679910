"""A limit on how many partitions write at once, on all executors together."""

import random
from collections.abc import Callable
from functools import partial
from time import sleep

from duequeue.backoff import jittered
from duequeue.spark.open_bulk import OpenBulk
from duequeue.spark.options import Options

# Partitions that start together should not all connect in the same moment.
FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 2.0


def open_for_writing(options: Options, pause: Callable[[float], object] = sleep) -> OpenBulk:
    """Wait until fewer than `maxConnections` partitions write to the queue, and open it.

    A waiting partition holds no connection. Every second or two, it connects for a moment to see
    whether a place is free.
    """
    most = options.max_connections
    if most is None:
        return OpenBulk(options)
    pause(random.uniform(0, FIRST_WAIT_SECONDS))  # noqa: S311 - not for secrets
    while (bulk := _open_if_free(options, most)) is None:
        pause(jittered(LONGEST_WAIT_SECONDS))
    return bulk


def _open_if_free(options: Options, most: int) -> OpenBulk | None:
    bulk = OpenBulk(options)
    try:
        if bulk.run(partial(bulk.store.take_write_place, most)):
            return bulk
    except BaseException:
        bulk.close()
        raise
    bulk.close()
    return None
