"""A limit on how many partitions write at once, on all executors together."""

from functools import partial
from time import sleep

from duequeue.backoff import jittered
from duequeue.spark.open_bulk import OpenBulk
from duequeue.spark.options import Options

LONGEST_WAIT_SECONDS = 2.0


def open_for_writing(options: Options) -> OpenBulk:
    """Wait until fewer than `maxConnections` partitions write to the queue, and open it.

    A waiting partition holds no connection. Every second or two, it connects for a moment to see
    whether a place is free.
    """
    while True:
        bulk = OpenBulk(options)
        most = options.max_connections
        if most is None or bulk.run(partial(bulk.store.take_write_place, most)):
            return bulk
        bulk.close()
        sleep(jittered(LONGEST_WAIT_SECONDS))
