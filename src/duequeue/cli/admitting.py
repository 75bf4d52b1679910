"""Who may call `duequeue serve`, and what it prints about that."""

import argparse
from contextlib import ExitStack
from datetime import UTC, datetime

from duequeue.cli.output import paint
from duequeue.defaults import HOST
from duequeue.errors import InvalidArgument
from duequeue.process.own_token import (
    LOOPBACK,
    find_own_token,
    keep_own_token,
    own_token_file,
    remove_own_token,
)
from duequeue.server.access import Access
from duequeue.server.tokens import (
    Grant,
    KnownTokens,
    Scope,
    TokenFile,
    known_grant,
    new_token,
)

OPEN = (
    "open to every program and user of this machine, and to every client of a proxy in front of "
    "it: use --dev only for development"
)

# Who is refused need not learn the path, which names an account of this machine.
IN_A_FILE = "; when this server started, it printed the name of the file that holds one"


def checked_host(given: argparse.Namespace) -> str:
    """Return the address to listen on, which must fit the other arguments."""
    host: str = given.host or HOST
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


def access_for(
    given: argparse.Namespace, host: str, port: int, at_end: ExitStack
) -> tuple[Access, list[str]]:
    """Return who may call, and what to print about it; `at_end` is closed when the server ends."""
    if given.token_file is not None:
        return _with_file(given.token_file), []
    if given.dev:
        token, grants = _development_tokens(host, port)
        is_open, on_socket = host in LOOPBACK, given.socket is not None
        warnings = [paint(OPEN, "31")] if is_open and not on_socket else []
        access = Access(KnownTokens(grants), required=not is_open, trusted=on_socket)
        return access, [f"token: {token}", *warnings]
    if given.socket is not None:  # only its owner can connect to it
        return Access(None, required=False, trusted=True), []
    return _with_own_token(port, at_end if given.port == 0 else None)


def _development_tokens(host: str, port: int) -> tuple[str, list[Grant]]:
    """Return a new token, and what it and the token that clients of this user send here grant."""
    now = datetime.now(UTC)
    token, grant = new_token([Scope.ADMIN], now, name="dev")
    kept = known_grant(find_own_token(host, port) or "", now)  # of a server that had no --dev
    return token, [grant] if kept is None else [grant, kept]


def _with_file(path: str) -> Access:
    tokens = TokenFile(path)
    if not tokens.grants():
        raise InvalidArgument(
            "token-file",
            f"{path} has no token yet: make one with "
            f"`duequeue token create --token-file {path} --scope …`",
        )
    return Access(tokens, required=True)


def _with_own_token(port: int, at_end: ExitStack | None) -> tuple[Access, list[str]]:
    """Need a token that is kept in a file, which clients of the same user find by themselves.

    The next server hardly gets a port that the system has chosen, so its file goes at the end. It
    stays if this server has found it there, because it may be of one at another address.
    """
    now = datetime.now(UTC)
    token = new_token([Scope.ADMIN], now)[0]
    kept = keep_own_token(port, token)
    if at_end is not None:
        at_end.callback(remove_own_token, port, token)
    path = own_token_file(port)
    grant = known_grant(kept, now)
    if grant is None:
        raise InvalidArgument(
            "token-file",
            text=f"{path} has no token: delete this file, and the next start makes a new one",
        )
    notice = f"token in {path}; commands and Python clients of this user find it by themselves"
    return Access(KnownTokens([grant]), required=True, hint=IN_A_FILE), [notice]
