"""`duequeue migrate` creates or updates the tables, or prints the statements that create them."""

import argparse
from math import inf
from typing import Any

from duequeue.backends import backend_for
from duequeue.cli.address import add_url
from duequeue.drive.actions import performer
from duequeue.drive.retrying import retrying
from duequeue.drive.steps import drive
from duequeue.retry_policy import RetryPolicy


def add_to(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the command and its arguments."""
    parser = commands.add_parser(
        "migrate",
        help="bring the tables of a database up to date",
        description="Create the tables of a database, or bring them up to date.",
    )
    add_url(parser)
    parser.add_argument(
        "--sql",
        action="store_true",
        help="print the statements that create the tables, and contact nothing",
    )
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Migrate the database, or print the statements."""
    backend = backend_for(given.url)
    if given.sql:
        print(backend.schema_script())
        return 0
    session = backend.session()
    try:
        applied = drive(
            retrying(RetryPolicy(), backend.migrate, try_seconds=inf), performer(session)
        )
    finally:
        session.close()
    for name in applied:
        print(f"applied {name}")
    print(f"{backend.address} is up to date")
    return 0
