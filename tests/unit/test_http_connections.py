"""Idle connections to a server: one that the server has closed is not used again."""

import select
import socket
from http.client import HTTPConnection

import pytest

from duequeue.stores.http.connections import _is_quiet


@pytest.mark.parametrize("has_poll", [True, False], ids=["with poll", "without, as on Windows"])
def test_a_closed_connection_is_noticed(has_poll: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_poll:
        monkeypatch.delattr(select, "poll")
    connection = HTTPConnection("127.0.0.1")
    connection.sock, server = socket.socketpair()
    assert _is_quiet(connection)
    server.close()
    assert not _is_quiet(connection)
    connection.close()
