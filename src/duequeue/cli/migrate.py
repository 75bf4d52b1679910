"""`duequeue migrate`: create the tables, or print the statements that do."""

import argparse
from typing import Any

from duequeue.backoff import RetryPolicy
from duequeue.cli.address import add_url
from duequeue.connect import backend_for
from duequeue.drive.actions import performer
from duequeue.drive.retrying import retrying
from duequeue.drive.steps import drive


def add_to(commands: "argparse._SubParsersAction[Any]") -> None:
    """Describe the command."""
    parser = commands.add_parser("migrate", help="bring a database's tables up to date")
    add_url(parser)
    parser.add_argument(
        "--sql", action="store_true", help="print the statements instead of running them"
    )
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Migrate, or print."""
    backend = backend_for(given.url)
    if given.sql:
        print(backend.schema_script())
        return 0
    session = backend.session()
    try:
        applied = drive(retrying(RetryPolicy(), backend.migrate), performer(session))
    finally:
        session.close()
    for name in applied:
        print(f"applied {name}")
    print(f"{backend.address} is up to date")
    return 0
