"""What `duequeue serve` does; only this module needs the packages of the server."""

import argparse
import socket
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta

from duequeue.backends import is_server
from duequeue.cli.config import load_defaults
from duequeue.cli.log_set_up import set_up_log
from duequeue.cli.output import paint
from duequeue.cli.push_options import push_settings, raise_file_limit
from duequeue.cli.serve import DEFAULT_DRAIN, DEFAULT_URL
from duequeue.clock import SystemClock
from duequeue.errors import InvalidArgument
from duequeue.process.garbage import collect_seldom
from duequeue.process.own_token import LOOPBACK, keep_own_token, own_token_file
from duequeue.retention import Retention
from duequeue.server.access import Access
from duequeue.server.app import Service
from duequeue.server.certificate import Certificate
from duequeue.server.dev_clock import DevClock
from duequeue.server.limits import Limits
from duequeue.server.queues import QueueSettings
from duequeue.server.running import ServerSettings, listening_socket, serve
from duequeue.server.tokens import KnownTokens, Scope, TokenFile, known_grant, new_token
from duequeue.server.unix_socket import EVERYBODY, OWNER_ONLY, listening_unix_socket

DEV_URL = "memory:duequeue-dev"
OPEN = (
    "open to every program and user of this machine, and to every client of a proxy in front of "
    "it: use --dev only for development"
)


def serve_until_stopped(given: argparse.Namespace) -> None:
    """Serve with the arguments of the command."""
    set_up_log(given.log_level, given.log_format)
    certificate, host = _certificate(given), _checked_host(given)
    where = ServerSettings(host, given.port, certificate, given.access_log, drain_of(given))
    with _listening(given, where) as listener:
        port: int = 0 if given.socket else listener.getsockname()[1]
        access, notices = _access(given, host, port)
        push = push_settings(given, given.token_file)
        service = Service(_settings(given), access, Limits(), push if given.push else None)
        raise_file_limit()
        address = f"unix:{given.socket}" if given.socket else where.url(port)

        def on_listening() -> None:
            collect_seldom()
            print(f"serving {service.queues.address} at {address}", *notices, sep="\n", flush=True)

        serve(service, where, listener, on_listening)


def _checked_host(given: argparse.Namespace) -> str:
    """Return the address to listen on, which must fit the other arguments."""
    host: str = given.host or "127.0.0.1"
    if given.socket is not None and given.host is not None:
        raise InvalidArgument("host", "and socket exclude each other")
    if host not in LOOPBACK and given.token_file is None and not given.dev:
        raise InvalidArgument(
            "host",
            f"{host} can be reached by others, so tokens are needed: make one with "
            "`duequeue token create --token-file tokens.json --scope …`, and pass "
            "--token-file tokens.json",
        )
    return host


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


def _access(given: argparse.Namespace, host: str, port: int) -> tuple[Access, list[str]]:
    """Return who may call, and what to print about it."""
    if given.token_file is not None:
        return _with_file(given.token_file), []
    if given.dev:
        token, grant = new_token([Scope.ADMIN], datetime.now(UTC), name="dev")
        is_open = host in LOOPBACK
        warnings = [paint(OPEN, "31")] if is_open and given.socket is None else []
        return Access(KnownTokens([grant]), required=not is_open), [f"token: {token}", *warnings]
    if given.socket is not None:  # only its owner can connect to it
        return Access(None, required=False, trusted=True), []
    return _with_own_token(port)


def _with_file(path: str) -> Access:
    tokens = TokenFile(path)
    if not tokens.grants():
        raise InvalidArgument(
            "token-file",
            f"{path} has no token yet: make one with "
            f"`duequeue token create --token-file {path} --scope …`",
        )
    return Access(tokens, required=True)


def _with_own_token(port: int) -> tuple[Access, list[str]]:
    """Need a token that is kept in a file, which clients of the same user find by themselves."""
    now = datetime.now(UTC)
    kept = keep_own_token(port, new_token([Scope.ADMIN], now)[0])
    path = own_token_file(port)
    grant = known_grant(kept, now)
    if grant is None:
        raise InvalidArgument(
            "token-file",
            text=f"there is no token in {path}: delete it, and the next start makes a new one",
        )
    notice = f"token in {path}; commands and Python clients of this user find it by themselves"
    return Access(KnownTokens([grant]), required=True), [notice]


def drain_of(given: argparse.Namespace) -> timedelta:
    """Return how long to go on answering after a signal."""
    drain: timedelta | None = given.drain
    if drain is None:
        return timedelta(0) if given.dev else DEFAULT_DRAIN
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
    )
