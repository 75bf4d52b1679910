"""Ends what waits on a socket."""

import socket


def end_connection(connection: socket.socket) -> None:
    """End a connection, so that a read in another thread fails at once; raise OSError if it cannot.

    The `shutdown` of a socket with TLS first makes it a plain one. A read in another thread would
    then return encrypted bytes as if they were the answer.
    """
    socket.socket.shutdown(connection, socket.SHUT_RDWR)
