"""`duequeue token` creates, lists and revokes the tokens of a server."""

import argparse
import os
from datetime import UTC, datetime
from typing import Any

from duequeue.cli.durations import duration

TOKEN_FILE_VARIABLE = "DUEQUEUE_TOKEN_FILE"  # noqa: S105 - a name


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
        help="what it allows: offer, poll, settle, read, or admin for everything; may be repeated "
        "(default: admin)",
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
    scopes = [read_scope(each) for each in given.scope or ["admin"]]
    expires_at = None if given.expires is None else now + given.expires
    token, grant = new_token(
        scopes, now, name=given.name, prefix=given.prefix, expires_at=expires_at
    )
    TokenFile(given.token_file).add(grant)
    print(token)
    return 0


def list_tokens(given: argparse.Namespace) -> int:
    """Print the tokens of a file, a line for each."""
    from duequeue.server.tokens import TokenFile

    now = datetime.now(UTC)
    for grant in TokenFile(given.token_file).grants():
        scopes = ",".join(sorted(scope.value for scope in grant.scopes))
        queues = f"{grant.prefix}*"
        ends = "never expires" if grant.expires_at is None else f"expires {grant.expires_at:%F %T}"
        if grant.has_expired(now):
            ends = "expired"
        print(f"{grant.id}  {scopes}  {queues}  {ends}  {grant.name}".rstrip())
    return 0


def revoke(given: argparse.Namespace) -> int:
    """Remove a token."""
    from duequeue.server.tokens import TokenFile

    if not TokenFile(given.token_file).revoke(given.id):
        raise ValueError(f"id {given.id!r} is not in {given.token_file}")
    print(f"revoked {given.id}")
    return 0
