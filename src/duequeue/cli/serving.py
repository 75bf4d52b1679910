"""What `duequeue serve` does; only this module needs the packages of the server."""

import argparse
import socket
from contextlib import AbstractContextManager, ExitStack
from datetime import timedelta

from duequeue.backends import is_server
from duequeue.cli.admitting import access_for, checked_host
from duequeue.cli.config import load_defaults
from duequeue.cli.log_set_up import set_up_log
from duequeue.cli.push_options import push_settings, raise_file_limit
from duequeue.cli.serve import DEFAULT_URL
from duequeue.clock import SystemClock
from duequeue.defaults import DRAIN
from duequeue.errors import InvalidArgument
from duequeue.parts import QueueSettings
from duequeue.process.garbage import collect_seldom
from duequeue.retention import Retention
from duequeue.server.app import Service
from duequeue.server.certificate import Certificate
from duequeue.server.dev_clock import DevClock
from duequeue.server.limits import Limits
from duequeue.server.running import ServerSettings, listening_socket, serve
from duequeue.server.unix_socket import EVERYBODY, OWNER_ONLY, listening_unix_socket

DEV_URL = "memory:duequeue-dev"


def serve_until_stopped(given: argparse.Namespace) -> None:
    """Serve with the arguments of the command."""
    set_up_log(given.log_level, given.log_format)
    certificate, host = _certificate(given), checked_host(given)
    where = ServerSettings(host, given.port, certificate, given.access_log, drain_of(given))
    with _listening(given, where) as listener, ExitStack() as at_end:
        port: int = 0 if given.socket else listener.getsockname()[1]
        access, notices = access_for(given, host, port, at_end)
        push = push_settings(given, given.token_file)
        service = Service(_settings(given), access, Limits(), push if given.push else None)
        raise_file_limit()
        address = f"unix:{given.socket}" if given.socket else where.url(port)

        def on_listening() -> None:
            collect_seldom()
            print(f"serving {service.queues.address} at {address}", *notices, sep="\n", flush=True)

        serve(service, where, listener, on_listening)


def _listening(
    given: argparse.Namespace, where: ServerSettings
) -> AbstractContextManager[socket.socket]:
    """Listen on a port, or on a socket that only this user can use unless tokens are needed."""
    if given.socket is None:
        return listening_socket(where.host, where.port)
    return listening_unix_socket(
        given.socket, OWNER_ONLY if given.token_file is None else EVERYBODY
    )


def _certificate(given: argparse.Namespace) -> Certificate | None:
    certificate, key = given.tls_cert, given.tls_key
    if (certificate is None) != (key is None):
        raise InvalidArgument("tls-cert", "and tls-key go together")
    return None if certificate is None else Certificate(certificate, key)


def drain_of(given: argparse.Namespace) -> timedelta:
    """Return how long to go on answering after a signal."""
    drain: timedelta | None = given.drain
    if drain is None:
        return timedelta(0) if given.dev else DRAIN
    if drain < timedelta(0):
        raise InvalidArgument("drain", "must not be negative")
    return drain


def _url(given: argparse.Namespace) -> str:
    """Return the store; a development server takes only one that its own arguments name."""
    default = DEV_URL if given.dev else load_defaults().url or DEFAULT_URL
    url: str = given.url or default
    if is_server(url):
        raise InvalidArgument("url", "must be that of a database, not of another server")
    return url


def _settings(given: argparse.Namespace) -> QueueSettings:
    keep: timedelta = given.keep_history
    return QueueSettings(
        _url(given),
        DevClock() if given.dev else SystemClock(),
        lease=given.lease,
        poll_interval=given.poll_interval,
        max_attempts=given.max_attempts,
        history=bool(keep),
        retention=Retention(history=keep) if keep else None,
        create=given.create,
    )
