"""A unix socket that a server listens on, instead of a port."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from duequeue.errors import InvalidArgument

BACKLOG = 2048
OWNER_ONLY, EVERYBODY = 0o600, 0o666


@contextmanager
def listening_unix_socket(path: str, mode: int) -> Iterator[socket.socket]:
    """Listen on a unix socket until the end of the block; `mode` says who may connect."""
    if not path:  # the kernel would choose a name that has no file, and so no mode
        raise InvalidArgument("socket", "must be the path of a socket")
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            _remove_if_left_behind(path)
            _bind(listener, path, mode)
            file = _file_of(path)
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
            _remove_own(path, file)


def _file_of(path: str) -> tuple[int, int, int]:
    """Return what tells this file from a later one, which may have the same number."""
    found = os.lstat(path)
    return found.st_dev, found.st_ino, found.st_mtime_ns


def _remove_own(path: str, file: tuple[int, int, int]) -> None:
    """Remove the socket's file, unless the next server has put its own there already.

    That server may start as soon as this one accepts no connection, and has requests to end.
    """
    with suppress(FileNotFoundError):
        if _file_of(path) == file:
            Path(path).unlink()


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
