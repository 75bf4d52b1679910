"""`duequeue token` creates, lists and revokes the tokens of a server."""

import argparse
import os
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

from duequeue.cli.durations import duration
from duequeue.cli.facts import named
from duequeue.cli.opening import NothingFound
from duequeue.cli.output import Column, Output, add_output
from duequeue.errors import InvalidArgument
from duequeue.instants import instant_text

SCOPES = "offer, poll, settle, read, or admin for everything"
TOKEN_FILE_VARIABLE = "DUEQUEUE_TOKEN_FILE"  # noqa: S105 - a name


def _expiry(item: Any, /) -> str:
    if item["expired"]:
        return "expired"
    return "never" if item["expires_at"] is None else str(item["expires_at"])


COLUMNS = (
    named("id"),
    Column("SCOPES", lambda item: ",".join(item["scopes"])),
    Column("QUEUES", lambda item: f"{item['prefix']}*"),
    Column("EXPIRES", _expiry),
    named("name"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the actions of the command."""
    parser.description = (
        "Create, list and revoke the tokens that `duequeue serve --token-file` accepts. The file "
        "holds only their hashes, and a running server notices changes by itself."
    )
    actions = parser.add_subparsers(metavar="action", required=True)
    _add_create(actions)
    listing = actions.add_parser("ls", help="list the tokens of a file")
    _add_file(listing)
    add_output(listing, "print only the ids")
    listing.set_defaults(run=list_tokens)
    revoking = actions.add_parser("revoke", help="remove a token from a file")
    _add_file(revoking)
    revoking.add_argument("id", help="the id of the token, as `ls` shows it")
    revoking.set_defaults(run=revoke)


def _add_create(actions: "argparse._SubParsersAction[Any]") -> None:
    parser = actions.add_parser("create", help="create a token and print it, once")
    _add_file(parser)
    parser.add_argument(
        "--scope",
        action="append",
        metavar="SCOPE",
        help=f"what it allows: {SCOPES}; may be repeated (default: ask on a terminal)",
    )
    parser.add_argument(
        "--prefix", default="", metavar="TEXT", help="only for queues whose names begin with this"
    )
    parser.add_argument(
        "--expires", type=duration, metavar="DURATION", help="how long it is valid, such as 90d"
    )
    parser.add_argument("--name", default="", metavar="TEXT", help="what it is for; `ls` shows it")
    parser.set_defaults(run=create)


def _add_file(parser: argparse.ArgumentParser) -> None:
    given = os.environ.get(TOKEN_FILE_VARIABLE)
    parser.add_argument(
        "--token-file",
        default=given,
        required=given is None,
        metavar="FILE",
        help=f"where the tokens are stored (default: ${TOKEN_FILE_VARIABLE})",
    )


def create(given: argparse.Namespace) -> int:
    """Create a token and print it."""
    from duequeue.server.tokens import TokenFile, new_token, read_scope

    now = datetime.now(UTC)
    scopes = [read_scope(each) for each in given.scope or _asked_scopes()]
    expires_at = None if given.expires is None else _end(now, given.expires)
    token, grant = new_token(
        scopes, now, name=given.name, prefix=given.prefix, expires_at=expires_at
    )
    TokenFile(given.token_file).add(grant)
    print(token)
    if expires_at is None:
        print("this token never expires; --expires 90d gives it an end", file=sys.stderr)
    return 0


def _end(now: datetime, lasts: timedelta) -> datetime:
    try:
        return now + lasts
    except OverflowError:
        raise InvalidArgument("--expires", "must lie in the years 1 to 9999 of UTC") from None


def _asked_scopes() -> list[str]:
    """Ask a person what a token allows, because none should allow more than it must."""
    if not sys.stdin.isatty():
        raise InvalidArgument("--scope", text=f"pass --scope with what the token allows: {SCOPES}")
    print(f"What does the token allow ({SCOPES})? ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().replace(",", " ").split()


def list_tokens(given: argparse.Namespace) -> int:
    """Print the tokens of a file."""
    from duequeue.server.tokens import TokenFile

    now = datetime.now(UTC)
    found = (
        {
            "id": grant.id,
            "scopes": sorted(scope.value for scope in grant.scopes),
            "prefix": grant.prefix,
            "created_at": instant_text(grant.created_at),
            "expires_at": None if grant.expires_at is None else instant_text(grant.expires_at),
            "expired": grant.has_expired(now),
            "name": grant.name,
        }
        for grant in TokenFile(given.token_file).grants()
    )
    Output(given).items(found, COLUMNS, key="id")
    return 0


def revoke(given: argparse.Namespace) -> int:
    """Remove a token."""
    from duequeue.server.tokens import TokenFile

    if not TokenFile(given.token_file).revoke(given.id):
        raise NothingFound(f"id {given.id!r} is not in {given.token_file}")
    print(f"revoked {given.id}")
    return 0
