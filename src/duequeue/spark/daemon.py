"""Spark's process that forks Python workers, without errors about results that nobody awaits.

Once Spark has what it asked a worker for, such as the plan of a read, it closes the connection. On
a busy machine it does so before the worker has sent its last bytes, and Spark's own daemon then
prints a traceback. `session` runs this file as a program, and does not import the package around
it, because pyarrow may start threads, and a process with threads should not fork. Moreover, on
Python 3.13 Spark finds no sources in a process that has imported much before it forks.
"""

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


if __name__ == "__main__":
    daemon.worker = until_closed(daemon.worker)  # type: ignore[assignment]
    daemon.manager()
