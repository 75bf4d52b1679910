"""What `duequeue serve` does; only this module needs the packages of the server."""

import argparse
from datetime import UTC, datetime, timedelta

from duequeue.backends import is_server
from duequeue.cli.config import load_defaults
from duequeue.cli.log_set_up import set_up_log
from duequeue.cli.push_options import push_settings, raise_file_limit
from duequeue.cli.serve import DEFAULT_DRAIN, DEFAULT_URL
from duequeue.clock import SystemClock
from duequeue.errors import InvalidArgument
from duequeue.process.garbage import collect_seldom
from duequeue.retention import Retention
from duequeue.server.access import LOOPBACK, Access
from duequeue.server.app import Service
from duequeue.server.certificate import Certificate
from duequeue.server.dev_clock import DevClock
from duequeue.server.limits import Limits
from duequeue.server.queues import QueueSettings
from duequeue.server.running import ServerSettings, serve
from duequeue.server.tokens import KnownTokens, Scope, TokenFile, new_token

DEV_URL = "memory:duequeue-dev"


def serve_until_stopped(given: argparse.Namespace) -> None:
    """Serve with the arguments of the command."""
    set_up_log(given.log_level, given.log_format)
    certificate = _certificate(given)
    access, token = _access(given)
    push = push_settings(given)
    service = Service(_settings(given), access, Limits(), push if given.push else None)
    raise_file_limit()

    def on_listening(address: str) -> None:
        collect_seldom()
        print(f"serving {service.queues.address} at {address}", flush=True)
        if token is not None:
            print(f"token: {token}", flush=True)

    where = ServerSettings(
        given.host,
        given.port,
        certificate,
        given.access_log,
        _drain(given),
    )
    serve(service, where, on_listening)


def _certificate(given: argparse.Namespace) -> Certificate | None:
    certificate, key = given.tls_cert, given.tls_key
    if (certificate is None) != (key is None):
        raise InvalidArgument("tls-cert", "and tls-key go together")
    return None if certificate is None else Certificate(certificate, key)


def _access(given: argparse.Namespace) -> tuple[Access, str | None]:
    """Return who may call, and the token to print, if one was made up."""
    is_loopback = given.host in LOOPBACK
    if given.token_file is not None:
        tokens = TokenFile(given.token_file)
        if not tokens.grants():
            raise InvalidArgument(
                "token-file",
                f"{given.token_file} has no token yet: make one with "
                f"`duequeue token create --token-file {given.token_file}`",
            )
        return Access(tokens, required=True), None
    if given.dev:
        token, grant = new_token([Scope.ADMIN], datetime.now(UTC), name="dev")
        return Access(KnownTokens([grant]), required=not is_loopback), token
    if not is_loopback:
        raise InvalidArgument(
            "host",
            f"{given.host} can be reached by others, so tokens are needed: make one with "
            "`duequeue token create --token-file tokens.json`, and pass --token-file tokens.json",
        )
    return Access(None, required=False), None


def _drain(given: argparse.Namespace) -> timedelta:
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
