"""A limit on how many partitions write at once, on all executors together."""

from functools import partial
from time import sleep

from duequeue.backoff import jittered
from duequeue.spark.open_bulk import OpenBulk
from duequeue.spark.options import Options

LONGEST_WAIT_SECONDS = 2.0


def open_for_writing(options: Options) -> OpenBulk:
    """Open the queue, and wait first until fewer than `maxConnections` partitions write to it.

    A partition that waits has no connection. It connects for a moment, again and again, to see
    whether a place is free.
    """
    while True:
        bulk = OpenBulk(options)
        most = options.max_connections
        if most is None or bulk.run(partial(bulk.store.take_write_place, most)):
            return bulk
        bulk.close()
        sleep(jittered(LONGEST_WAIT_SECONDS))
