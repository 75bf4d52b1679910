"""A unix socket that a server listens on, instead of a port."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from duequeue.errors import InvalidArgument

BACKLOG = 2048
OWNER_ONLY, EVERYBODY = 0o600, 0o666


@contextmanager
def listening_unix_socket(path: str, mode: int) -> Iterator[socket.socket]:
    """Listen on a unix socket until the end of the block; `mode` says who may connect."""
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            _remove_if_left_behind(path)
            _bind(listener, path, mode)
        except OSError as error:
            words = error.strerror or error  # a path may be too long, and then there is no number
            if isinstance(error, FileNotFoundError):
                words = "its folder does not exist; make it first"
            raise InvalidArgument(
                "socket", text=f"socket: cannot listen at {path}: {words}"
            ) from error
        try:
            listener.listen(BACKLOG)
            yield listener
        finally:
            Path(path).unlink(missing_ok=True)


def _bind(listener: socket.socket, path: str, mode: int) -> None:
    """Make the socket's file, which has its final mode from the beginning."""
    before = os.umask(0o777 & ~mode)
    try:
        listener.bind(path)
    finally:
        os.umask(before)


def _remove_if_left_behind(path: str) -> None:
    """Remove a socket whose server was killed."""
    if not Path(path).is_socket():
        return
    with socket.socket(socket.AF_UNIX) as asking:
        try:
            asking.connect(path)
        except ConnectionRefusedError:
            Path(path).unlink(missing_ok=True)
