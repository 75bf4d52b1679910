"""Spark's process that forks Python workers, with two changes to the workers.

Once Spark has what it asked a worker for, such as the plan of a read, it closes the connection. On
a busy machine it does so before the worker has sent its last bytes, and Spark's own daemon then
prints a traceback. Here such a worker ends quietly.

Spark's own daemon looks for garbage after each piece of work, and goes through all that was ever
imported, which takes three workers 0.15 seconds for each read. Here only the first search does so.

`programs` runs this file as a program, and does not import the package around it, because pyarrow
may start threads, and a process with threads should not fork. Moreover, on Python 3.13 Spark finds
no sources in a process that has imported much before it forks.
"""

import gc
from collections.abc import Callable
from functools import wraps
from socket import socket

from pyspark import daemon


def until_closed(work: Callable[[socket, bool], int]) -> Callable[[socket, bool], int]:
    """Let a worker end quietly when Spark has closed the connection.

    Errors of a user's function do not come this way, because a worker sends them to Spark.
    """

    @wraps(work)
    def worker(connection: socket, authenticated: bool) -> int:  # noqa: FBT001 - Spark's signature
        try:
            return work(connection, authenticated)
        except BrokenPipeError:
            return 1

    return worker


def with_little_garbage(work: Callable[[socket, bool], int]) -> Callable[[socket, bool], int]:
    """Leave out of later searches for garbage what is in use after the first piece of work."""

    @wraps(work)
    def worker(connection: socket, authenticated: bool) -> int:  # noqa: FBT001 - Spark's signature
        code = work(connection, authenticated)
        if not gc.get_freeze_count():
            gc.collect()
            gc.freeze()
        return code

    return worker


if __name__ == "__main__":
    daemon.worker = with_little_garbage(until_closed(daemon.worker))  # type: ignore[assignment]
    daemon.manager()
